//! What the peers of a run agree on beside the parameters: the roll, the ledger of the data, and [`Note`]s such
//! as the codec of the round.
//!
//! All of it changes with each round that is applied, by what the round decided and by nothing else, so peers
//! with one anchor hold the same. States and checkpoints carry it as two byte strings, the roll and the ledger;
//! each note that a run keeps is written around the bytes of the ledger and of the notes before it.
//!
//! A further note is a file with its arithmetic, its `impl Note` here, and its place in [`Data::notes`].

use crate::core::Event;
use crate::core::context::{Context, Data, Directed};
use crate::data::{Counted, Me, Turn};
use crate::limits::{DATA_LEDGER_BYTES_MAX, RATINGS_BYTES_MAX, ROLL_BYTES_MAX, SHARED_HEAD_BYTES};
use crate::roll::{RollChange, RoundNote};
use crate::wire::{decode_limited, encode_value};
use crate::{
    Blocks, Chosen, Ledger, Loss, Losses, Pace, PeerId, Plan, Pool, Ratings, Recoding, Roll, Round,
    Score, StepBudget, Taken, TrainSummary, TrainingRules,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Bytes of roll, ledger and notes in states and checkpoints.
const SHARED_BYTES_MAX: usize =
    ROLL_BYTES_MAX + DATA_LEDGER_BYTES_MAX + RATINGS_BYTES_MAX + SHARED_HEAD_BYTES;

/// Roll, ledger and notes as bytes, each empty where there is none.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Replicated {
    pub(crate) roll: Vec<u8>,
    /// The ledger, with the notes of the run around it.
    pub(crate) ledger: Vec<u8>,
}

/// A value that peers agree on where their run keeps one.
pub(crate) trait Note: Default + Serialize + DeserializeOwned {
    /// Set where the run keeps one.
    fn is_kept(plan: &Plan, directed: &Directed) -> bool;

    /// A round is over.
    fn settle(&mut self, end: &mut RoundEnd<'_>);

    /// False for one that no round can have led to.
    fn fits(&self) -> bool {
        true
    }
}

/// What the end of a round says to the notes.
pub(crate) struct RoundEnd<'a> {
    plan: &'a Plan,
    directed: &'a Directed,
    /// The round that is over, and the one that begins.
    over: Round,
    begins: Round,
    /// The loss or wait that the members agree on.
    said: Option<Loss>,
    /// The scores that they agree on, and of which round.
    judged: Option<(Round, Vec<(PeerId, Score)>)>,
    /// The codec, if it changes.
    recoded: Option<Recoding>,
}

/// [`Note`] without its type.
trait AnyNote {
    fn encode_around(&self, plan: &Plan, directed: &Directed, inner: Vec<u8>) -> Vec<u8>;
    fn decode_around(&mut self, plan: &Plan, directed: &Directed, outer: Vec<u8>) -> Vec<u8>;
    fn end_round(&mut self, end: &mut RoundEnd<'_>, merged: bool);
}

impl<T: Note> AnyNote for T {
    fn encode_around(&self, plan: &Plan, directed: &Directed, inner: Vec<u8>) -> Vec<u8> {
        if T::is_kept(plan, directed) {
            encode_value(&(inner, self))
        } else {
            inner
        }
    }

    /// Takes the note over and returns the bytes inside it. An unreadable note counts as none.
    fn decode_around(&mut self, plan: &Plan, directed: &Directed, outer: Vec<u8>) -> Vec<u8> {
        let (inner, note) = if T::is_kept(plan, directed) {
            decode_limited::<(Vec<u8>, T), SHARED_BYTES_MAX>(&outer).unwrap_or_default()
        } else {
            (outer, T::default())
        };
        *self = if note.fits() { note } else { T::default() };
        inner
    }

    fn end_round(&mut self, end: &mut RoundEnd<'_>, merged: bool) {
        if !T::is_kept(end.plan, end.directed) {
            return;
        }
        if merged {
            // Each branch had a note of its own: it begins again.
            *self = T::default();
        } else {
            self.settle(end);
        }
    }
}

impl Data {
    /// All notes, the one next to the ledger first.
    fn notes(&self) -> [&dyn AnyNote; 3] {
        [&self.losses, &self.chosen, &self.ratings]
    }

    fn notes_mut(&mut self) -> [&mut dyn AnyNote; 3] {
        [&mut self.losses, &mut self.chosen, &mut self.ratings]
    }
}

/// Rounds whose inner steps follow from the members' training loss ([`Pace::Loss`]), or from how long exchanges
/// hold their training up ([`Pace::Measured`]).
///
/// The numbers are followed in all rounds, also while the owner has given another number of inner steps: so
/// peers that hear of that at different times agree on the same ones.
impl Note for Losses {
    fn is_kept(_: &Plan, directed: &Directed) -> bool {
        directed.configured().1.is_agreed()
    }

    fn settle(&mut self, end: &mut RoundEnd<'_>) {
        self.note(end.said);
        if end.recoded.is_some() {
            // Waits under the codec before are no reason for a number of inner steps.
            self.forget_last();
        }
        match end.directed.configured() {
            (budget, Pace::Loss { every, factor }) => self.open(end.begins, every, factor, budget),
            (
                StepBudget::Steps(start),
                Pace::Measured {
                    every,
                    share,
                    least,
                    most,
                },
            ) => self.open_measured(end.begins, (every, share), (least, most), start),
            _ => {}
        }
    }
}

/// Rounds whose codec the members choose by how long exchanges hold their training up
/// ([`Ladder`](crate::Ladder)).
///
/// The choice is followed in all rounds, also while the owner has given a codec of its own: then no one
/// measures, so it stays. It goes by the inner steps of the configuration, not by those that the owner has given:
/// so peers that hear of a directive at different times agree on the same codec.
impl Note for Chosen {
    fn is_kept(plan: &Plan, _: &Directed) -> bool {
        plan.chooses_codecs()
    }

    fn settle(&mut self, end: &mut RoundEnd<'_>) {
        self.note(end.said);
        // The most inner steps that the round may have where the pace follows what members measure: longer
        // rounds come before a codec that loses more.
        let most = match end.directed.configured() {
            (_, Pace::Measured { most, .. }) => most,
            (budget, pace) => match pace.budget(budget, end.begins) {
                StepBudget::Steps(steps) => steps,
                StepBudget::Time(_) => 1,
            },
        };
        let ladder = end.plan.agreement.ladder.as_ref();
        end.recoded = ladder.and_then(|ladder| self.open(end.begins, ladder, most));
    }
}

/// Rounds that admit contributions by their scores ([`Scoring`](crate::Scoring)).
impl Note for Ratings {
    fn is_kept(plan: &Plan, _: &Directed) -> bool {
        plan.scores()
    }

    fn settle(&mut self, end: &mut RoundEnd<'_>) {
        let judged = end.judged.as_ref().filter(|(of, _)| *of == end.over);
        if let (Some(scoring), Some((_, scores))) = (end.plan.agreement.scoring, judged) {
            self.note(end.over, scoring, scores);
        }
    }

    fn fits(&self) -> bool {
        self.are_possible()
    }
}

impl Context {
    /// A note, where the run keeps one.
    pub(crate) fn kept<'a, T: Note>(&self, note: &'a T) -> Option<&'a T> {
        T::is_kept(&self.plan, &self.directed).then_some(note)
    }

    /// Roll, ledger and notes as they are now.
    pub(crate) fn replicated(&self) -> Replicated {
        let roll = self.rolls.roll.as_ref();
        let ledger = self.data.ledger.to_bytes();
        let notes = self.data.notes().into_iter();
        Replicated {
            roll: roll.map_or(Vec::new(), |roll| roll.to_bytes()),
            ledger: notes.fold(ledger, |inner, note| {
                note.encode_around(&self.plan, &self.directed, inner)
            }),
        }
    }

    /// The same for states; empty where there is nothing of it.
    pub(crate) fn replicated_bytes(&self) -> Vec<u8> {
        let all = self.replicated();
        if all.roll.is_empty() && all.ledger.is_empty() {
            Vec::new()
        } else {
            encode_value(&all)
        }
    }

    /// Takes over roll, ledger and notes of a state.
    pub(crate) fn take_replicated(&mut self, bytes: &[u8]) {
        let all = decode_limited::<Replicated, SHARED_BYTES_MAX>(bytes).unwrap_or_default();
        // The state replaces what this peer trained, so none of its blocks are in the parameters.
        self.data.mine.drop_training(Round(u64::MAX));
        self.adopt(&all.roll, &all.ledger);
    }

    /// Takes over roll, ledger and notes. What cannot be read is as if there were none.
    pub(crate) fn adopt(&mut self, roll: &[u8], ledger: &[u8]) {
        if self.plan.agreement.grouping.has_roll() {
            let roll = Roll::from_bytes(roll).ok();
            let roll = roll.map(|roll| self.rolls.shared.share(roll));
            self.hold(roll);
        }
        let notes = self.data.notes_mut().into_iter().rev();
        let ledger = notes.fold(ledger.to_vec(), |outer, note| {
            note.decode_around(&self.plan, &self.directed, outer)
        });
        self.data.ledger = Ledger::from_bytes(&ledger).unwrap_or_default();
    }

    /// A round is over: its notes come into force. Returns whether waits measured before are void.
    pub(crate) fn settle_notes(&mut self, over: Round, merged: bool, said: Option<Loss>) -> bool {
        let paced = self.kept(&self.data.losses).is_some();
        let chooses = self.kept(&self.data.chosen).is_some();
        let before = self.budget();
        let mut end = RoundEnd {
            plan: &self.plan,
            directed: &self.directed,
            over,
            begins: self.round,
            said,
            judged: self.data.judged.take(),
            recoded: None,
        };
        // The codec before the losses, which begin again with another one.
        for note in self.data.notes_mut().into_iter().rev() {
            note.end_round(&mut end, merged);
        }
        let (round, recoded) = (self.round, end.recoded);
        if let Some(change) = recoded {
            self.emit(Event::Recoded { round, change });
        }
        if let (StepBudget::Steps(before), StepBudget::Steps(steps)) = (before, self.budget())
            && paced
            && steps != before
        {
            let said = self.data.losses.last().map_or(0.0, Loss::value);
            self.emit(Event::Paced {
                round,
                steps,
                before,
                said,
            });
        }
        (merged && chooses) || recoded.is_some()
    }

    /// How much a peer trains in this round; in a balanced round, at most.
    pub(crate) fn budget(&self) -> StepBudget {
        let plan = &self.plan;
        match (plan.synchronization.pace, plan.budget) {
            (pace, StepBudget::Steps(first)) if pace.is_agreed() => {
                let bounds = match pace {
                    Pace::Measured { least, most, .. } => (least, most),
                    _ => (1, first),
                };
                StepBudget::Steps(self.data.losses.steps(first, bounds))
            }
            _ => plan.budget_of(self.round),
        }
    }

    /// What the training of this round goes by beside the plan.
    pub(crate) fn training_rules(&self) -> TrainingRules {
        let mut rules = self.with_codec(self.directed.in_force.training);
        let agreed = self.plan.synchronization.pace.is_agreed();
        if let (true, StepBudget::Steps(steps)) = (agreed, self.budget()) {
            rules.inner_steps = Some(steps);
        }
        rules
    }

    /// Rules of the owner, with the codec that the members have chosen.
    pub(crate) fn with_codec(&self, rules: TrainingRules) -> TrainingRules {
        let ladder = self.plan.agreement.ladder.as_ref();
        TrainingRules {
            rung: ladder.map_or(0, |ladder| self.data.chosen.rung(ladder)),
            ..rules
        }
    }

    /// Whose contributions a round of a grid counted, as its note says it.
    pub(crate) fn counted(&self, note: Option<&RoundNote>) -> Option<Counted> {
        let roll = self.rolls.roll.as_ref()?;
        Some(note.map_or(Counted::Void, |note| Counted::Of(note.counted(roll))))
    }

    /// The round is over: its decision about the data comes into force. `kept` says whether this peer's
    /// training of it, if it was not counted, is part of its next contribution.
    pub(crate) fn settle_data(&mut self, over: Round, counted: &Counted, kept: bool) {
        let me = self.me();
        let is_in = |peers: &[(PeerId, Taken)]| peers.iter().any(|(peer, _)| *peer == me);
        let goes_on = matches!(counted, Counted::Of(peers) if is_in(peers));
        // Blocks that are in no contribution are trained again, by the peer that they are dealt to
        // next.
        if !goes_on && !kept {
            self.data.mine.drop_training(over);
        }
        let ledger = &mut self.data.ledger;
        let counted = match counted {
            Counted::Of(peers) => Some(peers.as_slice()),
            Counted::Void => None,
            Counted::Merged => {
                *ledger = Ledger::default();
                return;
            }
        };
        Turn::with(&self.plan, over, |turn| ledger.settle(counted, turn));
    }

    /// A round's decision about the roll comes into force; true if the roll changes.
    pub(crate) fn turn_roll(&mut self, change: &RollChange) -> bool {
        let Some(roll) = self.rolls.roll.as_ref().filter(|_| !change.is_empty()) else {
            return false;
        };
        // One round passes until something depends on newcomers.
        let since = self.round.next();
        let after = self.rolls.shared.after(roll, change, since);
        self.hold(Some(after));
        true
    }

    /// The pool of this peer's data, where rounds settle the ledger.
    pub(crate) fn pool(&self) -> Option<Pool> {
        let settles = self.plan.settles_data();
        self.config.pool.filter(|_| settles)
    }

    /// This peer in the deal, if the peers agree on the data.
    fn in_the_deal(&self) -> Option<Me> {
        let pool = self.pool()?;
        let id = self.me();
        let roll = self.rolls.roll.as_ref();
        let seat = roll.and_then(|roll| Some((roll.place_of(id)?, roll.len())));
        let place = match seat {
            Some((place, all)) => (place as u32, all as u32),
            None => {
                let all = self.participants();
                (u32::from(all.place()), u32::from(all.count()))
            }
        };
        Some(Me { id, pool, place })
    }

    /// The blocks to train in this round, or in the next one while this one is decided.
    pub(crate) fn tell_blocks(&mut self, round: Round) -> Option<Blocks> {
        let me = self.in_the_deal()?;
        let (now, data) = (self.round, &mut self.data);
        let told = Turn::with(&self.plan, now, |turn| {
            data.mine.tell(&data.ledger, &me, turn, round)
        });
        Some(told)
    }

    /// The round's contribution is ready: it claims the blocks that this peer finished.
    pub(crate) fn claim_blocks(&mut self, summary: &TrainSummary) {
        let now = self.round;
        self.data.mine.finish(now, summary.blocks);
        let me = self.in_the_deal().filter(|_| summary.samples > 0);
        let data = &mut self.data;
        let claim = |turn: Turn<'_>| me.map(|me| data.mine.claim(&data.ledger, &me, turn));
        data.taken = Turn::with(&self.plan, now, claim);
    }
}
