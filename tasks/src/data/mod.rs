//! Data and its shards. This module uses neither models nor devices.

mod bad_records;
mod bundled;
mod corpus;
mod dataset;
mod dealt;
mod division;
mod encoder;
mod epochs;
mod error;
mod feed;
mod first_bytes;
mod idx;
mod images;
mod labelled;
mod labels;
mod parquet;
mod pictures;
mod shard;
mod source;
mod stream;
mod table;
mod text;
mod tokens;

pub(crate) use bad_records::BadRecords;
use corpus::Corpus;
pub use dataset::Dataset;
pub(crate) use dataset::Units;
pub(crate) use dealt::Dealt;
use epochs::Epochs;
pub use error::DataError;
pub(crate) use error::{Problem, at};
pub use feed::MEMORY_BYTES_MAX;
pub(crate) use feed::{Feed, Reading};
pub(crate) use idx::{IMAGE_SIDE_MAX, ImageShape};
pub use idx::{encode_images, encode_labels};
pub(crate) use images::{DECODED_IN_MEMORY_MAX, ImageData, Taken};
pub use labelled::{Labelled, LabelledPair};
#[cfg(test)]
pub(crate) use pictures::png_of;
pub(crate) use shard::ShardError;
pub use shard::{ShardKind, Shards};
pub(crate) use source::read_text;
pub(crate) use table::{Table, Targets};
pub use text::split_text;
pub use tokens::Tokens;
