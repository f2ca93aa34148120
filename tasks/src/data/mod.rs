//! Data and its shards. No model and no device.

pub mod bundled;
mod corpus;
pub mod idx;
mod labelled;
mod passes;
mod shard;
mod text;
mod tokens;

pub use corpus::{Corpus, held_size};
pub use labelled::{DataError, Labelled, LabelledPair};
pub use passes::Passes;
pub use shard::{SHARDS_MAX, ShardError, ShardKind, Shards};
pub use text::{TEXT_BYTES_MAX, TextError, read_text, split_text};
pub use tokens::Tokens;
