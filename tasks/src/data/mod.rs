//! Data and its shards. This module uses neither models nor devices.

mod bad_records;
mod bundled;
mod corpus;
mod dataset;
mod dealt;
mod division;
mod encoder;
mod error;
mod feed;
mod first_bytes;
pub mod idx;
mod images;
mod labelled;
mod labels;
pub mod parquet;
mod passes;
mod pictures;
mod shard;
mod source;
mod stream;
mod table;
mod text;
mod tokens;

pub use bad_records::BadRecords;
pub use corpus::Corpus;
pub use dataset::Dataset;
pub(crate) use dataset::Units;
pub use dealt::Dealt;
pub use division::{BLOCKS_MAX, Division};
pub use error::{CELLS_MAX, DataError, TEXT_BYTES_MAX};
pub(crate) use error::{Problem, at};
pub use feed::MEMORY_BYTES_MAX;
pub(crate) use feed::{Feed, Reading};
pub use first_bytes::Foreign;
pub use images::{DECODED_IN_MEMORY_MAX, ImageData, ImageSet, Taken, WantedImages};
pub use labelled::{Labelled, LabelledPair};
pub use passes::Passes;
#[cfg(test)]
pub(crate) use pictures::png_of;
pub use shard::{SHARDS_MAX, ShardError, ShardKind, Shards};
pub use source::read_text;
pub use table::{Column, Table, Targets, WantedTable};
pub use text::split_text;
pub use tokens::Tokens;
