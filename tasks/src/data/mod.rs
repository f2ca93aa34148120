//! Data and its shards. This module uses neither models nor devices.

pub mod bundled;
mod corpus;
mod dealt;
mod division;
pub mod idx;
mod labelled;
pub mod parquet;
mod passes;
mod shard;
mod text;
mod tokens;

pub use corpus::{Corpus, held_size};
pub use dealt::Dealt;
pub use division::{BLOCKS_MAX, Division};
pub use labelled::{DataError, Labelled, LabelledPair};
pub use passes::Passes;
pub use shard::{SHARDS_MAX, ShardError, ShardKind, Shards};
pub use text::{TEXT_BYTES_MAX, TextError, read_text, split_text};
pub use tokens::Tokens;
