//! What one peer knows of another: its link, its own words, its conduct, and how it is reached.

use crate::core::absence::Absence;
use crate::wire::{Muster, PeerRecord};
use crate::{Branch, Digest, Round, Time};
use core::time::Duration;

/// This peer's knowledge of one other peer.
#[derive(Clone, Debug, Default)]
pub struct Remote {
    /// Set while a link is up.
    pub linked: bool,
    /// Set once it said a compatible hello on this link.
    pub greeted: bool,
    /// Set while it takes part in rounds, as it says.
    pub ready: bool,
    /// How far it is on its way to its first round, as it says.
    pub muster: Muster,
    /// Set while it takes part for the first time and is not waited for.
    pub probation: bool,
    /// The last round in which it was in a group with this peer, on this link.
    pub grouped: Option<Round>,
    /// Set from a failure to do its part until it speaks.
    pub suspected: bool,
    /// The round it is in, in its own words.
    pub round: Round,
    /// Its anchor when it said hello.
    pub anchor: Option<Digest>,
    /// Round-trip time, once measured.
    pub rtt: Option<Duration>,
    /// Bytes per second, once measured.
    pub rate: Option<u64>,
    /// Misbehaviour so far.
    pub score: u32,
    /// Cut off for good.
    pub banned: bool,
    pub(crate) conduct: Conduct,
    pub(crate) contact: Contact,
}

/// How well a remote has done its part.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conduct {
    /// The round in which it is waited for next, and the rounds until the time after.
    pub(crate) trial: Option<(Round, u64)>,
    /// Rounds without a contribution of it.
    pub(crate) absence: Absence,
}

/// How a remote is reached, and the attempts so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contact {
    /// Set if its certificate gives it no part in rounds.
    pub(crate) observes: bool,
    /// Set once this peer cut it off on this link: its slices are rejected.
    pub(crate) refused: bool,
    pub(crate) record: Option<PeerRecord>,
    /// When this peer last greeted it.
    pub(crate) hello_at: Option<Time>,
    pub(crate) dials: u32,
    /// When it is dialled next.
    pub(crate) dial_at: Option<Time>,
    /// Set if it has the state with which this peer began, and begins when it hears of that.
    pub(crate) together: bool,
    /// By how many seconds its clock is ahead of this peer's, in its own record; zero if about right.
    pub(crate) clock: Option<i64>,
    /// Set once its wrong clock was reported.
    pub(crate) clock_told: bool,
    /// Set if their last link was one too many: it is not dialled for the sake of a link.
    pub(crate) spared: bool,
    /// Set once it said goodbye because it leaves.
    pub(crate) left: bool,
    /// The branch that it is in, in its own words. Few have one, and it is large.
    pub(crate) branch: Option<Box<Branch>>,
    /// Since when its link is gone, if it was in groups with this peer until then, or this peer knows no result, and it
    /// said no goodbye.
    pub(crate) lost: Option<Time>,
    /// Set while its branch is to be merged with this one: until then their rounds differ.
    pub(crate) apart: bool,
}

/// Rounds after which a peer that always comes late is waited for again.
const TRIAL_GAP_MAX: u64 = 64;

/// Dials of a peer that refused this one: left alone until its record changes.
pub(crate) const DIALS_REFUSED: u32 = u32::MAX;

impl Remote {
    /// Where it can be reached, in its own words, once it said so.
    pub const fn record(&self) -> Option<&PeerRecord> {
        self.contact.record.as_ref()
    }

    /// A link is up, and it said a compatible hello on it.
    pub(crate) const fn is_here(&self) -> bool {
        self.linked && self.greeted
    }

    /// Away though it takes part: it neither said goodbye nor was sent away.
    pub const fn is_missed(&self) -> bool {
        let contact = &self.contact;
        let expected = !contact.left && !contact.spared && !contact.refused && !contact.observes;
        expected && !self.greeted && !self.banned && contact.dials != DIALS_REFUSED
    }

    /// It takes part again, from `round` on. At first it is on probation and no peer waits for it.
    /// Then it is waited for in one round, and, if it is late again, less and less often. A
    /// newcomer begins its first rounds a little after the others and would always be late if no
    /// peer waited.
    pub(crate) fn on_trial(&mut self, round: Round) {
        let (from, gap) = self.conduct.trial.unwrap_or((round.next(), 1));
        self.probation = round < from;
        self.conduct.trial = Some(if self.probation {
            (from, gap)
        } else {
            (
                Round(round.0.saturating_add(gap)),
                (2 * gap).min(TRIAL_GAP_MAX),
            )
        });
    }

    /// It did its part with others: from now on others wait for it as for any peer.
    pub(crate) fn settle(&mut self) {
        self.probation = false;
        self.conduct.trial = None;
    }

    /// Lets it be dialled again from the shortest wait on, unless one of the two refused the other.
    pub(crate) fn forgive_dials(&mut self) {
        if self.contact.dials != DIALS_REFUSED {
            self.contact.dials = 0;
        }
    }
}
