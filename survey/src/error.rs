//! What is wrong with a survey's files, in one line.

/// Why measurements cannot be predicted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SurveyError {
    /// A file cannot be read.
    #[error("{path}: cannot be read: {source}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A cell of the measurements, or a constant, outside its range.
    #[error("{file}:{line}: `{key}` {reason}")]
    Value {
        /// The file.
        file: String,
        /// The line, from one.
        line: usize,
        /// The column or key.
        key: String,
        /// What is wrong with it and what it may be.
        reason: String,
    },
    /// Measurements that tell too little.
    #[error("{file}: {reason}")]
    Calibration {
        /// The file.
        file: String,
        /// What is missing.
        reason: String,
    },
    /// The file of constants is not TOML, or has unknown or missing keys.
    #[error("{file}:{line}: {reason}")]
    Syntax {
        /// The file.
        file: String,
        /// The line, from one.
        line: usize,
        /// What the parser found.
        reason: String,
    },
}
