//! `--kill-every`: when to kill a daemon, and which one.

use super::args::FaultEntry;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// The shortest time between two kills, about as long as a daemon needs to start.
const EVERY_MIN: Duration = Duration::from_millis(500);

/// The longest time between two kills.
const EVERY_MAX: Duration = Duration::from_secs(24 * 3600);

/// The argument of `--kill-every`, such as `5s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KillEvery(Duration);

impl FromStr for KillEvery {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is no time between kills; write 5s, 500ms or 1min");
        let units = [("ms", 1e-3), ("min", 60.0), ("s", 1.0)];
        let found = units
            .iter()
            .find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
        let (number, seconds) = found.ok_or_else(bad)?;
        let number: f64 = number.trim().parse().map_err(|_| bad())?;
        let every = Duration::try_from_secs_f64(number * seconds).map_err(|_| bad())?;
        if !(EVERY_MIN..=EVERY_MAX).contains(&every) {
            return Err(format!(
                "`{text}` between kills; give {EVERY_MIN:?} to {EVERY_MAX:?}"
            ));
        }
        Ok(Self(every))
    }
}

/// Chooses the time and the victim of each kill.
#[derive(Debug)]
pub(super) struct Killer {
    every: Duration,
    next: Option<Instant>,
    rng: ChaCha8Rng,
    /// The kills so far.
    pub(super) kills: Vec<FaultEntry>,
}

impl Killer {
    /// With the same seed and the same running daemons, the order of victims repeats.
    pub(super) fn new(every: KillEvery, seed: u64) -> Self {
        Self {
            every: every.0,
            next: None,
            rng: ChaCha8Rng::seed_from_u64(seed),
            kills: Vec::new(),
        }
    }

    /// If a kill is due, draws one of the indices `up` of running daemons.
    pub(super) fn strike(&mut self, now: Instant, up: &[usize]) -> Option<usize> {
        let next = *self.next.get_or_insert(now + self.every);
        if now < next {
            return None;
        }
        self.next = Some(now + self.every);
        let draw = self.rng.next_u64();
        let place = draw.checked_rem(up.len() as u64)?;
        up.get(usize::try_from(place).ok()?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let second = Duration::from_secs(1);
        assert_eq!("5s".parse(), Ok(KillEvery(5 * second)));
        assert_eq!("500ms".parse(), Ok(KillEvery(second / 2)));
        assert_eq!("1.5min".parse(), Ok(KillEvery(90 * second)));
        for text in ["", "5", "s", "-1s", "nans", "1e300s"] {
            let line = text.parse::<KillEvery>().unwrap_err();
            assert!(line.contains("write 5s"), "{line}");
        }
        let line = "1ms".parse::<KillEvery>().unwrap_err();
        assert_eq!(line, "`1ms` between kills; give 500ms to 86400s");
    }

    #[test]
    fn kills_follow_the_seed_and_the_time() {
        let every = KillEvery(Duration::from_secs(5));
        let start = Instant::now();
        let victims = |seed| {
            let mut killer = Killer::new(every, seed);
            let at = |second| start + Duration::from_secs(second);
            assert_eq!(killer.strike(at(0), &[0, 1, 2]), None);
            assert_eq!(killer.strike(at(4), &[0, 1, 2]), None);
            (1..40)
                .map(|k| killer.strike(at(5 * k), &[0, 1, 2]))
                .collect::<Vec<_>>()
        };
        assert!(victims(1).iter().all(Option::is_some));
        assert_eq!(victims(1), victims(1));
        assert_ne!(victims(1), victims(2));
        let all = [0, 1, 2].map(Some);
        assert!(all.iter().all(|place| victims(1).contains(place)));
    }

    #[test]
    fn no_daemon_is_killed_while_none_is_up() {
        let mut killer = Killer::new(KillEvery(Duration::from_secs(1)), 0);
        let start = Instant::now();
        assert_eq!(killer.strike(start, &[]), None);
        assert_eq!(killer.strike(start + Duration::from_secs(1), &[]), None);
    }
}
