//! Another daemon with the identity of this one, such as one in a copied directory. The others take the two for
//! one and pass on what each says of itself, so each of the two hears the other's vitals as its own.

use super::table::age_of;
use murmurate_protocol::vitals::{Heard, Vitals};
use std::time::{Duration, Instant};

/// Vitals of an earlier life of this daemon are older than this life. By less than this much they may seem
/// younger, because their age counts from when the first daemon heard them.
const MARGIN: Duration = Duration::from_secs(2);

/// Vitals of the other one are looked at this often.
const APART_MIN: Duration = Duration::from_secs(2);

/// By how much a sequence number goes beyond that of the other one, so that the others pass on these vitals and
/// not the next ones of the other: numbers are times in milliseconds.
const LEAD_MS: u64 = 10_000;

/// What another daemon with this identity said of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenElsewhere {
    /// What it said.
    pub vitals: Vitals,
    /// When this daemon heard it.
    pub heard: Instant,
}

/// What a daemon knows of others with its identity.
#[derive(Debug)]
pub(super) struct Elsewhere {
    born: Instant,
    last: Option<SeenElsewhere>,
}

impl Elsewhere {
    /// Nothing is known to a daemon that began its life then.
    pub(super) const fn new(born: Instant) -> Self {
        Self { born, last: None }
    }

    /// Whether vitals in this daemon's name, whose own last number is this, were made by another one, if their
    /// signature is right.
    pub(super) fn may_be(&self, heard: &Heard, own: u64, now: Instant) -> bool {
        let life = now.saturating_duration_since(self.born);
        let sequence = heard.signed.vitals.sequence;
        let known = self.last.as_ref().is_some_and(|last| {
            sequence <= last.vitals.sequence
                || now.saturating_duration_since(last.heard) < APART_MIN
        });
        sequence > own && age_of(heard) + MARGIN < life && !known
    }

    /// Keeps them, now that their signature was checked.
    pub(super) fn keep(&mut self, vitals: Vitals, now: Instant) {
        self.last = Some(SeenElsewhere { vitals, heard: now });
    }

    /// What was heard last.
    pub(super) const fn last(&self) -> Option<&SeenElsewhere> {
        self.last.as_ref()
    }

    /// A sequence number for this daemon's next vitals that the other one hears, whatever it says.
    pub(super) fn outbid(&self, own: u64) -> u64 {
        let theirs = self.last.as_ref().map_or(0, |last| last.vitals.sequence);
        own.max(theirs).saturating_add(LEAD_MS)
    }
}
