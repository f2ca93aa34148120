//! A value of the configuration that is not allowed, before its line in the file is known.

use super::ConfigError;
use super::error::Place;
use std::path::Path;

/// A value that is not allowed.
pub(super) struct Wrong {
    /// The key with its tables, such as `run.rounds`; empty if the message names the key.
    key: String,
    pub(super) message: String,
}

impl Wrong {
    pub(super) fn new(key: &str, message: impl Into<String>) -> Self {
        Self {
            key: key.to_owned(),
            message: message.into(),
        }
    }

    /// An error of another crate, whose message names the key in backticks.
    pub(super) fn named(section: &str, message: &impl ToString) -> Self {
        let message = message.to_string();
        let quoted = message.split('`').skip(1).step_by(2);
        let key = quoted.into_iter().find(|word| word.contains('.'));
        let key = match key {
            Some(key) if key.starts_with(section) => key.to_owned(),
            Some(key) => format!("{section}.{key}"),
            None if message.starts_with("preset") => format!("{section}.preset"),
            None => section.to_owned(),
        };
        Self { key, message }
    }

    pub(super) fn in_file(self, path: &Path, text: &str) -> ConfigError {
        let place = match line_of(text, &self.key) {
            Some(line) => Place::Line(path.to_owned(), line),
            None => Place::File(path.to_owned()),
        };
        ConfigError::Invalid {
            place,
            message: self.message,
        }
    }
}

/// The line that sets `key`, or the line that opens its table.
fn line_of(text: &str, key: &str) -> Option<usize> {
    let (section, name) = key.rsplit_once('.').unwrap_or((key, ""));
    let mut here = "";
    let mut opened = None;
    for (index, line) in text.lines().map(str::trim).enumerate() {
        if let Some(header) = line.strip_prefix('[').and_then(|l| l.split(']').next()) {
            here = header.trim();
            if here == section || here == key {
                opened = Some(index + 1);
            }
        } else if here == section
            && line
                .strip_prefix(name)
                .is_some_and(|rest| rest.trim_start().starts_with('='))
        {
            return Some(index + 1);
        }
    }
    opened
}
