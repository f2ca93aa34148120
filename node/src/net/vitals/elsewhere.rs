//! Another daemon with the identity of this one, such as one in a copied directory. The others take the two for
//! one and pass on what each says of itself, so each of the two hears the other's vitals as its own.

use super::table::age_of;
use murmurate_protocol::vitals::{Heard, Vitals};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Vitals of an earlier life of this daemon are older than this life. By less than this much they may seem
/// younger, because their age counts from when the first daemon heard them.
const MARGIN: Duration = Duration::from_secs(2);

/// Vitals of the other one are looked at this often.
const APART_MIN: Duration = Duration::from_secs(2);

/// Vitals of this life that are known by their numbers. Those before them are taken for this daemon's own.
const SAID_MAX: usize = 256;

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
    /// The numbers of this daemon's last vitals, oldest first.
    said: VecDeque<u64>,
    last: Option<SeenElsewhere>,
}

impl Elsewhere {
    /// Nothing is known to a daemon that began its life then.
    pub(super) const fn new(born: Instant) -> Self {
        Self {
            born,
            said: VecDeque::new(),
            last: None,
        }
    }

    /// This daemon says something with this number.
    pub(super) fn says(&mut self, sequence: u64) {
        if self.said.len() == SAID_MAX {
            self.said.pop_front();
        }
        self.said.push_back(sequence);
    }

    /// Whether this daemon has said what has this number, or may have.
    fn has_said(&self, sequence: u64) -> bool {
        let forgotten = self.said.front().filter(|_| self.said.len() == SAID_MAX);
        forgotten.is_some_and(|oldest| sequence < *oldest) || self.said.contains(&sequence)
    }

    /// Whether vitals in this daemon's name were made by another one, if their signature is right.
    pub(super) fn may_be(&self, heard: &Heard, now: Instant) -> bool {
        let life = now.saturating_duration_since(self.born);
        let sequence = heard.signed.vitals.sequence;
        let known = self.last.as_ref().is_some_and(|last| {
            sequence <= last.vitals.sequence
                || now.saturating_duration_since(last.heard) < APART_MIN
        });
        !self.has_said(sequence) && age_of(heard) + MARGIN < life && !known
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
