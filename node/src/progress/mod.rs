//! Output of `murmurate run`: a live line on a terminal, plain lines elsewhere, JSON lines for a
//! program that started it.

mod line;
mod printer;
mod terminal;
mod words;

pub use line::{Line, Progress};
pub(crate) use printer::merged;
pub use printer::{LogMode, Printer};
pub(crate) use terminal::{columns, is_live, tell};
pub(crate) use words::optional;
pub use words::{bytes, duration};
