//! The faults of a scenario and their times.
//!
//! Here the kinds are data. `effects` has what they do to machines, `liar` what a lying machine says.

mod effects;
mod forger;
mod liar;
mod raw;

pub(crate) use forger::Forger;
pub(crate) use liar::Speaker;
pub(crate) use raw::RawFault;

use crate::random::{Purpose, Random};
use core::time::Duration;
use murmurate_protocol::limits::LOST_MEMBER_WAIT;
use murmurate_protocol::{Directive, Phase, Round, Time};
use serde::Deserialize;

/// The time of a fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// At this time.
    At(Time),
    /// A delay after the peer entered a phase of a round or passed it. For an [`Effect::Join`] any
    /// peer counts, because the joining one is not up.
    In {
        /// The round.
        round: Round,
        /// The phase.
        phase: Phase,
        /// The delay.
        delay: Duration,
    },
}

/// A fault, or another change during the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Its time; `None` for a fault that lasts for the whole run.
    pub when: Option<When>,
    /// The machine that it strikes, whose phase counts; the first one of a partition.
    pub peer: usize,
    /// Its effect.
    pub effect: Effect,
}

/// What a fault does.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// A machine stops at once and loses everything but its last checkpoint.
    Crash {
        /// The time after which it restarts from its last checkpoint; `None` for never.
        restart_after: Option<Duration>,
    },
    /// A machine gets slower for a while.
    Straggler {
        /// Factor on the time of its inner steps.
        factor: f64,
        /// Its duration.
        lasts: Duration,
    },
    /// A machine stands still for a while and finds at its end all that came meanwhile.
    Pause {
        /// Its duration.
        lasts: Duration,
    },
    /// Machines cannot reach each other any more, though both reach others.
    MissingLinks {
        /// These pairs.
        pairs: Vec<(usize, usize)>,
        /// And this share of all pairs, drawn from the seed.
        share: f64,
    },
    /// Machines cannot reach the others for a while.
    Partition {
        /// The machines.
        peers: Vec<usize>,
        /// Its duration.
        lasts: Duration,
    },
    /// A machine that was absent at the start joins.
    Join,
    /// A machine leaves with a goodbye.
    Leave,
    /// A machine sends false slices.
    Byzantine {
        /// Its kind of lie.
        lie: Lie,
        /// Its duration.
        lasts: Duration,
    },
    /// The owner of the run directs something at a machine.
    Directive(Directive),
    /// A machine's clock is ahead of all others for the whole run.
    ClockSkew {
        /// The difference.
        ahead: Duration,
    },
    /// Random machines crash. The crashes form a Poisson process.
    RandomCrashes {
        /// Mean time between two crashes anywhere in the swarm.
        mean: Duration,
        /// The time after which they restart; `None` for never.
        restart_after: Option<Duration>,
        /// Its end.
        until: Time,
        /// Most machines that are down at the same time.
        down_max: usize,
    },
}

impl Fault {
    /// Set if machines may be gone for longer than those that sign wait for them: the others may then decide
    /// without them what these have decided, until one side takes over the other's.
    pub(crate) fn parts_for_long(&self) -> bool {
        let gone = match self.effect {
            Effect::Crash { restart_after } => restart_after,
            Effect::Partition { lasts, .. } | Effect::Pause { lasts } => Some(lasts),
            _ => None,
        };
        gone.is_some_and(|gone| gone >= LOST_MEMBER_WAIT)
    }
}

/// What a Byzantine machine sends instead of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Lie {
    /// The same number of random bytes.
    Garbage,
    /// The first half of the bytes.
    Truncated,
    /// The bytes with one bit of the last byte flipped, which may still decode.
    FlippedBit,
    /// Anything that it can sign: other votes, promises and proposals for every receiver, false
    /// decisions and repairs, false calls to catch up, and silence.
    Anything,
    /// No slices, though it votes.
    Withhold,
    /// No slices and no messages, except that it says that it takes part.
    Silent,
    /// An absurd loss of its training: enormous, negative, infinite or not a number.
    Loss,
    /// Scores of contributions with the wrong sign.
    Scores,
    /// True slices, and in place of its votes it asks for the last ballot that it coordinates and promises the
    /// last one of the receiver.
    Ballots,
    /// All as it should be in one round of seven, and as [`Lie::Withhold`] in the others.
    Rare,
}

/// A lie and its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lying {
    pub(crate) lie: Lie,
    pub(crate) until: Time,
}

#[derive(Debug)]
pub(crate) struct RandomCrashes {
    mean: Duration,
    restart_after: Option<Duration>,
    until: Time,
    down_max: usize,
    random: Random,
}

impl RandomCrashes {
    /// Of the effect that random crashes are. `number` gives each process a separate random stream.
    fn new(seed: u64, number: usize, effect: &Effect) -> Option<Self> {
        let Effect::RandomCrashes {
            mean,
            restart_after,
            until,
            down_max,
        } = *effect
        else {
            return None;
        };
        Some(Self {
            mean,
            restart_after,
            until,
            down_max,
            random: Random::new(seed.wrapping_add(number as u64), Purpose::Faults),
        })
    }

    fn next(&mut self, now: Time) -> Option<Time> {
        let gap = self.random.exponential(self.mean.as_secs_f64());
        let at = now + Duration::from_secs_f64(gap);
        (at < self.until).then_some(at)
    }
}
