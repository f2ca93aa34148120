//! Deadlines from measurements: median + k x MAD over the last waits, for each peer. The timer table has at most
//! one deadline of each kind; `poll_timeout` is the minimum.

use crate::core::Wait;
use crate::limits::{DEADLINE_SAMPLES_MAX, DEADLINES_MAX};
use crate::plan::DeadlinePlan;
use crate::sorted::SortedMap;
use crate::{PeerId, Time};
use core::time::Duration;
use std::collections::VecDeque;

/// Deviations above the median that are waited for: about five sigma of a normal distribution.
const DEVIATIONS: u32 = 8;

/// The least deviation, as a share of the median: one that never varies is in time, too.
const LEAST_DEVIATION: u32 = 32;

/// How many median latenesses to wait for late peers.
const GRACE_MEDIANS: u32 = 2;

/// Samples below which the plan's initial deadline still counts.
const SAMPLES_MIN: usize = 3;

/// Waits in time that speak against lost messages being a slow link.
const IN_TIME_MAX: i8 = 4;

/// The last waits for one peer in one role.
#[derive(Debug, Default)]
struct Samples {
    /// Nanoseconds: a peer of a grid keeps samples of hundreds of others.
    last: VecDeque<u64>,
    /// Waits that ended well, less void exchanges that did not, up to [`IN_TIME_MAX`].
    in_time: i8,
    /// Something was measured since nothing was known.
    measured: bool,
    /// Median + k x MAD; `None` while there are too few. It is asked for more often than it changes.
    estimate: Option<Duration>,
}

impl Samples {
    fn add(&mut self, waited: Duration) {
        if self.last.len() == DEADLINE_SAMPLES_MAX {
            self.last.pop_front();
        }
        let nanos = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
        self.last.push_back(nanos);
        self.estimate = (self.last.len() >= SAMPLES_MIN).then(|| {
            let median = self.median(|nanos| nanos);
            let of = median.as_nanos() as u64;
            let deviation = self.median(|nanos| nanos.abs_diff(of));
            // One that always takes the same time would have no margin, and the first delay is a miss.
            median + deviation.max(median / LEAST_DEVIATION) * DEVIATIONS
        });
    }

    /// The median of what this makes of the samples.
    fn median(&self, of: impl Fn(u64) -> u64) -> Duration {
        let mut values = [0; DEADLINE_SAMPLES_MAX];
        let values = &mut values[..self.last.len()];
        let last = values.iter_mut().zip(&self.last);
        last.for_each(|(value, nanos)| *value = of(*nanos));
        Duration::from_nanos(*values.select_nth_unstable(values.len() / 2).1)
    }
}

fn median(mut values: Vec<Duration>) -> Duration {
    let middle = values.len() / 2;
    *values.select_nth_unstable(middle).1
}

/// The measured waits for every peer, and the deadlines that follow.
#[derive(Debug)]
pub(crate) struct Deadlines {
    plan: DeadlinePlan,
    samples: SortedMap<(Wait, PeerId), Samples>,
    /// By how much peers were later than those that were enough.
    lateness: Samples,
}

impl Deadlines {
    /// Nothing measured yet.
    pub(crate) fn new(plan: DeadlinePlan) -> Self {
        Self {
            plan,
            samples: SortedMap::new(),
            lateness: Samples::default(),
        }
    }

    /// Notes how long this peer waited for another one.
    pub(crate) fn record(&mut self, wait: Wait, peer: PeerId, waited: Duration) {
        let allowed = self.samples.get(&(wait, peer)).map(|s| s.estimate);
        // Identities cost nothing: without a bound, passing peers could fill the memory.
        if allowed.is_none() && self.samples.len() >= DEADLINES_MAX {
            return;
        }
        let allowed = allowed.flatten();
        let allowed = allowed.unwrap_or_else(|| self.of_unmeasured(wait));
        let in_time = waited <= allowed.clamp(self.plan.floor, self.plan.ceiling);
        let samples = self.samples.entry((wait, peer)).or_default();
        samples.add(waited);
        samples.measured = true;
        samples.in_time = (samples.in_time + i8::from(in_time)).min(IN_TIME_MAX);
    }

    /// A wait for a peer ended in vain. Unless other waits for it were in time, so that something was lost,
    /// the next one is twice as long, whatever was measured before.
    pub(crate) fn too_short(&mut self, wait: Wait, peer: PeerId) {
        // Gossip goes on without a partner, and where partners come and go, waiting longer costs all.
        if wait == Wait::Partners && self.of_measured(wait).next().is_some() {
            return;
        }
        let longer = self.allow(wait, [peer]) * 2;
        let known = self.samples.contains_key(&(wait, peer));
        if !known && self.samples.len() >= DEADLINES_MAX {
            return;
        }
        let samples = self.samples.entry((wait, peer)).or_default();
        samples.in_time -= 1;
        if samples.in_time < 0 {
            // What was measured before is of waits that were too short to see the end.
            samples.last.clear();
            (0..SAMPLES_MIN).for_each(|_| samples.add(longer));
            samples.in_time = 0;
        }
    }

    /// How long to wait for the slowest of `peers`.
    pub(crate) fn allow(&self, wait: Wait, peers: impl IntoIterator<Item = PeerId>) -> Duration {
        let slowest = peers
            .into_iter()
            .map(|peer| {
                let known = self.samples.get(&(wait, peer)).and_then(|s| s.estimate);
                known.unwrap_or_else(|| self.of_unmeasured(wait))
            })
            .max();
        slowest
            .unwrap_or(self.plan.floor)
            .clamp(self.plan.floor, self.plan.ceiling)
    }

    fn of_measured(&self, wait: Wait) -> impl Iterator<Item = &Samples> {
        let of_wait = self.samples.iter().filter(move |((w, _), _)| *w == wait);
        of_wait
            .map(|(_, samples)| samples)
            .filter(|samples| samples.measured)
    }

    /// How long to wait for a peer of which too little is known: as the plan says, but for a partner, as each
    /// round may have others, at least as long as for half of them.
    fn of_unmeasured(&self, wait: Wait) -> Duration {
        let known: Vec<Duration> = match wait {
            Wait::Partners => self
                .of_measured(wait)
                .filter_map(|samples| samples.estimate)
                .collect(),
            _ => Vec::new(),
        };
        if known.is_empty() {
            self.plan.initial
        } else {
            median(known).max(self.plan.initial)
        }
    }

    /// [`Deadlines::allow`] for a chain of dependent steps. All members wait for the same chain, so
    /// a measurement of one of them also counts for members without any. Before the first
    /// measurement every step gets the plan's initial deadline.
    pub(crate) fn allow_chain(
        &self,
        wait: Wait,
        peers: impl IntoIterator<Item = PeerId>,
        hops: u32,
    ) -> Duration {
        let peers = peers.into_iter();
        let known = peers.filter_map(|peer| self.samples.get(&(wait, peer))?.estimate);
        let slowest = known.max();
        slowest
            .unwrap_or(self.plan.initial.saturating_mul(hops))
            .clamp(self.plan.floor, self.plan.ceiling)
    }

    /// [`Deadlines::allow`] in a grid, where all do the same and nothing is lost but one contribution if a
    /// wait is too short: a measurement of one peer also counts for those without any.
    pub(crate) fn allow_alike(
        &self,
        wait: Wait,
        peers: impl IntoIterator<Item = PeerId>,
    ) -> Duration {
        self.allow_chain(wait, peers, 1)
    }

    /// Notes by how much a peer was later than those that were enough for a round.
    pub(crate) fn record_lateness(&mut self, late: Duration) {
        self.lateness.add(late);
    }

    /// How long to wait for late peers: twice their median lateness.
    pub(crate) fn grace(&self) -> Duration {
        let last = &self.lateness;
        let usual = if last.last.len() < SAMPLES_MIN {
            self.plan.initial
        } else {
            last.median(|nanos| nanos) * GRACE_MEDIANS
        };
        usual.clamp(self.plan.floor, self.plan.ceiling)
    }

    /// How long to wait for a short answer from a peer that is there.
    pub(crate) fn answer(&self) -> Duration {
        self.plan.floor
    }

    /// How long a transfer of unknown speed may take at most.
    pub(crate) fn ceiling(&self) -> Duration {
        self.plan.ceiling
    }

    pub(crate) fn forget(&mut self, peer: PeerId) {
        self.samples.retain(|(_, p), _| *p != peer);
    }
}

/// What a deadline is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// Enough peers to begin, or a state to start from.
    Join,
    /// The exchange that is under way.
    Exchange,
    /// The state or history that is being fetched.
    CatchUp,
    /// The next sign of life, and with it anti-entropy and dialling.
    Alive,
    /// The next step of founding a run.
    Founding,
    /// A finished peer's last service to others.
    Linger,
}

const KINDS: usize = 6;

/// Deadlines by kind.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    at: [Option<Time>; KINDS],
}

impl Timers {
    pub(crate) fn set(&mut self, timer: Timer, at: Time) {
        self.at[timer as usize] = Some(at);
    }

    /// Takes a deadline out.
    pub(crate) fn stop(&mut self, timer: Timer) {
        self.at[timer as usize] = None;
    }

    /// Takes out a deadline that has passed; false while it has not.
    pub(crate) fn expired(&mut self, timer: Timer, now: Time) -> bool {
        let slot = &mut self.at[timer as usize];
        let passed = slot.is_some_and(|at| at <= now);
        if passed {
            *slot = None;
        }
        passed
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Time> {
        self.at.iter().flatten().min().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_takes_always_the_same_is_in_time() {
        let ms = Duration::from_millis;
        let plan = DeadlinePlan {
            floor: ms(100),
            initial: ms(500),
            ceiling: ms(60_000),
        };
        let peer = PeerId::from_bytes([1; 32]);
        let mut deadlines = Deadlines::new(plan);
        assert_eq!(deadlines.allow(Wait::Group, [peer]), ms(500));
        for _ in 0..SAMPLES_MIN {
            deadlines.record(Wait::Group, peer, ms(4000));
        }
        assert_eq!(deadlines.allow(Wait::Group, [peer]), ms(5000));
    }

    #[test]
    fn a_grace_follows_how_late_the_late_are_within_the_plan() {
        let ms = Duration::from_millis;
        let plan = DeadlinePlan {
            floor: ms(100),
            initial: ms(1_000),
            ceiling: ms(5_000),
        };
        let mut deadlines = Deadlines::new(plan);
        assert_eq!(deadlines.grace(), plan.initial);
        for late in [300, 200, 90_000, 250, 210] {
            deadlines.record_lateness(ms(late));
        }
        assert_eq!(deadlines.grace(), ms(500));
        (0..DEADLINE_SAMPLES_MAX).for_each(|_| deadlines.record_lateness(ms(1)));
        assert_eq!(deadlines.grace(), plan.floor);
        (0..DEADLINE_SAMPLES_MAX).for_each(|_| deadlines.record_lateness(ms(4_000)));
        assert_eq!(deadlines.grace(), plan.ceiling);
    }

    #[test]
    fn a_deadline_that_is_never_enough_is_doubled_up_to_the_ceiling() {
        let ms = Duration::from_millis;
        let plan = DeadlinePlan {
            floor: ms(100),
            initial: ms(500),
            ceiling: ms(4_000),
        };
        let peer = PeerId::from_bytes([1; 32]);
        let mut deadlines = Deadlines::new(plan);
        let mut allowed = vec![deadlines.allow(Wait::Contributions, [peer])];
        for _ in 0..4 {
            deadlines.too_short(Wait::Contributions, peer);
            allowed.push(deadlines.allow(Wait::Contributions, [peer]));
        }
        assert!(
            allowed
                .windows(2)
                .all(|w| w[1] >= (w[0] * 2).min(plan.ceiling)),
            "{allowed:?}"
        );
        assert_eq!(allowed.last(), Some(&plan.ceiling));
        // What comes in time counts at once, and a loss now and then among it changes nothing.
        for _ in 0..40 {
            for _ in 0..4 {
                deadlines.record(Wait::Contributions, peer, ms(200));
            }
            deadlines.too_short(Wait::Contributions, peer);
        }
        assert_eq!(deadlines.allow(Wait::Contributions, [peer]), ms(250));
    }

    #[test]
    fn deadlines_follow_the_slowest_peer_within_the_plan() {
        let plan = DeadlinePlan {
            floor: Duration::from_millis(100),
            initial: Duration::from_secs(5),
            ceiling: Duration::from_secs(60),
        };
        let (a, b) = (PeerId::from_bytes([1; 32]), PeerId::from_bytes([2; 32]));
        let mut deadlines = Deadlines::new(plan);
        assert_eq!(deadlines.allow(Wait::Group, [a]), plan.initial);
        assert_eq!(deadlines.allow(Wait::Group, []), plan.floor);
        for ms in [200, 210, 190, 200] {
            deadlines.record(Wait::Group, a, Duration::from_millis(ms));
            deadlines.record(Wait::Group, b, Duration::from_millis(ms * 10));
        }
        assert_eq!(
            deadlines.allow(Wait::Group, [a]),
            Duration::from_millis(280)
        );
        assert!(deadlines.allow(Wait::Group, [a, b]) > Duration::from_secs(2));
        assert_eq!(deadlines.allow(Wait::Contributions, [a]), plan.initial);
    }
}
