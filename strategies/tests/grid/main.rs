//! The grid: what a strategy's text may say, and the pages and lists that are made of it.
#![expect(clippy::unwrap_used, reason = "helpers of tests may, as tests do")]

mod catalogue;
mod cells;
mod coverage;
mod documents;
mod one_place;
mod strategies;
