//! Images as PNG and JPEG: files in one folder for each class, or a column of Parquet files.

mod ahead;
mod decode;
mod error;
mod listing;
pub(super) mod packs;
mod place;

pub(super) use ahead::Ahead;
pub(super) use decode::{decode_all, look};
pub use error::PictureError;
pub(super) use listing::{Files, Listing, WantedClasses};
