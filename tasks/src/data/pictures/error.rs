//! Why images in files cannot be used.

use crate::data::labels::LabelError;
use crate::data::parquet::ParquetFileError;
use crate::data::text::OR_SKIP;
use std::io;
use std::path::PathBuf;

/// Why images in files cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PictureError {
    /// A file or folder is missing or unreadable.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file or folder.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file is no image that can be read.
    #[error("{}: it cannot be read as PNG or JPEG: {reason} (replace or remove the file, {OR_SKIP})", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The decoder's reason.
        reason: String,
    },
    /// A Parquet file cannot be read.
    #[error(transparent)]
    Parquet(#[from] ParquetFileError),
    /// A label cannot be right.
    #[error(transparent)]
    Label(#[from] LabelError),
    /// A Parquet file without a column of images.
    #[error(
        "{}: there is no column of bytes called `image`, `image.bytes`, `img` or `img.bytes` (it has \
         {there}; rename the column of images)", file.display()
    )]
    NoColumn {
        /// The file.
        file: PathBuf,
        /// Its columns.
        there: String,
    },
    /// A row of a Parquet file without an image.
    #[error("{}: there is no image (remove the row, {OR_SKIP})", .0.display())]
    NoImage(PathBuf),
    /// A row of a Parquet file without a label that can be right.
    #[error("{}: row {row} has no label from 0 to 65535 (remove the row or the file)", file.display())]
    NoLabel {
        /// The file.
        file: PathBuf,
        /// The row, from 0.
        row: usize,
    },
    /// A JPEG file that ends too early.
    #[error("{}: the JPEG ends before its last marker (copy or download the file again, {OR_SKIP})", .0.display())]
    Torn(PathBuf),
    /// A folder without a folder for each class.
    #[error(
        "{}: it has neither the IDX files that MNIST comes in nor a folder of PNG or JPEG files for \
         each class (DIR/CLASS/IMAGE.png, or DIR/train/CLASS/IMAGE.png beside DIR/test)", .0.display()
    )]
    NoClasses(PathBuf),
    /// The folder of a class has no images.
    #[error("{}: no image of this class is in it (files that end in .png, .jpg or .jpeg are read)", .0.display())]
    EmptyClass(PathBuf),
    /// A folder whose name is not one of the classes.
    #[error("{}: its name is none of the {classes} classes, of which `{nearest}` is the nearest", dir.display())]
    OtherClass {
        /// The folder.
        dir: PathBuf,
        /// Number of classes.
        classes: usize,
        /// The most similar name.
        nearest: String,
    },
    /// More folders than classes.
    #[error("{}: it has label {label}, but `task.classes` is {classes} (labels count from 0)", dir.display())]
    MoreClasses {
        /// The folder.
        dir: PathBuf,
        /// Its place among the folders.
        label: usize,
        /// Number of classes.
        classes: usize,
    },
    /// No image to train on or none to hold out.
    #[error(
        "{}: {train} images to train on and {held} held out (add images, or choose another \
         `task.held_out`)", dir.display()
    )]
    TooFew {
        /// The folder.
        dir: PathBuf,
        /// Images to train on.
        train: usize,
        /// Images held out.
        held: usize,
    },
    /// Folders are nested too deeply, for example by circular links.
    #[error("{}: folders this deep are not followed (is it a circular link?)", .0.display())]
    TooDeep(PathBuf),
    /// Every image of a batch is left out.
    #[error("none of the images of a batch can be read (replace or remove them)")]
    NoneLeft,
    /// The thread that decodes images ended.
    #[error(
        "the thread that decodes images ended, which is a bug of a decoder (decode the images again with another program)"
    )]
    Stopped,
}

impl PictureError {
    /// Whether one image is wrong, and not the source.
    pub(crate) const fn is_of_a_record(&self) -> bool {
        matches!(
            self,
            Self::Unreadable { .. } | Self::NoImage(_) | Self::Torn(_)
        )
    }
}
