//! The arithmetic of Murmurate over flat f32: the grid, codecs, topologies, optimizers, and the
//! [`Executor`](executor) that performs every work order of a peer. No sockets, threads or files;
//! no sums in unspecified order.
//!
//! Every strategy is a point of the [`grid`]. The table shows some of the named ones; all of them
//! are in [`grid::registry::PRESETS`]. P is the number of parameters, n the number of peers in a
//! group. Bytes are what one peer sends in a round with the codec shown; any codec that works with
//! the strategy may take its place.
//!
//! | strategy | paper | exchange | codec | contribution | bytes/round |
//! |---|---|---|---|---|---|
//! | `none` | - | none | - | nothing, for comparison | 0 |
//! | `bsp` | Valiant 1990 | all-reduce | `f32` | the gradient of one inner step at the anchor | 8 P (n - 1) / n |
//! | `local-sgd` | Stich, ICLR 2019 | all-reduce | `f32` | the delta to the anchor | 8 P (n - 1) / n |
//! | `diloco` | Douillard et al., arXiv 2311.08105 | all-reduce | `f32` | the delta to the anchor | 8 P (n - 1) / n |
//! | `d-psgd` | Lian et al., NeurIPS 2017 | gossip, ring | `f32` | the parameters | 8 P |
//!
//! In an all-reduce each peer sends its contribution to every shard to that shard's owner, and the
//! reduction of its own shard to every other member: twice `(n - 1) / n` of the encoded size. In
//! gossip it sends the encoded size to each partner: one for `random-matching` and
//! `one-peer-exponential`, two for `ring`, n - 1 for `complete`. The encoded size is 4 P for `f32`,
//! 2 P for `bf16`, about P for `int8`, at most about 5 P times the density for `top-k` (whose
//! reductions hold the union of the kept values). Each strategy's linear model is a test
//! (`tests/methods/spectra.rs`).

pub mod aggregate;
pub mod compress;
pub mod correct;
pub mod executor;
pub mod grid;
pub mod inner;
pub mod island;
pub mod kind;
pub mod outer;
pub mod plan;
pub mod slices;
pub mod state;
pub mod topology;
pub mod toy;

mod block_feed;
mod data_report;
mod kept_back;
mod layout;
mod named;
pub mod names;
pub mod parameter;
mod trainer;

pub use block_feed::BlockFeed;
pub use data_report::DataReport;
pub use island::{Island, IslandError, RANKS_MAX, Rank};
pub use kept_back::{KeptBack, KeptBackError, kept_back};
pub use layout::{Layout, TensorSpec};
pub use named::{NamedScores, Said};
pub use trainer::{Gate, Proceed, StepControl, TrainError, TrainReport, Trainer, Visit};
