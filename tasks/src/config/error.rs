//! Errors in a task's configuration, each in one line.

/// An invalid configuration, in one line.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Unknown key.
    #[error("`{table}.{key}` is no key of kind = \"{kind}\", the nearest is `{nearest}`")]
    Key {
        /// The table.
        table: &'static str,
        /// The key.
        key: String,
        /// The kind of task.
        kind: &'static str,
        /// The most similar known key.
        nearest: &'static str,
    },
    /// Unknown name.
    #[error("`{table}.{key}` = \"{name}\" is not known, the nearest is \"{nearest}\"")]
    Name {
        /// The table.
        table: &'static str,
        /// The key.
        key: &'static str,
        /// The name.
        name: String,
        /// The most similar known name.
        nearest: &'static str,
    },
    /// A required key is missing.
    #[error("`{table}.{key}` is missing ({hint})")]
    Missing {
        /// The table.
        table: &'static str,
        /// The key.
        key: &'static str,
        /// The value to write.
        hint: &'static str,
    },
    /// A count outside its bounds.
    #[error("`task.{key}` is {found}, it must be from {least} to {most}")]
    Count {
        /// The key.
        key: &'static str,
        /// The value.
        found: u32,
        /// The smallest allowed value.
        least: u32,
        /// The largest allowed value.
        most: u32,
    },
    /// The share of held-out data is out of bounds.
    #[error("`task.held_out` is {0}, it must be a share from 0.001 to 0.5")]
    HeldOut(f64),
    /// Not a patience.
    #[error("`task.patience_s` is {0}, it must be 1 to 86400 seconds")]
    Patience(f64),
    /// The number of heads does not divide the width.
    #[error("`task.heads` = {heads} does not divide `task.width` = {width}")]
    Heads {
        /// Number of heads.
        heads: u32,
        /// The model's width.
        width: u32,
    },
}

pub(super) fn unknown(
    table: &'static str,
    key: &'static str,
    name: &str,
    names: &[&'static str],
) -> ConfigError {
    ConfigError::Name {
        table,
        key,
        name: name.to_owned(),
        nearest: nearest(name, names),
    }
}

/// The known name that is most similar to a wrong one.
pub(crate) fn nearest(name: &str, names: &[&'static str]) -> &'static str {
    let likeness = |known: &&&str| (strsim::jaro_winkler(name, known) * 1e6) as u64;
    names
        .iter()
        .max_by_key(likeness)
        .copied()
        .unwrap_or_default()
}
