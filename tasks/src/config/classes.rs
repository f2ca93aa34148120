//! The classes of labelled data.

use super::error::ConfigError;
use super::range::count;
use serde::{Deserialize, Serialize};

/// The most classes.
pub const CLASSES_MAX: u32 = 65_536;

/// The classes of labelled data as the configuration gives them, so that daemons with different data
/// make the same model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "`classes` must be a number of classes or a list of their names"
)]
pub enum Classes {
    /// Their number. Labels count from zero.
    Count(u32),
    /// Their names in the order of their labels.
    Names(Vec<String>),
}

impl Classes {
    /// Number of classes.
    pub fn count(&self) -> usize {
        match self {
            Self::Count(count) => *count as usize,
            Self::Names(names) => names.len(),
        }
    }

    /// Their names, if these are given.
    pub fn names(&self) -> Option<&[String]> {
        match self {
            Self::Count(_) => None,
            Self::Names(names) => Some(names),
        }
    }

    /// Checks the number, and that no name is given twice.
    ///
    /// # Errors
    /// Names the key.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let found = u32::try_from(self.count()).unwrap_or(u32::MAX);
        count("classes", found, 1..=CLASSES_MAX)?;
        let mut names = self.names().unwrap_or_default().to_vec();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(ConfigError::Twice {
                key: "classes",
                name: pair[0].clone(),
            }),
            None => Ok(()),
        }
    }
}
