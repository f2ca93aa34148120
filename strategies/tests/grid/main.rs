//! The grid: what a strategy's text may say, and the pages and lists that are made of it.

mod catalogue;
mod cells;
mod coverage;
mod documents;
mod one_place;
mod strategies;
