//! Output of `murmurate run`: a live line on a terminal, plain lines elsewhere, JSON lines for a
//! program that started it.

mod line;
mod printer;

pub(crate) use line::optional;
pub use line::{Line, Progress, bytes, duration};
pub use printer::LogMode;
pub(crate) use printer::{Printer, columns, is_live, merged, tell};
