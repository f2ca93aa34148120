//! One fragment's way through one round: messages are made, the neighbours' awaited, what counts is
//! mixed.

use super::Relay;
use super::edge::Edge;
use crate::core::context::Context;
use crate::core::timers::Timer;
use crate::exchange::Ending;
use crate::{Done, Event, FragmentId, Order, OrderId, PeerId, Round, SliceId, Wait, WorkError};
use std::collections::BTreeSet;

/// Where a fragment is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stage {
    /// Own messages are being made, or neighbours' awaited.
    Collecting,
    /// What counts is being mixed.
    Combining(OrderId),
    /// Done.
    Ended(Ending),
}

/// One fragment in one round.
#[derive(Debug)]
pub(super) struct Mixing {
    pub(super) round: Round,
    pub(super) fragment: FragmentId,
    pub(super) stage: Stage,
    /// Messages that are being made.
    pub(super) making: usize,
    /// Whether one could not be.
    pub(super) failed: bool,
    /// Neighbours whose message is awaited.
    pub(super) expected: BTreeSet<PeerId>,
    /// Whom a message was made for.
    pub(super) served: BTreeSet<PeerId>,
    /// Who gets one as soon as one of before has come.
    pub(super) unserved: BTreeSet<PeerId>,
    /// How many messages went into the mix, and how many peers' parameters.
    mixed: (u32, u32),
}

impl Mixing {
    pub(super) const fn new(round: Round, fragment: FragmentId) -> Self {
        Self {
            round,
            fragment,
            stage: Stage::Collecting,
            making: 0,
            failed: false,
            expected: BTreeSet::new(),
            served: BTreeSet::new(),
            unserved: BTreeSet::new(),
            mixed: (0, 1),
        }
    }

    /// Gives it away for a moment, to be put back.
    pub(super) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::new(self.round, self.fragment))
    }

    /// Whether nothing is left to wait for.
    fn ready(&self) -> bool {
        self.stage == Stage::Collecting && self.making == 0 && self.expected.is_empty()
    }

    /// How it ended, once it has.
    pub(super) fn ending(&self) -> Option<Ending> {
        match &self.stage {
            Stage::Ended(ending) => Some(ending.clone()),
            _ => None,
        }
    }

    /// The mix is made.
    fn end(&mut self, cx: &mut Context) {
        let (inputs, peers) = self.mixed;
        cx.emit(Event::Mixed {
            round: self.round,
            inputs,
            weight: f64::from(peers),
        });
        self.stage = Stage::Ended(Ending::Apply(Vec::new()));
    }

    fn void(&mut self) {
        self.stage = Stage::Ended(Ending::Void);
    }
}

impl Relay {
    /// Mixes every fragment where nothing is left to wait for.
    pub(super) fn advance(&mut self, cx: &mut Context) {
        for index in 0..self.mixings.len() {
            if self.mixings.get(index).is_some_and(Mixing::ready) {
                self.collect(cx, index);
                self.mix(cx, index);
            }
        }
        let waits = |m: &Mixing| m.stage == Stage::Collecting;
        if !self.mixings.iter().any(waits) {
            cx.waited(Wait::Partners, false);
            cx.timers.stop(Timer::Exchange);
        }
    }

    /// From here on what came for this round counts, and with it what is relayed in the next.
    fn collect(&mut self, cx: &mut Context, index: usize) {
        let (Some(mixing), Some(tree)) = (self.mixings.get(index), &self.tree) else {
            return;
        };
        let (round, fragment) = (mixing.round, mixing.fragment);
        let parent = tree.place(fragment).parent.map(|near| near.peer);
        let edges = self.edges.iter_mut();
        for ((_, peer), edge) in edges.filter(|((of, _), _)| *of == fragment) {
            for slice in edge.take(parent == Some(*peer), round) {
                cx.order(Order::Release { slice });
            }
        }
    }

    /// What counts of a fragment, in `PeerId` order, each with its weight: the count that its sender gave, and no
    /// more than lie behind it; of a child that another view would not have, no more than there are others.
    pub(super) fn counting(&self, fragment: FragmentId) -> Vec<(PeerId, SliceId, u32)> {
        let Some(tree) = &self.tree else {
            return Vec::new();
        };
        let place = tree.place(fragment);
        let near = place.parent.iter().chain(&place.children);
        let near = near.filter_map(|near| {
            let edge = self.edges.get(&(fragment, near.peer))?;
            Some((near.peer, edge, near.behind))
        });
        let others = (tree.count() - 1).max(1);
        let strays = self.strays(fragment);
        let all = near.chain(strays.map(|(peer, edge)| (peer, edge, others)));
        let mut counting: Vec<(PeerId, SliceId, u32)> = all
            .filter_map(|(peer, edge, most)| {
                let (slice, count) = edge.held()?;
                Some((peer, slice, count.min(most)))
            })
            .collect();
        counting.sort_unstable_by_key(|(peer, ..)| *peer);
        counting
    }

    /// Who takes this peer for its parent, though in this view it is not.
    pub(super) fn strays(&self, fragment: FragmentId) -> impl Iterator<Item = (PeerId, &Edge)> {
        let place = self.tree.as_ref().map(|tree| tree.place(fragment));
        let near = move |peer: PeerId| {
            let mut near = place
                .into_iter()
                .flat_map(|place| place.parent.iter().chain(&place.children));
            near.any(|near| near.peer == peer)
        };
        let edges = self.edges.iter();
        edges
            .filter(move |((of, peer), edge)| *of == fragment && edge.is_child() && !near(*peer))
            .map(|((_, peer), edge)| (*peer, edge))
    }

    /// Orders the mix of what counts; what is missing of the tree is the own parameters.
    fn mix(&mut self, cx: &mut Context, index: usize) {
        let Some(fragment) = self.mixings.get(index).map(|mixing| mixing.fragment) else {
            return;
        };
        let counting = self.counting(fragment);
        let (Some(mixing), Some(tree)) = (self.mixings.get_mut(index), &self.tree) else {
            return;
        };
        if mixing.failed {
            mixing.void();
            return;
        }
        let others: u32 = counting.iter().map(|(.., weight)| weight).sum();
        mixing.mixed = (counting.len() as u32, 1 + others);
        if counting.is_empty() {
            mixing.end(cx);
            return;
        }
        let inputs = counting.into_iter();
        let inputs = inputs.map(|(_, slice, weight)| (slice, f64::from(weight)));
        let order = cx.order(Order::Mix {
            round: mixing.round,
            fragment,
            // There are more than this peer knows of where children have come that it did not know of.
            keep: f64::from(tree.count().saturating_sub(others).max(1)),
            inputs: inputs.collect(),
        });
        mixing.stage = Stage::Combining(order);
    }

    /// An order was answered.
    pub(super) fn done(&mut self, cx: &mut Context, order: OrderId, done: &Done) {
        if let Some(passing) = self.making.remove(&order) {
            self.made(cx, passing, done);
            self.advance(cx);
            return;
        }
        let combining = Stage::Combining(order);
        let Some(index) = self.mixings.iter().position(|m| m.stage == combining) else {
            return;
        };
        let Some(mixing) = self.mixings.get_mut(index) else {
            return;
        };
        let fragment = mixing.fragment;
        match done {
            Done::Combined => mixing.end(cx),
            Done::Failed(WorkError::BadSlice { slice, reason, .. }) => {
                if self.forget_bad(cx, fragment, *slice, reason) {
                    self.mix(cx, index);
                } else if let Some(mixing) = self.mixings.get_mut(index) {
                    // Not one of the inputs: without it would be the same again.
                    mixing.void();
                }
            }
            _ => mixing.void(),
        }
        self.advance(cx);
    }
}
