//! Errors in a scenario file, each in one line.

/// Why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("{path}: cannot be read: {source}")]
    Read {
        /// The file.
        path: String,
        /// The reason.
        source: std::io::Error,
    },
    /// Not TOML, or a value of a wrong type.
    #[error("{file}:{line}: {reason}")]
    Syntax {
        /// The file.
        file: String,
        /// The line, from one.
        line: usize,
        /// The reason.
        reason: String,
    },
    /// An unknown key.
    #[error("{file}:{line}: unknown key `{key}`; {hint}")]
    UnknownKey {
        /// The file.
        file: String,
        /// The line, from one.
        line: usize,
        /// The key.
        key: String,
        /// The known key that was meant, if one is close, and the keys that may stand there. Both are as in the
        /// messages of the daemon.
        hint: String,
    },
    /// An invalid value.
    #[error("{file}:{line}: `{key}` {reason}")]
    Value {
        /// The file.
        file: String,
        /// The line of the key, or of its table if the key is missing.
        line: usize,
        /// The key.
        key: String,
        /// The reason, and the valid values.
        reason: String,
    },
}
