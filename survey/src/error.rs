//! Errors in the files of a survey, each in one line.

/// Why measurements cannot be predicted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SurveyError {
    /// A file cannot be read.
    #[error("{path}: cannot be read: {source}")]
    Read {
        /// The file.
        path: String,
        /// The reason.
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
        /// The reason and the valid values.
        reason: String,
    },
    /// The file has too few measurements.
    #[error("{file}: {reason}")]
    Calibration {
        /// The file.
        file: String,
        /// The missing measurement.
        reason: String,
    },
    /// The file of constants is not TOML, or has unknown or missing keys.
    #[error("{file}:{line}: {reason}")]
    Syntax {
        /// The file.
        file: String,
        /// The line, from one.
        line: usize,
        /// The parser's error.
        reason: String,
    },
}
