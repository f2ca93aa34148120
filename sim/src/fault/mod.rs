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
use murmurate_protocol::{Directive, Phase, Round, Time};

/// The time of a fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// At this time.
    At(Time),
    /// A delay after the peer entered a phase of a round or passed it. For a [`Fault::Join`] any
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
pub enum Fault {
    /// A machine stops at once and loses everything but its last checkpoint.
    Crash {
        /// The machine.
        peer: usize,
        /// Its time.
        when: When,
        /// The time after which it restarts from its last checkpoint; `None` for never.
        restart_after: Option<Duration>,
    },
    /// A machine gets slower for a while.
    Straggler {
        /// The machine.
        peer: usize,
        /// Its time.
        when: When,
        /// Factor on the time of its inner steps.
        factor: f64,
        /// Its duration.
        lasts: Duration,
    },
    /// A machine stands still for a while and finds at its end all that came meanwhile.
    Pause {
        /// The machine.
        peer: usize,
        /// Its time.
        when: When,
        /// Its duration.
        lasts: Duration,
    },
    /// Machines cannot reach each other any more, though both reach others.
    MissingLinks {
        /// Its time.
        when: When,
        /// These pairs.
        pairs: Vec<(usize, usize)>,
        /// And this share of all pairs, drawn from the seed.
        share: f64,
    },
    /// Machines cannot reach the others for a while.
    Partition {
        /// The machine.
        peers: Vec<usize>,
        /// Its time. A phase is that of the first of these machines.
        when: When,
        /// Its duration.
        lasts: Duration,
    },
    /// A machine that was absent at the start joins.
    Join {
        /// The machine.
        peer: usize,
        /// Its time.
        when: When,
    },
    /// A machine leaves with a goodbye.
    Leave {
        /// The machine.
        peer: usize,
        /// Its time.
        when: When,
    },
    /// A machine sends false slices.
    Byzantine {
        /// The machine.
        peer: usize,
        /// Its start.
        when: When,
        /// What it sends instead.
        lie: Lie,
        /// Its duration.
        lasts: Duration,
    },
    /// The owner of the run directs something at a machine.
    Directive {
        /// The machine.
        peer: usize,
        /// Its time.
        when: When,
        /// What is directed.
        directive: Directive,
    },
    /// A machine's clock is ahead of all others for the whole run.
    ClockSkew {
        /// The machine.
        peer: usize,
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
    /// Whether machines that go on may be without others that come back: two groups of one round may then
    /// end with different bits, until one of them takes over the other's.
    pub(crate) fn parts(&self) -> bool {
        match self {
            Self::Crash { restart_after, .. } => restart_after.is_some(),
            Self::Partition { .. }
            | Self::MissingLinks { .. }
            | Self::Pause { .. }
            | Self::RandomCrashes { .. }
            | Self::Join { .. } => true,
            Self::Leave { .. }
            | Self::Straggler { .. }
            | Self::Byzantine { .. }
            | Self::Directive { .. }
            | Self::ClockSkew { .. } => false,
        }
    }

    /// The time of the fault and the machine whose phase counts; `None` for random faults.
    pub(crate) fn trigger(&self) -> Option<(When, usize)> {
        match self {
            Self::Crash { peer, when, .. }
            | Self::Straggler { peer, when, .. }
            | Self::Pause { peer, when, .. }
            | Self::Byzantine { peer, when, .. }
            | Self::Directive { peer, when, .. }
            | Self::Join { peer, when }
            | Self::Leave { peer, when } => Some((*when, *peer)),
            Self::MissingLinks { when, .. } => Some((*when, 0)),
            Self::Partition { peers, when, .. } => Some((*when, peers.first().copied()?)),
            Self::RandomCrashes { .. } | Self::ClockSkew { .. } => None,
        }
    }
}

/// What a Byzantine machine sends instead of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// An absurd loss of its training: enormous, negative, infinite or not a number.
    Loss,
    /// Scores of contributions with the wrong sign.
    Scores,
    /// No slices and no messages, except that it says that it takes part.
    Silent,
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

/// One process of random crashes.
#[derive(Debug)]
pub(crate) struct RandomCrashes {
    mean: Duration,
    restart_after: Option<Duration>,
    until: Time,
    down_max: usize,
    random: Random,
}

impl RandomCrashes {
    /// From a scenario's fault. `number` gives each process a separate random stream.
    pub(crate) fn new(
        seed: u64,
        number: usize,
        (mean, restart_after): (Duration, Option<Duration>),
        (until, down_max): (Time, usize),
    ) -> Self {
        let random = Random::new(seed.wrapping_add(number as u64), Purpose::Faults);
        Self {
            mean,
            restart_after,
            until,
            down_max,
            random,
        }
    }

    fn next(&mut self, now: Time) -> Option<Time> {
        let gap = self.random.exponential(self.mean.as_secs_f64());
        let at = now + Duration::from_secs_f64(gap);
        (at < self.until).then_some(at)
    }
}
