//! Real peers with real Executors over a network in memory: every exchange, and what all of them share.
#![expect(clippy::unwrap_used, reason = "helpers of tests may, as tests do")]

mod agreed;
mod at_hand;
mod center;
mod common;
mod companions;
mod halves;
mod inner_corrections;
mod neighbours;
#[path = "../numbers/mod.rs"]
mod numbers;
mod overlap;
mod presets;
mod rates;
mod state;
