//! Directives: what the owner of a run changes while it trains. The owner signs them with the run key; the
//! host checks the signature before a peer sees one.
//!
//! Each one says from which round on it counts, so all peers change at the same point of the run. The
//! changes in force in a round follow from the set of directives alone ([`Directives::in_force`]). Sets of two peers
//! merge in any order to the same set, so peers need no agreement about them, only to have heard of the
//! same ones.

use crate::limits::DIRECTIVES_MAX;
use crate::sorted::SortedSet;
use crate::{Digest, Pace, Plan, PlanError, Round, StepBudget};
use serde::{Deserialize, Serialize};

mod change;

pub use change::{Change, RateFactor, TrainingRules};

/// One change of a run by its owner.
///
/// Directives are ordered by number, then by time. The last one of a kind that is in force counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Directive {
    /// Its number: one more than the highest that the owner knew.
    pub number: u32,
    /// When it was signed, in seconds since 1970. It orders two of one number.
    pub at_s: u64,
    /// The first round in which it is in force. Zero: at once.
    pub from: Round,
    /// What changes.
    pub change: Change,
}

impl Directive {
    /// Returns `true` if this one makes an older one void in every round.
    fn replaces(&self, older: &Self) -> bool {
        self > older && self.from <= older.from && self.change.is_like(&older.change)
    }
}

/// The changes in force in one round. By default nothing differs from the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InForce {
    /// The round from which on the run pauses, if it does in this one.
    pub paused: Option<Round>,
    /// Rounds in all, if they were changed.
    pub rounds: Option<u64>,
    /// What the training of the round goes by.
    pub training: TrainingRules,
}

impl InForce {
    /// What the members of a group must have in common to train and exchange by the same rules; `None`
    /// where they are those of the plan.
    pub(crate) fn rules(&self) -> Option<Digest> {
        let rules = self.training;
        if rules == TrainingRules::default() {
            return None;
        }
        let TrainingRules {
            inner_steps,
            rate,
            codec,
            // What the members choose follows from their state.
            rung: _,
        } = rules;
        // Peers that know no change of the codec hash what it says of the others.
        let said = match codec {
            None => crate::wire::canonical(&("rules", inner_steps, rate)),
            Some(codec) => crate::wire::canonical(&("rules", inner_steps, rate, codec)),
        };
        Some(Digest::of(&said))
    }

    /// The plan with these changes.
    ///
    /// # Errors
    /// When no configuration could say the same.
    pub fn applied_to(&self, plan: &Plan) -> Result<Plan, PlanError> {
        let mut changed = plan.clone();
        changed.rounds = self.rounds.unwrap_or(plan.rounds);
        if let Some(steps) = self.training.inner_steps {
            changed.budget = StepBudget::Steps(steps);
            let pace = &mut changed.synchronization.pace;
            if *pace != Pace::Balanced {
                *pace = Pace::Steady;
            }
        }
        changed.validate().map(|()| changed)
    }
}

/// The directives of a run that still count in some round, in their order.
///
/// A directive that a later one makes void in every round is left out, and so are the oldest beyond
/// [`DIRECTIVES_MAX`]. Both only depend on which directives were heard of. So sets form a semilattice: the
/// order in which they are merged makes no difference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directives(SortedSet<Directive>);

impl Directives {
    /// Adds directives. Returns those that are new and count.
    pub fn merge(&mut self, others: impl IntoIterator<Item = Directive>) -> Vec<Directive> {
        let before = self.0.clone();
        self.0.extend(others.into_iter().filter(can_be));
        let all: Vec<Directive> = self.0.iter().copied().collect();
        let void = |old: &Directive| all.iter().any(|new| new.replaces(old));
        self.0.retain(|directive| !void(directive));
        while self.0.len() > DIRECTIVES_MAX {
            self.0.pop_first();
        }
        self.0.difference(&before).copied().collect()
    }

    /// Returns `true` if the set holds this directive, so that it still counts in some round.
    pub fn contains(&self, directive: &Directive) -> bool {
        self.0.contains(directive)
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Directive> {
        self.0.iter()
    }

    /// The number of the next one.
    pub fn next_number(&self) -> u32 {
        let last = self.0.last().map_or(0, |last| last.number);
        last.saturating_add(1)
    }

    /// Returns `true` if a directive counts in a round: it has begun, and no later one of its kind has.
    pub fn is_in_force(&self, directive: &Directive, round: Round) -> bool {
        let later = |other: &&Directive| {
            *other > directive && other.from <= round && other.change.is_like(&directive.change)
        };
        directive.from <= round && !self.0.iter().any(|other| later(&other))
    }

    /// The changes in force in a round.
    pub fn in_force(&self, round: Round) -> InForce {
        let mut all = InForce::default();
        for directive in self.0.iter().filter(|directive| directive.from <= round) {
            match directive.change {
                Change::Pause => all.paused = Some(directive.from),
                Change::Resume => all.paused = None,
                Change::Rounds(rounds) => all.rounds = Some(rounds),
                Change::InnerSteps(steps) => all.training.inner_steps = Some(steps),
                Change::LearningRate(factor) => all.training.rate = factor,
                Change::Codec(codec) => all.training.codec = codec,
            }
        }
        all
    }
}

/// Returns `true` if an owner's program could have signed it.
fn can_be(directive: &Directive) -> bool {
    match directive.change {
        Change::InnerSteps(steps) => steps > 0,
        Change::LearningRate(factor) => factor.is_valid(),
        Change::Pause | Change::Resume | Change::Rounds(_) | Change::Codec(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RateFactor;

    /// Daemons of the version before know no change of the codec, and must find the same hash for the others.
    #[test]
    fn rules_without_a_codec_hash_as_they_did_before_there_was_one() {
        #[derive(serde::Serialize)]
        struct Before {
            inner_steps: Option<u32>,
            rate: RateFactor,
        }
        let with = |codec| InForce {
            training: TrainingRules {
                inner_steps: Some(7),
                codec,
                ..TrainingRules::default()
            },
            ..InForce::default()
        };
        let before = Before {
            inner_steps: Some(7),
            rate: RateFactor::ONE,
        };
        let before = Digest::of(&crate::wire::canonical(&("rules", before)));
        assert_eq!(with(None).rules(), Some(before));
        assert_ne!(with(Some(7)).rules(), Some(before));
        assert_ne!(with(Some(7)).rules(), with(Some(8)).rules());
        assert_eq!(InForce::default().rules(), None);
    }
}

#[cfg(test)]
mod set_tests {
    use super::*;
    use crate::RateFactor;
    use proptest::prelude::*;

    fn directive(number: u32, from: u64, change: Change) -> Directive {
        Directive {
            number,
            at_s: 1_700_000_000,
            from: Round(from),
            change,
        }
    }

    fn set(all: &[Directive]) -> Directives {
        let mut set = Directives::default();
        set.merge(all.iter().copied());
        set
    }

    fn any_directive() -> impl Strategy<Value = Directive> {
        let change = prop_oneof![
            Just(Change::Pause),
            Just(Change::Resume),
            (0..9u64).prop_map(Change::Rounds),
            (0..9u32).prop_map(Change::InnerSteps),
            (1..9u32).prop_map(|n| Change::LearningRate(RateFactor::new(n.into()).unwrap())),
            any::<Option<u8>>().prop_map(Change::Codec),
        ];
        (0..12u32, 0..3u64, 0..9u64, change).prop_map(|(number, at_s, from, change)| Directive {
            number,
            at_s,
            from: Round(from),
            change,
        })
    }

    proptest! {
        #[test]
        fn sets_merge_in_any_order_to_the_same_set(
            mut all in prop::collection::vec(any_directive(), 0..2 * DIRECTIVES_MAX),
            at in any::<prop::sample::Index>(),
        ) {
            let whole = set(&all);
            let (one, two) = all.split_at(at.index(all.len() + 1).min(all.len()));
            let (one, two) = (set(one), set(two));
            let mut merged = one.clone();
            merged.merge(two.iter().copied());
            prop_assert_eq!(&merged, &whole);
            let again = whole.clone();
            prop_assert!(merged.merge(again.iter().copied()).is_empty());
            all.reverse();
            prop_assert_eq!(set(&all), whole);
        }

        #[test]
        fn what_is_left_out_counts_in_no_round(
            all in prop::collection::vec(any_directive(), 0..DIRECTIVES_MAX),
        ) {
            let mut plain = Directives::default();
            plain.0.extend(all.iter().copied().filter(can_be));
            for round in (0..10).map(Round) {
                prop_assert_eq!(set(&all).in_force(round), plain.in_force(round));
            }
        }

        #[test]
        fn one_of_a_kind_is_in_force_in_a_round(
            all in prop::collection::vec(any_directive(), 0..DIRECTIVES_MAX),
            round in 0..10u64,
        ) {
            let set = set(&all);
            let counts = |d: &&Directive| set.is_in_force(d, Round(round));
            let counting: Vec<&Directive> = set.iter().filter(counts).collect();
            for (at, one) in counting.iter().enumerate() {
                prop_assert!(counting[at + 1..].iter().all(|two| !one.change.is_like(&two.change)));
            }
            let pauses = counting.iter().any(|d| d.change == Change::Pause);
            prop_assert_eq!(set.in_force(Round(round)).paused.is_some(), pauses);
        }
    }

    #[test]
    fn a_pause_holds_from_its_round_until_the_run_is_resumed() {
        let pause = directive(1, 41, Change::Pause);
        let paused = set(&[pause]);
        assert_eq!(paused.in_force(Round(40)).paused, None);
        assert_eq!(paused.in_force(Round(90)).paused, Some(Round(41)));
        let mut resumed = paused.clone();
        assert_eq!(resumed.next_number(), 2);
        let resume = directive(2, 0, Change::Resume);
        assert_eq!(resumed.merge([resume]), [resume]);
        assert_eq!(resumed.in_force(Round(41)), InForce::default());
        // The pause is void in all rounds, and does not come back.
        assert_eq!(resumed.merge([pause]), []);
        let again = directive(3, 50, Change::Pause);
        resumed.merge([again]);
        assert_eq!(resumed.in_force(Round(49)).paused, None);
        assert_eq!(resumed.in_force(Round(50)).paused, Some(Round(50)));
    }

    #[test]
    fn of_two_with_one_number_the_later_one_counts() {
        let old = directive(4, 0, Change::Rounds(10));
        let new = Directive {
            at_s: old.at_s + 1,
            change: Change::Rounds(20),
            ..old
        };
        assert_eq!(set(&[new, old]).in_force(Round(0)).rounds, Some(20));
        assert_eq!(set(&[old, new]).in_force(Round(0)).rounds, Some(20));
    }

    #[test]
    fn a_change_of_the_training_is_a_rule_and_a_pause_is_none() {
        let rate = Change::LearningRate(RateFactor::new(0.5).unwrap());
        let all = set(&[directive(1, 5, rate), directive(2, 3, Change::Pause)]);
        assert_eq!(all.in_force(Round(4)).rules(), None);
        let one = all.in_force(Round(5)).rules();
        assert!(one.is_some());
        let steps = set(&[
            directive(1, 5, rate),
            directive(2, 5, Change::InnerSteps(3)),
        ]);
        assert_ne!(steps.in_force(Round(5)).rules(), one);
    }

    #[test]
    fn what_no_owner_signs_is_left_out() {
        let none = RateFactor::new(1.0).map(|_| Change::InnerSteps(0)).unwrap();
        assert_eq!(set(&[directive(1, 0, none)]), Directives::default());
    }
}
