//! Codecs: the laws that all of them keep, each against its equation, and the page of their figures.
#![expect(clippy::unwrap_used, reason = "helpers of tests may, as tests do")]

mod dgc_atomo;
mod event_triggered;
mod gathered;
mod gradiveq;
mod lag;
mod laws;
#[path = "../numbers/mod.rs"]
mod numbers;
mod reference;
mod slice;
mod statistics;
mod sums;
mod table;
mod two_passes;
