//! The grid: every method is a point in synchronization x architecture x compression x overlap
//! (+ outer optimizer, + aggregation rule). One TOML table for each; presets are named points; a
//! combination that cannot work is refused with the reason.
//!
//! ```toml
//! preset = "diloco"            # every key below overrides it
//!
//! [synchronization]            # how long a round trains, and which peers wait for which
//! inner_steps = 50
//! pace = "decay"
//! decay_every = 100
//!
//! [architecture]               # which peers exchange what
//! exchange = "all-reduce"
//! contribution = "delta"
//!
//! [compression]                # how it is encoded
//! codec = "top-k"
//! density = 0.01
//!
//! [overlap]                    # into which fragments it is cut, and when results are applied
//! fragments = 4
//! stagger = 2
//!
//! [outer]                      # how the aggregate changes the anchor
//! optimizer = "nesterov"
//!
//! [aggregation]                # how contributions are combined
//! rule = "weighted-mean"
//!
//! [agreement]                  # how a swarm is cut into groups, and how many of their members may lie
//! liars = 0
//!
//! [inner]                      # what an inner step does
//! optimizer = "adam-w"
//! schedule = "cosine"
//!
//! [deadlines]                  # bounds; within them they follow what was measured
//! floor_ms = 2000
//! ```
//!
//! All methods, their keys, ranges and defaults are in [`registry`]; `murmurate strategies` prints them.

pub mod registry;

mod agreement;
mod architecture;
mod catalogue;
mod companions;
mod compression;
mod entry;
mod error;
mod grouping;
mod later;
mod methods;
mod overlap;
mod paces;
mod parts;
mod presets;
mod rates;
mod refuse;
mod schedule;
mod strategy;
mod synchronization;
mod tables;
mod text;
mod validate;

pub use catalogue::{Method, MethodKey, Refusal, catalogue, find};
pub use compression::rung_words;
pub use error::StrategyError;
pub use later::{LATER, Later};
pub use presets::{DEFAULT_PRESET, preset};
pub use strategy::{STATE_HEADER_BYTES, Strategy};
