//! `murmurate top`: what the page of a daemon shows, in a terminal. It is a client of the daemon's HTTP
//! interface, or shows a recorded event log. The model of the data ([`Picture`]) knows no terminal, and
//! `draw` knows no daemon.

mod app;
mod choice;
mod column;
mod draw;
mod feed;
mod once;
mod picture;
mod player;
mod recording;
mod row;
mod scene;
mod target;
mod theme;
mod watched;

pub use app::{Source, TopError, beside, run};
pub use murmurate_node::api::AskError;
pub use once::Still;
pub use picture::Picture;
pub use recording::{Recording, RecordingError};
pub use target::{Target, TargetError};

#[cfg(test)]
mod tests;
