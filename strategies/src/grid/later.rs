//! Methods whose exchange is not built yet. They are listed, and refused with the reason.

use super::StrategyError;
use super::entry::Entry;

/// A method that no exchange supports yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Later {
    /// The key that would choose it.
    pub key: &'static str,
    /// Its name, summary, equation and source.
    pub entry: Entry,
    /// The reason, in the words of the refusal.
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

const CODEC: &str = "compression.codec";

/// All of them, by key and name.
pub const LATER: [Later; 1] = [later(
    CODEC,
    [
        "moniqua",
        "parameters modulo a bound of their distance",
        "sent Q(x mod B), decoded next to the receiver's own x",
        "Lu and De Sa, ICML 2020",
    ],
    "a receiver decodes it relative to its own parameters, which decoders do not get",
    "use \"int8\"",
)];

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
