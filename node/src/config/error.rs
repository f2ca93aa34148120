//! Errors of the configuration. Each is one line that names the file or flag and says what to do.

use murmurate_strategies::names::hint;
use std::path::{Path, PathBuf};

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error(
        "{}: {reason}; `murmurate init --to {}` writes one", path.display(), path.display()
    )]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The system's error.
        reason: String,
    },
    /// A value, key or line is wrong.
    #[error("{place}: {message}")]
    Invalid {
        /// The line of the file, or the flag.
        place: Place,
        /// The problem and what to do.
        message: String,
    },
    /// The file exists already and may not be replaced.
    #[error("{} exists already; give another --to, or --force to replace it", .0.display())]
    Exists(PathBuf),
    /// The file cannot be written.
    #[error("{}: cannot be written: {reason}", path.display())]
    Unwritable {
        /// The path of the file.
        path: PathBuf,
        /// The system's error.
        reason: String,
    },
}

/// The place of a wrong value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of a file, counted from one.
    Line(PathBuf, usize),
    /// A file as a whole.
    File(PathBuf),
    /// A flag, with its dashes.
    Flag(&'static str),
    /// A variable of the environment.
    Variable(String),
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Line(path, line) => write!(f, "{}:{line}", path.display()),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Flag(flag) => f.write_str(flag),
            Self::Variable(name) => f.write_str(name),
        }
    }
}

impl ConfigError {
    /// Shortens the TOML reader's message to one line and suggests the nearest name for an unknown
    /// one.
    pub(super) fn from_toml(path: &Path, text: &str, error: &toml::de::Error) -> Self {
        let Some(span) = error.span() else {
            let place = Place::File(path.to_owned());
            let message = explain(error.message());
            return Self::Invalid { place, message };
        };
        let before = text.get(..span.start).unwrap_or(text);
        let place = Place::Line(path.to_owned(), before.matches('\n').count() + 1);
        let line = before.lines().next_back().unwrap_or_default();
        let key = line.split_once('=').map(|(key, _)| key.trim());
        let message = explain(error.message());
        let message = match key.filter(|_| message.starts_with(INSTEAD)) {
            Some(key) => format!("`{key}`: {message}"),
            None => message,
        };
        Self::Invalid { place, message }
    }
}

/// How a message about a value of another type begins.
const INSTEAD: &str = "give ";

/// Says what a value should be, where it is of another type.
fn of_type(line: &str) -> Option<String> {
    let (found, expected) = line
        .strip_prefix("invalid type: ")
        .or_else(|| line.strip_prefix("invalid value: "))?
        .split_once(", expected ")?;
    let expected = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0 on",
        "i64" | "i32" => "a whole number",
        float if matches!(float.as_bytes(), [b'f', b'3' | b'6', ..]) => "a number",
        "a string" => "a text in quotes",
        "a boolean" => "true or false",
        "a sequence" => "a list in brackets",
        other => other,
    };
    let found = found.strip_prefix("string ").unwrap_or(found);
    Some(format!("{INSTEAD}{expected} in place of {found}"))
}

/// Replaces serde's list of all names by the one that was probably meant, and its names of types.
pub(super) fn explain(message: &str) -> String {
    let line = message.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    if let Some(message) = of_type(&line) {
        return message;
    }
    let Some(rest) = line.strip_prefix("unknown field `") else {
        return match line.strip_prefix("unknown variant `") {
            Some(rest) => suggest("unknown value", rest),
            None => line,
        };
    };
    suggest("unknown key", rest)
}

/// Parses the text after "unknown field `": the wrong name, a backtick, then the known names.
fn suggest(what: &str, rest: &str) -> String {
    let mut quoted = rest.split('`').step_by(2);
    let name = quoted.next().unwrap_or_default();
    let known: Vec<&str> = rest.split('`').skip(2).step_by(2).collect();
    format!("{what} `{name}`; {}", hint(name, &known))
}

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

    /// A value of this key that is not possible: the message is the key and this.
    pub(super) fn of(key: &str, rest: impl std::fmt::Display) -> Self {
        Self::new(key, format!("`{key}` {rest}"))
    }

    /// An error of another crate, whose message names the key in backticks.
    pub(super) fn named(section: &str, message: &impl ToString) -> Self {
        let message = message.to_string();
        let of_value = message.split_once(": ");
        let plain = of_value.and_then(|(key, of)| Some(format!("{key}: {}", of_type(of)?)));
        let message = plain.unwrap_or(message);
        let unknown = message.strip_prefix("key `");
        let unknown = unknown.and_then(|rest| rest.split('`').next());
        let mut quoted = message.split('`').skip(1).step_by(2);
        let key = quoted.find(|word| word.contains('.')).or(unknown);
        let key = match key {
            Some(key) if key.starts_with(section) => key.to_owned(),
            Some(key) => format!("{section}.{key}"),
            None if message.starts_with("preset") => format!("{section}.preset"),
            None => section.to_owned(),
        };
        Self { key, message }
    }

    /// A table with a bad value. Where the message names no key, as of a value of another type,
    /// the error does.
    pub(super) fn of_table(section: &str, error: &toml::de::Error) -> Self {
        let wrong = Self::named(section, &explain(error.message()));
        let whole = error.to_string();
        let mut lines = whole.lines();
        let key = lines.find_map(|line| line.strip_prefix("in `")?.strip_suffix('`'));
        let Some(key) = key.filter(|_| wrong.key == section) else {
            return wrong;
        };
        let named = wrong.message.starts_with(&format!("`{key}`"));
        let name = if named {
            String::new()
        } else {
            format!("`{key}`: ")
        };
        let first = key.split('.').next().unwrap_or(key);
        Self::new(&format!("{section}.{first}"), name + &wrong.message)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_get_the_nearest_or_all() {
        let cases = [
            (
                "unknown field `rouds`, expected one of `name`, `seed`, `rounds`",
                "unknown key `rouds`; did you mean `rounds`? There are: name, seed, rounds",
            ),
            (
                "unknown field `zzzzzz`, expected `name` or `seed`",
                "unknown key `zzzzzz`; there are: name, seed",
            ),
            (
                "unknown variant `by-lable`, expected `iid` or `by-label`",
                "unknown value `by-lable`; did you mean `by-label`? There are: iid, by-label",
            ),
            (
                "unknown field `a`, there are no fields",
                "unknown key `a`; nothing may stand here",
            ),
            (
                "invalid type: string \"x\",\n expected u64",
                "give a whole number from 0 on in place of \"x\"",
            ),
            (
                "invalid value: integer `-5`, expected u64",
                "give a whole number from 0 on in place of integer `-5`",
            ),
        ];
        for (message, expected) in cases {
            assert_eq!(explain(message), expected);
        }
    }
}
