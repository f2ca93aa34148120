//! Documents of any size in one or many files: text, JSON Lines or Parquet. A source is cut into
//! passages, which are read one at a time.

mod files;
mod json;
mod piece;
mod plain;
mod rows;

pub(crate) use files::read_text;
pub(crate) use files::{Format, Source};
pub(crate) use piece::{Passage, Piece};
pub(in crate::data) use plain::lines;

#[cfg(test)]
mod tests;
