//! Images as PNG and JPEG files: one folder for each class.

mod ahead;
mod decode;
mod error;
mod listing;

pub(super) use ahead::Ahead;
pub(super) use decode::{decode_all, look};
pub use error::PictureError;
pub(super) use listing::{Files, Listing, WantedClasses};
