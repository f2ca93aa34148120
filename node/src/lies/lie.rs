//! The ways in which a daemon lies on request, and how they are written.

use std::fmt;
use std::str::FromStr;

words! {
    /// What a lying daemon does to the others.
    pub enum LieMode {
        /// Claims an absurd weight for its contribution, or absurd push-sum mass.
        Weight = "weight",
        /// Sends ten times its contribution, which passes the quarantine.
        Poison = "poison",
        /// Sends minus its contribution.
        SignFlip = "sign-flip",
        /// As the owner of a shard sends a false sum, and votes for it.
        OwnerLie = "owner-lie",
        /// Sends different bytes and votes to different members.
        Equivocate = "equivocate",
        /// Proposes groups in which only its own contribution has weight.
        Propose = "propose",
        /// Claims that a round was decided for values that it made up.
        Decided = "decided",
        /// Tells every peer that it is behind and must fetch a state.
        Behind = "behind",
        /// Gives newcomers a false state.
        State = "state",
        /// Stores slices in another member's name.
        Slot = "slot",
        /// Pushes nothing, but votes.
        Withhold = "withhold",
        /// Says that it takes part, and answers nothing.
        Silent = "silent",
        /// Sends records with bad signatures as fast as it can.
        Flood = "flood",
        /// Sends random messages that are well formed.
        Random = "random",
        /// In place of its votes asks for the last ballot.
        Ballot = "ballot",
        /// Says with its votes that there is no majority.
        Void = "void",
        /// Pushes in one round of seven, and votes in all.
        Rare = "rare",
        /// Gives what others fetch at 9 kB a second.
        SlowDonor = "slow-donor",
    }
}

/// One lie of a daemon: `MODE`, or `MODE:ROUND` for one that begins in a later round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lie {
    /// Its mode.
    pub mode: LieMode,
    /// The first round in which it is told.
    pub from: u64,
}

impl Lie {
    /// True where it is told in this round.
    pub const fn is_told_in(&self, round: u64) -> bool {
        round >= self.from
    }
}

/// A text that is not a lie.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a lie; write {form} with one of {}", modes())]
pub struct LieError {
    text: String,
    form: &'static str,
}

impl LieError {
    pub(crate) fn new(text: &str, form: &'static str) -> Self {
        Self {
            text: text.to_owned(),
            form,
        }
    }
}

fn modes() -> String {
    LieMode::ALL.map(LieMode::word).join(", ")
}

impl fmt::Display for Lie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.from {
            0 => write!(f, "{}", self.mode),
            from => write!(f, "{}:{from}", self.mode),
        }
    }
}

impl FromStr for Lie {
    type Err = LieError;

    fn from_str(text: &str) -> Result<Self, LieError> {
        parse(text).ok_or_else(|| LieError::new(text, "MODE or MODE:ROUND"))
    }
}

/// Reads `MODE` or `MODE:ROUND`.
pub(crate) fn parse(text: &str) -> Option<Lie> {
    let (mode, from) = match text.split_once(':') {
        Some((mode, from)) => (mode, from.parse().ok()?),
        None => (text, 0),
    };
    let mode = LieMode::of_word(mode)?;
    Some(Lie { mode, from })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lies_are_read_and_shown() {
        for mode in LieMode::ALL {
            let text = mode.word();
            let lie: Lie = text.parse().unwrap();
            assert_eq!((lie.mode, lie.to_string().as_str()), (mode, text));
        }
        let later: Lie = "sign-flip:7".parse().unwrap();
        assert_eq!((later.mode, later.from), (LieMode::SignFlip, 7));
        assert!(later.is_told_in(7) && !later.is_told_in(6));
        for text in ["", "weigth", "weight:", "weight:x", "weight:1:2"] {
            let line = text.parse::<Lie>().unwrap_err().to_string();
            let opens =
                format!("`{text}` is not a lie; write MODE or MODE:ROUND with one of weight");
            assert!(line.starts_with(&opens), "{line}");
        }
    }
}
