//! Tables: rows of numbers and names, and a column to predict.

mod classes;
mod columns;
mod read;

pub(crate) use columns::Targets;
pub(crate) use read::Table;

#[cfg(test)]
mod tests;
