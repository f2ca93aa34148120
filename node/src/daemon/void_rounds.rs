//! Rounds in a row without an agreed result. The model stands still then, however long the daemons train, so
//! the operator is told.

use murmurate_protocol::{Event, Round};

/// Rounds in a row without a result after which the operator is told, and then after ten times as many. One void
/// round is no news: a daemon has died.
const FIRST_TOLD: u64 = 5;

/// What can be done about rounds that have no result.
const ADVICE: &str = "exchanges end before all slices have arrived; send less (a codec such as int8), or raise \
                      `strategy.deadlines.ceiling_ms` at all daemons (and `initial_ms`, so that the first \
                      rounds count too)";

/// Void rounds since the last one with a result.
#[derive(Debug)]
pub(super) struct VoidRounds {
    count: u64,
    last: Option<Round>,
    /// How many in a row are told next.
    told_at: u64,
    /// A round of this life of the daemon had a result.
    any_result: bool,
}

impl Default for VoidRounds {
    fn default() -> Self {
        Self {
            count: 0,
            last: None,
            told_at: FIRST_TOLD,
            any_result: false,
        }
    }
}

impl VoidRounds {
    /// Why a run that is complete by its number of rounds has failed: none of them had a result.
    pub(super) fn failure(&self) -> Option<String> {
        (!self.any_result && self.count >= FIRST_TOLD).then(|| {
            format!("no round had a result, so the model is what it was at the start: {ADVICE}")
        })
    }

    /// Counts an event. Returns what the operator should know, if there is something.
    pub(super) fn observe(&mut self, event: &Event) -> Option<String> {
        match event {
            Event::Decided { .. } => {
                *self = Self {
                    any_result: true,
                    ..Self::default()
                }
            }
            // The fragments of a round are void one by one.
            Event::Voided { round, .. } if self.last != Some(*round) => {
                self.last = Some(*round);
                self.count += 1;
                if self.count == self.told_at {
                    self.told_at *= 10;
                    return Some(format!(
                        "the last {} rounds had no result, so the model has not changed: {ADVICE}",
                        self.count
                    ));
                }
            }
            Event::Finished { rounds, .. } if self.count > 0 => {
                return Some(format!(
                    "the last {} of {rounds} rounds had no result: {ADVICE}",
                    self.count
                ));
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_protocol::{Digest, FragmentId};

    fn void(round: u64, fragment: u16) -> Event {
        Event::Voided {
            round: Round(round),
            fragment: FragmentId(fragment),
        }
    }

    #[test]
    fn void_rounds_in_a_row_are_told_and_one_is_not() {
        let mut rounds = VoidRounds::default();
        let told = (0..4).filter_map(|round| rounds.observe(&void(round, 0)));
        assert_eq!(told.count(), 0);
        let text = rounds.observe(&void(4, 0)).unwrap();
        assert!(
            text.starts_with("the last 5 rounds had no result"),
            "{text}"
        );
        assert!(text.contains("strategy.deadlines.ceiling_ms"), "{text}");
        // Another fragment of the same round.
        assert_eq!(rounds.observe(&void(4, 1)), None);
        let told: Vec<u64> = (5..60)
            .filter(|round| rounds.observe(&void(*round, 0)).is_some())
            .collect();
        assert_eq!(told, [49]);
        let finished = Event::Finished {
            digest: Digest::of(b"the first"),
            rounds: Round(60),
        };
        let text = rounds.observe(&finished).unwrap();
        assert!(
            text.starts_with("the last 60 of 60 rounds had no result"),
            "{text}"
        );
        assert!(rounds.failure().is_some());
    }

    #[test]
    fn a_result_ends_the_row() {
        let mut rounds = VoidRounds::default();
        (0..4).for_each(|round| {
            rounds.observe(&void(round, 0));
        });
        let decided = Event::Decided {
            round: Round(4),
            fragment: FragmentId(0),
            ballot: 0,
            contributors: Vec::new(),
        };
        assert_eq!(rounds.observe(&decided), None);
        assert_eq!(rounds.observe(&void(5, 0)), None);
        (6..12).for_each(|round| {
            rounds.observe(&void(round, 0));
        });
        assert_eq!(rounds.failure(), None);
    }
}
