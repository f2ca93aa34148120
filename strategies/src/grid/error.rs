//! Errors of a configuration that is no strategy: one line each, with the key and what to do.

use crate::KeptBackError;
use crate::names::hint;
use crate::parameter::ParameterError;
use murmurate_protocol::PlanError;

/// Why a configuration is not a strategy.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StrategyError {
    /// Tensors cannot stay with a peer.
    #[error(transparent)]
    KeptBack(#[from] KeptBackError),
    /// Not TOML.
    #[error("line {line}: {message}")]
    Syntax {
        /// The line, from one; zero where it is not known.
        line: usize,
        /// What the parser says.
        message: String,
    },
    /// No preset of this name.
    #[error("preset `{found}` does not exist; {hint}")]
    UnknownPreset {
        /// The name.
        found: String,
        /// The nearest and all there are.
        hint: String,
    },
    /// No method of this name, whatever chooses it.
    #[error(
        "strategy `{found}` does not exist; nearest: {nearest}; `murmurate strategies` lists all"
    )]
    UnknownMethod {
        /// The name.
        found: String,
        /// The nearest names.
        nearest: String,
    },
    /// No key of this name.
    #[error("key `{key}` does not exist; {hint}")]
    UnknownKey {
        /// Its full name.
        key: String,
        /// The nearest and all there are.
        hint: String,
    },
    /// No method of this name.
    #[error("`{key}`: `{found}` does not exist; {hint}")]
    UnknownValue {
        /// The key.
        key: String,
        /// Its value.
        found: String,
        /// The nearest and all there are.
        hint: String,
    },
    /// A value of the wrong type.
    #[error("`{key}`: {message}")]
    Type {
        /// The key.
        key: String,
        /// The type that was found, and the one that is needed.
        message: String,
    },
    /// A key is missing.
    #[error("`{key}` is missing; {needed}")]
    Missing {
        /// The key.
        key: String,
        /// What to give.
        needed: &'static str,
    },
    /// A value out of its range.
    #[error("`{key}` is {found}; it must be {needed}")]
    Range {
        /// The key.
        key: String,
        /// Its value.
        found: String,
        /// The range.
        needed: String,
    },
    /// A key that means nothing for the method chosen.
    #[error("`{key}` does not apply to {method}; remove it")]
    DoesNotApply {
        /// The key.
        key: String,
        /// The method chosen.
        method: String,
    },
    /// A combination that cannot work.
    #[error("`{key}`: {reason}; {remedy}")]
    Refused {
        /// The key to change.
        key: &'static str,
        /// Why it cannot work.
        reason: &'static str,
        /// The nearest combination that does.
        remedy: &'static str,
    },
    /// More fragments than parameters.
    #[error("`overlap.fragments` is {fragments}, but the model has {parameters} parameters")]
    Fragments {
        /// Fragments.
        fragments: usize,
        /// Parameters.
        parameters: usize,
    },
    /// A pattern that fits the name of no tensor.
    #[error(
        "`inner.no_decay`: no tensor's name fits `{pattern}`; a tensor of this model is `{example}`"
    )]
    NoTensor {
        /// The pattern.
        pattern: String,
        /// The name of a tensor.
        example: String,
    },
    /// A method's own parameters cannot be read.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// The plan cannot be.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

impl StrategyError {
    /// A value out of its range.
    pub(super) fn range(key: &str, found: impl ToString, needed: &str) -> Self {
        Self::Range {
            key: key.to_owned(),
            found: found.to_string(),
            needed: needed.to_owned(),
        }
    }

    /// A name that is none of these.
    pub(super) fn unknown(key: &str, found: &str, known: &[&str]) -> Self {
        Self::UnknownValue {
            key: key.to_owned(),
            found: found.to_owned(),
            hint: hint(found, known),
        }
    }

    /// A key that is not given, and what to give.
    pub(super) fn missing(key: &str, needed: &'static str) -> Self {
        let key = key.to_owned();
        Self::Missing { key, needed }
    }
}

/// The remedy for what signed statements do not cover, or another one.
macro_rules! no_liars {
    () => {
        "set agreement.liars to 0"
    };
    ($or:literal) => {
        concat!(no_liars!(), ", or ", $or)
    };
}
pub(super) use no_liars;

pub(super) const fn refused(
    key: &'static str,
    reason: &'static str,
    remedy: &'static str,
) -> Result<(), StrategyError> {
    Err(StrategyError::Refused {
        key,
        reason,
        remedy,
    })
}

/// Refuses a combination where it is there.
pub(super) fn refuse(
    is_there: bool,
    key: &'static str,
    reason: &'static str,
    remedy: &'static str,
) -> Result<(), StrategyError> {
    if is_there {
        refused(key, reason, remedy)
    } else {
        Ok(())
    }
}
