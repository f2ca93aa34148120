//! One fragment's way through one round: halves are encoded, the others' awaited, what is complete is
//! mixed.

use super::Pairwise;
use super::edge::Half;
use crate::core::context::Context;
use crate::core::timers::Timer;
use crate::exchange::Ending;
use crate::{Done, Event, FragmentId, Order, OrderId, PeerId, Round, SliceId, Wait, WorkError};
use std::collections::BTreeSet;

/// Where a fragment is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stage {
    /// Own halves are being encoded, or partners' awaited.
    Collecting,
    /// What is complete is being mixed.
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
    /// Halves that are being encoded.
    pub(super) encoding: usize,
    /// Whether one could not be.
    pub(super) failed: bool,
    /// Partners whose half is awaited.
    pub(super) expected: BTreeSet<PeerId>,
}

impl Mixing {
    pub(super) const fn new(round: Round, fragment: FragmentId) -> Self {
        Self {
            round,
            fragment,
            stage: Stage::Collecting,
            encoding: 0,
            failed: false,
            expected: BTreeSet::new(),
        }
    }

    /// Whether nothing is left to wait for.
    fn ready(&self) -> bool {
        self.stage == Stage::Collecting && self.encoding == 0 && self.expected.is_empty()
    }

    /// How it ended, once it has.
    pub(super) fn ending(&self) -> Option<Ending> {
        match &self.stage {
            Stage::Ended(ending) => Some(ending.clone()),
            _ => None,
        }
    }
}

impl Pairwise {
    /// Mixes every fragment where nothing is left to wait for.
    pub(super) fn advance(&mut self, cx: &mut Context) {
        for index in 0..self.mixings.len() {
            if self.mixings.get(index).is_some_and(Mixing::ready) {
                self.mix(cx, index);
            }
        }
        let waits = |m: &Mixing| m.stage == Stage::Collecting;
        if !self.mixings.iter().any(waits) {
            cx.waited(Wait::Partners, false);
            cx.timers.stop(Timer::Exchange);
        }
    }

    /// Orders the mix of what is complete.
    fn mix(&mut self, cx: &mut Context, index: usize) {
        let Some(mixing) = self.mixings.get_mut(index) else {
            return;
        };
        if mixing.failed {
            mixing.stage = Stage::Ended(Ending::Void);
            return;
        }
        let fragment = mixing.fragment;
        let mut inputs: Vec<(SliceId, f64)> = Vec::new();
        let here = self.edges.iter_mut();
        for (_, edge) in here.filter(|((of, _), edge)| *of == fragment && edge.complete()) {
            let (weight, awaited) = (edge.weight(), edge.awaited());
            let (Some(theirs), Half::Pushed(mine, _)) = (awaited, edge.half) else {
                continue;
            };
            inputs.push((theirs.slice, weight));
            if !self.replicas {
                inputs.push((mine, -weight));
            }
            edge.mixing = true;
        }
        if inputs.is_empty() {
            self.end(cx, index, 0);
            return;
        }
        let round = mixing.round;
        let order = cx.order(match self.replicas {
            true => Order::MixReplicas {
                round,
                fragment,
                inputs,
            },
            false => Order::Mix {
                round,
                fragment,
                keep: 1.0,
                inputs,
            },
        });
        mixing.stage = Stage::Combining(order);
    }

    fn end(&mut self, cx: &mut Context, index: usize, inputs: u32) {
        let Some(mixing) = self.mixings.get_mut(index) else {
            return;
        };
        cx.emit(Event::Mixed {
            round: mixing.round,
            inputs,
            weight: 1.0,
        });
        mixing.stage = Stage::Ended(Ending::Apply(Vec::new()));
    }

    /// An order was answered.
    pub(super) fn done(&mut self, cx: &mut Context, order: OrderId, done: &Done) {
        if self.encodings.contains_key(&order) {
            let bytes = match done {
                Done::Encoded { bytes, .. } => Some(*bytes),
                _ => None,
            };
            self.encoded(cx, order, bytes);
            self.advance(cx);
            return;
        }
        let combining = Stage::Combining(order);
        let Some(index) = self.mixings.iter().position(|m| m.stage == combining) else {
            return;
        };
        let Some(fragment) = self.mixings.get(index).map(|m| m.fragment) else {
            return;
        };
        match done {
            Done::Combined => {
                let inputs = self.mixed(cx, fragment);
                self.end(cx, index, inputs);
            }
            Done::Failed(WorkError::BadSlice { slice, reason, .. }) => {
                let origin = slice.origin;
                cx.accuse(origin, format!("a slice that is bad: {reason}"));
                self.unmixed(fragment);
                let bad = (fragment, origin);
                if self.edges.contains_key(&bad) {
                    self.restart(cx, bad);
                    self.mix(cx, index);
                } else if let Some(mixing) = self.mixings.get_mut(index) {
                    // Not one of the inputs: without it would be the same again.
                    mixing.stage = Stage::Ended(Ending::Void);
                }
            }
            _ => {
                self.unmixed(fragment);
                if let Some(mixing) = self.mixings.get_mut(index) {
                    mixing.stage = Stage::Ended(Ending::Void);
                }
            }
        }
        self.advance(cx);
    }

    /// The mix of a fragment is made: its exchanges are done. Gives how many.
    fn mixed(&mut self, cx: &mut Context, fragment: FragmentId) -> u32 {
        let (mut inputs, mut free, mut over) = (0, Vec::new(), Vec::new());
        for ((of, peer), edge) in &mut self.edges {
            if *of != fragment || !edge.mixing {
                continue;
            }
            inputs += 1;
            let weight = edge.weight();
            free.extend(edge.advance(weight));
            if edge.closing {
                free.extend(edge.end());
                over.push(*peer);
            }
        }
        for slice in free {
            cx.order(Order::Release { slice });
        }
        for peer in over {
            self.forget(cx, peer);
        }
        inputs
    }

    /// The mix of a fragment was not made: its exchanges are as they were.
    fn unmixed(&mut self, fragment: FragmentId) {
        let edges = self.edges.iter_mut();
        for (_, edge) in edges.filter(|((of, _), _)| *of == fragment) {
            edge.mixing = false;
        }
    }
}
