//! The name that an operator gives a daemon.

use crate::limits::VITALS_NAME_BYTES_MAX;
use core::fmt;
use serde::{Deserialize, Serialize};

/// A name for people: letters and digits of any script, spaces, `-`, `_` and `.`, in 1 to
/// [`VITALS_NAME_BYTES_MAX`] bytes. It identifies no daemon: two may have the same.
///
/// Other characters are refused, because some of them change how the text around a name is shown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DaemonName(String);

/// Why a text is no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a name has 1 to {VITALS_NAME_BYTES_MAX} bytes of letters, digits, `-`, `_`, `.` and spaces, and no \
     space at its ends"
)]
pub struct NameError;

impl DaemonName {
    /// Checks a name.
    ///
    /// # Errors
    /// If it is empty or too long, or has other characters.
    pub fn new(text: &str) -> Result<Self, NameError> {
        let plain = |c: char| c.is_alphanumeric() || "-_. ".contains(c);
        let fits = (1..=VITALS_NAME_BYTES_MAX).contains(&text.len());
        let whole = text.trim() == text;
        match fits && whole && text.chars().all(plain) {
            true => Ok(Self(text.to_owned())),
            false => Err(NameError),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for DaemonName {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        Self::new(&text)
    }
}

impl From<DaemonName> for String {
    fn from(name: DaemonName) -> Self {
        name.0
    }
}

impl fmt::Display for DaemonName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_change_nothing_around_them() {
        let long = "x".repeat(VITALS_NAME_BYTES_MAX);
        for text in ["gpu1", "Büro 3", "node-0", "a.b_c", "東京", long.as_str()] {
            assert_eq!(DaemonName::new(text).unwrap().as_str(), text);
        }
        let longer = format!("{long}x");
        let reversed = "abc\u{202e}def";
        for text in [
            "",
            " a",
            "a ",
            "a\nb",
            "<b>",
            "a/b",
            reversed,
            longer.as_str(),
        ] {
            assert_eq!(DaemonName::new(text), Err(NameError), "{text:?}");
        }
    }
}
