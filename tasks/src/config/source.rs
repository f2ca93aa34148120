//! Where a task's data come from.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Name of the data inside the binary.
pub const BUNDLED: &str = "bundled";

/// Source of the data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum DataSource {
    /// The images in the binary.
    #[default]
    Bundled,
    /// A folder of IDX files, or a text file or folder.
    Path(PathBuf),
}

impl From<String> for DataSource {
    fn from(text: String) -> Self {
        match text.as_str() {
            BUNDLED => Self::Bundled,
            _ => Self::Path(text.into()),
        }
    }
}

impl From<DataSource> for String {
    fn from(source: DataSource) -> Self {
        match source {
            DataSource::Bundled => BUNDLED.to_owned(),
            DataSource::Path(path) => path.to_string_lossy().into_owned(),
        }
    }
}
