//! The columns of a table: which are inputs, and what their cells become.

use crate::data::error::OR_SKIP;
use crate::rng;

/// A column that is an input.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Column {
    /// Numbers: two inputs. The first is `(x - mean) / deviation` with a `scale` and `asinh(x)` without,
    /// zero for an empty cell; the second is one for an empty cell. Neither needs a statistic of the data,
    /// so peers with different rows agree.
    Number {
        /// Its name.
        name: String,
        /// Mean and standard deviation.
        scale: Option<[f64; 2]>,
    },
    /// Names: `buckets` inputs, of which one is one, by a hash of the name. An empty cell is a name.
    ///
    /// **Source:** Weinberger et al., Feature hashing for large scale multitask learning, 2009.
    Category {
        /// Its name.
        name: String,
        /// Number of inputs.
        buckets: usize,
    },
}

impl Column {
    /// Its name.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Number { name, .. } | Self::Category { name, .. } => name,
        }
    }

    /// Number of inputs of the model.
    pub(crate) const fn inputs(&self) -> usize {
        match self {
            Self::Number { .. } => 2,
            Self::Category { buckets, .. } => *buckets,
        }
    }

    /// A cell as it is kept in memory: a number, NaN for an empty one, or a bucket.
    ///
    /// # Errors
    /// If it is no number.
    pub(super) fn cell(&self, text: &str) -> Result<f32, String> {
        match self {
            Self::Number { .. } if text.is_empty() => Ok(f32::NAN),
            Self::Number { scale, .. } => {
                let found = number(text).map_err(|reason| {
                    format!(
                        "{reason} (if the value is missing there, leave the cell empty or write \
                         `task.missing = [{text:?}]`; if the column has names, list it in \
                         `task.categories` or `task.ignore`; {OR_SKIP})"
                    )
                })?;
                Ok(match scale {
                    Some(scale) => scaled(found, *scale),
                    None => found.asinh() as f32,
                })
            }
            Self::Category { buckets, .. } => {
                let bytes = text.bytes();
                let hash = bytes.fold(1, |hash, byte| rng::mix(hash ^ u64::from(byte)));
                Ok(((u128::from(hash) * *buckets as u128) >> 64) as f32)
            }
        }
    }

    pub(super) fn append(&self, cell: f32, into: &mut Vec<f32>) {
        match self {
            Self::Number { .. } if cell.is_nan() => into.extend([0.0, 1.0]),
            Self::Number { .. } => into.extend([cell, 0.0]),
            Self::Category { buckets, .. } => {
                let start = into.len();
                into.resize(start + buckets, 0.0);
                into[start + cell as usize] = 1.0;
            }
        }
    }
}

/// `(value - mean) / deviation`.
pub(super) fn scaled(value: f64, [mean, deviation]: [f64; 2]) -> f32 {
    ((value - mean) / deviation) as f32
}

/// A finite number.
pub(super) fn number(text: &str) -> Result<f64, String> {
    let found = text.parse::<f64>().ok().filter(|found| found.is_finite());
    found.ok_or_else(|| "it is no number".to_owned())
}

/// The column to predict.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Targets {
    /// Classes.
    Labels {
        /// The class of each row.
        labels: Vec<u16>,
        /// Number of classes.
        classes: usize,
    },
    /// Numbers, scaled if the column has a scale.
    Values(Vec<f32>),
}
