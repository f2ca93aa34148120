//! Why a configuration makes no sense, each in one line.

/// A configuration that makes no sense, in one line.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No such key.
    #[error("`{table}.{key}` is no key of kind = \"{kind}\", the nearest is `{nearest}`")]
    Key {
        /// The table.
        table: &'static str,
        /// The key.
        key: String,
        /// The kind of task.
        kind: &'static str,
        /// The nearest known key.
        nearest: &'static str,
    },
    /// No such name.
    #[error("`{table}.{key}` = \"{name}\" is not known, the nearest is \"{nearest}\"")]
    Name {
        /// The table.
        table: &'static str,
        /// The key.
        key: &'static str,
        /// The name.
        name: String,
        /// The nearest known name.
        nearest: &'static str,
    },
    /// A key that must be there is not.
    #[error("`{table}.{key}` is missing ({hint})")]
    Missing {
        /// The table.
        table: &'static str,
        /// The key.
        key: &'static str,
        /// What to write.
        hint: &'static str,
    },
    /// A count out of its bounds.
    #[error("`task.{key}` is {found}, it must be from {least} to {most}")]
    Count {
        /// The key.
        key: &'static str,
        /// The value.
        found: u32,
        /// The least.
        least: u32,
        /// The most.
        most: u32,
    },
    /// Not a share.
    #[error("`task.held_out` is {0}, it must be a share from 0.001 to 0.5")]
    HeldOut(f64),
    /// Heads must divide the width.
    #[error("`task.heads` = {heads} does not divide `task.width` = {width}")]
    Heads {
        /// Heads.
        heads: u32,
        /// Width.
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

/// The known name that is most like a wrong one.
pub(crate) fn nearest(name: &str, names: &[&'static str]) -> &'static str {
    let likeness = |known: &&&str| (strsim::jaro_winkler(name, known) * 1e6) as u64;
    names
        .iter()
        .max_by_key(likeness)
        .copied()
        .unwrap_or_default()
}
