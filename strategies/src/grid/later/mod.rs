//! Methods whose exchange is not built yet. They are listed, and refused with the reason.

mod methods;

pub use methods::LATER;

use super::StrategyError;
use super::entry::Entry;

/// A method that no exchange supports yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Later {
    /// The key that would choose it.
    pub key: &'static str,
    /// Its name, summary, equation and source.
    pub entry: Entry,
    /// What is missing.
    pub reason: &'static str,
    /// The nearest that works.
    pub remedy: &'static str,
}

const fn later(
    key: &'static str,
    [name, summary, equation, source]: [&'static str; 4],
    reason: &'static str,
    remedy: &'static str,
) -> Later {
    Later {
        key,
        entry: Entry::new(name, summary, equation, source),
        reason,
        remedy,
    }
}

/// Refuses a name that is one of these.
pub(super) fn check(key: &str, name: &str) -> Result<(), StrategyError> {
    match LATER
        .iter()
        .find(|later| later.key == key && later.entry.name == name)
    {
        None => Ok(()),
        Some(later) => Err(StrategyError::Refused {
            key: later.key,
            reason: later.reason,
            remedy: later.remedy,
        }),
    }
}
