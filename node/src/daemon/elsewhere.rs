//! Another daemon with this one's identity, as in a copied directory: both say so, and one of them stops.
//!
//! The others take the two for one peer: the newer link to either counts, and the other one trains on without any.
//! Neither end can tell which of the two is the copy. The one that has just begun stops, and says so to the other
//! one, which stays; of two that have just begun the younger one is the first to do so. Two that have run for long
//! are met after a split, or are copies of a machine: after some time the one that is not ahead stops.

use crate::net::SeenElsewhere;
use crate::store::random_bytes;
use murmurate_protocol::{Phase, Round};
use std::time::{Duration, Instant};

/// A daemon that has run for less than this has just begun.
const YOUNG: Duration = Duration::from_secs(60);

/// The most by which daemons of one age differ in their patience: machines that are started from one image.
const PATIENCE_APART: Duration = Duration::from_secs(10);

/// How long two that have not stop for each other.
const UNDECIDED: Duration = Duration::from_secs(30);

/// How long the daemon that stops goes on, so that the other one hears of it.
const LAST_WORDS: Duration = Duration::from_secs(8);

/// The other one is gone if it was not heard for this long.
const GONE: Duration = Duration::from_secs(60);

/// What the daemon says that stays.
pub(super) const STAYS: &str = "this identity runs elsewhere: another daemon has the same identity.key, as a copied directory \
                     has, and the others take the two for one; stop one of them (a copy enters the run as a new \
                     member in a new directory: `murmurate run --dir NEW --invite FILE`)";

/// What this daemon knows of another one with its identity, and does about it.
#[derive(Debug)]
pub(super) struct Elsewhere {
    born: Instant,
    /// Since when the other one is heard.
    since: Option<Instant>,
    /// By how much longer than its age this daemon waits for the other one to stop.
    patience: Duration,
    /// When this daemon stops because of it.
    stops: Option<Instant>,
}

impl Default for Elsewhere {
    fn default() -> Self {
        Self {
            born: Instant::now(),
            since: None,
            patience: any_patience(),
            stops: None,
        }
    }
}

fn any_patience() -> Duration {
    let [first, ..] = random_bytes();
    PATIENCE_APART * u32::from(first) / 256
}

/// What a daemon does about another one with its identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// There is none, or nothing is new.
    Nothing,
    /// It says so.
    Says,
    /// It says so, and stops soon.
    Leaves,
    /// It stops now.
    Stops,
}

impl Elsewhere {
    /// Whether another one is there.
    pub(super) const fn is_there(&self) -> bool {
        self.since.is_some()
    }

    /// What to do about what was heard of another one, in this daemon's round.
    pub(super) fn judge(
        &mut self,
        seen: Option<&SeenElsewhere>,
        round: Round,
        now: Instant,
    ) -> Verdict {
        let gives_way =
            |seen: &SeenElsewhere| matches!(seen.vitals.phase, Phase::Leaving | Phase::Left);
        if let Some(stops) = self.stops {
            let decided = stops.checked_sub(LAST_WORDS);
            let gave_way = |seen: &&SeenElsewhere| {
                gives_way(seen) && decided.is_some_and(|at| seen.heard > at)
            };
            if seen.filter(gave_way).is_some() {
                // Both gave way at once. If the other one has heard of this one too, it begins again.
                (self.stops, self.since, self.patience) = (None, Some(now), any_patience());
                return Verdict::Says;
            }
            return match now < stops {
                true => Verdict::Nothing,
                false => Verdict::Stops,
            };
        }
        let here = |seen: &&SeenElsewhere| now.saturating_duration_since(seen.heard) < GONE;
        let Some(seen) = seen.filter(here) else {
            self.since = None;
            return Verdict::Nothing;
        };
        let news = self.since.is_none();
        let since = *self.since.get_or_insert(now);
        let age = since.saturating_duration_since(self.born);
        // It stops only while it hears the other one, which may have stopped meanwhile.
        let young = age < YOUNG && seen.heard >= since + age / 2 + self.patience;
        let undecided = seen.heard.saturating_duration_since(since) >= UNDECIDED;
        let behind = undecided && seen.vitals.round >= round;
        match (!gives_way(seen) && (young || behind), news) {
            (true, _) => {
                self.stops = Some(now + LAST_WORDS);
                Verdict::Leaves
            }
            (false, true) => Verdict::Says,
            (false, false) => Verdict::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_protocol::PeerId;
    use murmurate_protocol::vitals::Vitals;

    fn seen(heard: Instant, round: u64, phase: Phase) -> SeenElsewhere {
        let vitals = Vitals {
            peer: PeerId::from_bytes([1; 32]),
            sequence: 9,
            unix_ms: 9,
            name: None,
            version: "1.0.0".to_owned(),
            round: Round(round),
            phase,
            waiting: None,
            steps_per_s: None,
            loss: None,
            accuracy: None,
            last_round: None,
            memory: None,
            saved_round: None,
        };
        SeenElsewhere { vitals, heard }
    }

    fn running(since: Instant) -> Elsewhere {
        Elsewhere {
            born: since,
            patience: Duration::ZERO,
            ..Elsewhere::default()
        }
    }

    #[test]
    fn the_one_that_has_just_begun_stops_and_the_other_one_stays() {
        let (start, round) = (Instant::now(), Round(9));
        let now = start + 2 * YOUNG;
        let (mut old, mut copy) = (running(start), running(now));
        assert_eq!(old.judge(None, round, now), Verdict::Nothing);
        let now = now + Duration::from_secs(9);
        let of_old = seen(now, 9, Phase::Train);
        assert_eq!(copy.judge(Some(&of_old), round, now), Verdict::Says);
        let now = now + Duration::from_secs(5);
        assert_eq!(copy.judge(Some(&of_old), round, now), Verdict::Nothing);
        let of_old = seen(now, 9, Phase::Train);
        assert_eq!(copy.judge(Some(&of_old), round, now), Verdict::Leaves);
        let of_copy = seen(now, 9, Phase::Leaving);
        assert_eq!(old.judge(Some(&of_copy), round, now), Verdict::Says);
        let now = now + LAST_WORDS / 2;
        assert_eq!(copy.judge(Some(&of_old), round, now), Verdict::Nothing);
        let now = now + LAST_WORDS;
        assert_eq!(copy.judge(None, round, now), Verdict::Stops);
        assert_eq!(old.judge(Some(&of_copy), round, now), Verdict::Nothing);
        assert!(old.is_there());
        assert_eq!(
            old.judge(Some(&of_copy), round, now + GONE),
            Verdict::Nothing
        );
        assert!(!old.is_there(), "it is gone");
    }

    #[test]
    fn of_two_young_ones_the_younger_one_stops_first_and_never_both() {
        let start = Instant::now();
        let (mut older, mut younger) = (running(start), running(start + YOUNG / 4));
        let met = start + YOUNG / 2;
        let training = |at| seen(at, 9, Phase::Train);
        for one in [&mut older, &mut younger] {
            assert_eq!(
                one.judge(Some(&training(met)), Round(9), met),
                Verdict::Says
            );
        }
        let now = met + YOUNG / 6;
        let judge = |one: &mut Elsewhere| one.judge(Some(&training(now)), Round(9), now);
        assert_eq!(judge(&mut older), Verdict::Nothing);
        assert_eq!(judge(&mut younger), Verdict::Leaves);
        let later = met + YOUNG / 3;
        let of_younger = seen(later, 9, Phase::Leaving);
        assert_eq!(
            older.judge(Some(&of_younger), Round(9), later),
            Verdict::Nothing
        );
        // Had the older one given way too, the one that hears of it goes on.
        let (now, of_older) = (
            now + LAST_WORDS / 2,
            seen(now + LAST_WORDS / 2, 9, Phase::Leaving),
        );
        assert_eq!(younger.judge(Some(&of_older), Round(9), now), Verdict::Says);
        assert_eq!(
            younger.judge(Some(&of_older), Round(9), now + LAST_WORDS),
            Verdict::Nothing
        );
    }

    #[test]
    fn of_two_old_ones_the_one_behind_stops_after_a_while() {
        let start = Instant::now();
        let (mut behind, mut ahead) = (running(start), running(start));
        let mut now = start + 2 * YOUNG;
        for _ in 0..=UNDECIDED.as_secs() {
            let of_ahead = seen(now, 20, Phase::Train);
            let of_behind = seen(now, 9, Phase::Train);
            assert_ne!(
                ahead.judge(Some(&of_behind), Round(20), now),
                Verdict::Leaves
            );
            let verdict = behind.judge(Some(&of_ahead), Round(9), now);
            let waited = now.saturating_duration_since(start + 2 * YOUNG);
            assert_eq!(
                verdict == Verdict::Leaves,
                waited >= UNDECIDED,
                "{waited:?}"
            );
            now += Duration::from_secs(1);
        }
    }
}
