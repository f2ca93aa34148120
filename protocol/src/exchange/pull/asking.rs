//! One fragment's way through one round of pulling: encode what others may ask for, collect answers,
//! combine.

use crate::core::context::Context;
use crate::exchange::Ending;
use crate::{Event, FragmentId, Order, OrderId, Part, PeerId, SliceId, StoreId};
use std::collections::BTreeMap;

/// Where a fragment is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// The own parameters are being encoded.
    Encoding,
    /// Answers are awaited.
    Collecting,
    /// The mix is being made.
    Combining,
    /// Mixed, or left as it was for want of answers.
    Mixed,
    /// The mix failed, and not for the sake of an answer.
    Void,
}

/// One fragment in one round.
#[derive(Debug)]
pub(super) struct Asking {
    /// The own contribution's name.
    slice: SliceId,
    stage: Stage,
    /// The order whose answer is awaited.
    pub(super) order: Option<OrderId>,
    /// What an answer counts that is awaited.
    expected: BTreeMap<PeerId, f64>,
    /// Answers, with what they count.
    answers: BTreeMap<PeerId, (SliceId, f64)>,
}

impl Asking {
    pub(super) fn new(cx: &mut Context, fragment: FragmentId, row: Vec<(PeerId, f64)>) -> Self {
        let slice = SliceId {
            round: cx.round,
            fragment,
            shard: 0,
            part: Part::Contribution,
            origin: cx.me(),
            attempt: cx.life,
        };
        let order = cx.order(Order::Encode {
            store: StoreId::Local,
            slice,
            of: 1,
        });
        Self {
            slice,
            stage: Stage::Encoding,
            order: Some(order),
            expected: row.into_iter().collect(),
            answers: BTreeMap::new(),
        }
    }

    /// The own parameters are encoded: gives their name.
    pub(super) fn encoded(&mut self) -> SliceId {
        self.order = None;
        self.stage = Stage::Collecting;
        self.slice
    }

    /// Takes an answer in; false when none of this peer is awaited.
    pub(super) fn take(&mut self, from: PeerId, slice: SliceId) -> bool {
        match self.expected.remove(&from) {
            Some(share) => {
                self.answers.insert(from, (slice, share));
                true
            }
            None => false,
        }
    }

    /// Whether a slice is among the answers.
    pub(super) fn holds(&self, slice: SliceId) -> bool {
        self.answers.values().any(|(held, _)| *held == slice)
    }

    /// How many answers are here.
    pub(super) fn held(&self) -> usize {
        self.answers.len()
    }

    /// Whether answers are awaited, now or once the own parameters are encoded.
    pub(super) fn waits(&self) -> bool {
        matches!(self.stage, Stage::Encoding | Stage::Collecting) && !self.expected.is_empty()
    }

    /// Whose answers are awaited.
    pub(super) fn awaited(&self) -> impl Iterator<Item = PeerId> {
        self.expected.keys().copied()
    }

    /// Nothing more is waited for: gives those who have not answered.
    pub(super) fn give_up(&mut self) -> Vec<PeerId> {
        std::mem::take(&mut self.expected).into_keys().collect()
    }

    /// A peer is gone, and its answer with it unless it is here.
    pub(super) fn gone(&mut self, peer: PeerId) {
        self.expected.remove(&peer);
    }

    /// Orders the mix once nothing is left to wait for.
    pub(super) fn advance(&mut self, cx: &mut Context) {
        if self.stage == Stage::Collecting && self.expected.is_empty() {
            self.combine(cx);
        }
    }

    /// Who did not answer leaves its share to what this peer has itself: a convex combination always.
    fn combine(&mut self, cx: &mut Context) {
        if self.answers.is_empty() {
            self.mixed(cx);
            return;
        }
        let inputs: Vec<(SliceId, f64)> = self.answers.values().copied().collect();
        let taken: f64 = inputs.iter().map(|(_, share)| share).sum();
        self.stage = Stage::Combining;
        self.order = Some(cx.order(Order::Mix {
            round: self.slice.round,
            fragment: self.slice.fragment,
            keep: (1.0 - taken).max(0.0),
            inputs,
        }));
    }

    /// The mix is made, or there is nothing to mix.
    pub(super) fn mixed(&mut self, cx: &mut Context) {
        self.order = None;
        self.stage = Stage::Mixed;
        cx.emit(Event::Mixed {
            round: self.slice.round,
            inputs: u32::try_from(self.answers.len()).unwrap_or(u32::MAX),
            weight: 1.0,
        });
    }

    /// An answer is bad: the mix is made without it.
    pub(super) fn without(&mut self, cx: &mut Context, bad: SliceId) {
        let all = self.answers.len();
        self.answers.retain(|_, (slice, _)| *slice != bad);
        if self.answers.len() == all {
            // Not one of them: without it would be the same again.
            self.failed(cx);
            return;
        }
        cx.order(Order::Release { slice: bad });
        self.combine(cx);
    }

    /// It could not be encoded or mixed: the fragment stays as training left it.
    pub(super) fn failed(&mut self, cx: &mut Context) {
        self.order = None;
        self.expected.clear();
        self.stage = Stage::Void;
        let (round, fragment) = (self.slice.round, self.slice.fragment);
        cx.emit(Event::Voided { round, fragment });
    }

    /// How it ended, once it has.
    pub(super) fn ending(&self) -> Option<(FragmentId, Ending)> {
        let ending = match self.stage {
            Stage::Mixed => Ending::Apply(Vec::new()),
            Stage::Void => Ending::Void,
            Stage::Encoding | Stage::Collecting | Stage::Combining => return None,
        };
        Some((self.slice.fragment, ending))
    }

    /// The round is over: the answers can go.
    pub(super) fn close(self, cx: &mut Context) {
        for (slice, _) in self.answers.into_values() {
            cx.order(Order::Release { slice });
        }
    }
}
