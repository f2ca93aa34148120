//! Decided rounds that stragglers and newcomers may still ask for. Bounded in rounds and bytes.

use super::butterfly::Butterfly;
use crate::exchange::Ending;
use crate::limits::{HISTORY_BYTES_MAX, HISTORY_ROUNDS_MAX};
use crate::peer::context::Context;
use crate::wire::Message;
use crate::{FragmentId, Order, Part, Round, SliceId};
use std::collections::VecDeque;

/// One decided round.
#[derive(Debug)]
struct Past {
    round: Round,
    /// Fragment by fragment: `Decided` or `Void`.
    decisions: Vec<Message>,
    slices: Vec<SliceId>,
    bytes: u64,
}

/// The last decided rounds, newest last.
#[derive(Debug, Default)]
pub(super) struct History {
    past: VecDeque<Past>,
}

impl History {
    /// The decisions of a round.
    pub(super) fn get(&self, round: Round) -> Option<Vec<Message>> {
        let past = self.past.iter().find(|p| p.round == round)?;
        Some(past.decisions.clone())
    }

    /// The decision of one fragment.
    pub(super) fn decision(&self, round: Round, fragment: FragmentId) -> Option<&Message> {
        let past = self.past.iter().find(|p| p.round == round)?;
        past.decisions.get(usize::from(fragment.0))
    }

    /// Keeps what a round's exchanges decided and lets go of everything else they held.
    pub(super) fn close(&mut self, cx: &mut Context, butterflies: Vec<Butterfly>) {
        let Some(round) = butterflies.first().map(|b| b.round) else {
            return;
        };
        if butterflies.iter().any(|b| b.ending.is_none()) {
            // Given up half-way: how the round ended others know better.
            for slice in butterflies.iter().flat_map(Butterfly::all_slices) {
                cx.order(Order::Release { slice });
            }
            return;
        }
        let mut past = Past {
            round,
            decisions: Vec::new(),
            slices: Vec::new(),
            bytes: 0,
        };
        for butterfly in butterflies {
            let keep = match &butterfly.ending {
                Some(Ending::Apply(aggregates)) => aggregates.clone(),
                _ => Vec::new(),
            };
            let all = butterfly.all_slices();
            for slice in all.into_iter().filter(|s| !keep.contains(s)) {
                cx.order(Order::Release { slice });
            }
            let void = Message::Void {
                round,
                fragment: butterfly.fragment,
                group: butterfly.group.tag,
                ballot: butterfly.agreement.promised,
            };
            let decision = butterfly.decision().filter(|_| !keep.is_empty());
            past.decisions.push(decision.unwrap_or(void));
            past.slices.extend(keep);
            past.bytes += bytes_of(cx, butterfly.fragment);
        }
        self.keep(cx, past);
    }

    /// Keeps decisions that were learned from others.
    pub(super) fn learned(&mut self, cx: &mut Context, round: Round, decisions: Vec<Message>) {
        let slices = decisions.iter().flat_map(slices_of).collect();
        let bytes = cx.plan.fragment_ids().collect::<Vec<_>>();
        let bytes = bytes.into_iter().map(|f| bytes_of(cx, f)).sum();
        self.keep(
            cx,
            Past {
                round,
                decisions,
                slices,
                bytes,
            },
        );
    }

    fn keep(&mut self, cx: &mut Context, past: Past) {
        self.past.push_back(past);
        while self.past.len() > 1 && self.too_much() {
            let Some(oldest) = self.past.pop_front() else {
                break;
            };
            for slice in oldest.slices {
                cx.order(Order::Release { slice });
            }
        }
    }

    fn too_much(&self) -> bool {
        let bytes: u64 = self.past.iter().map(|p| p.bytes).sum();
        self.past.len() > HISTORY_ROUNDS_MAX || bytes > HISTORY_BYTES_MAX
    }
}

/// The slices that a decision names.
pub(crate) fn slices_of(decision: &Message) -> Vec<SliceId> {
    let Message::Decided {
        round,
        fragment,
        versions,
        ..
    } = decision
    else {
        return Vec::new();
    };
    let name = |(shard, version): (u16, &crate::wire::ShardVersion)| SliceId {
        round: *round,
        fragment: *fragment,
        shard,
        part: Part::Aggregate,
        origin: version.owner,
        attempt: version.attempt,
    };
    (0u16..).zip(versions).map(name).collect()
}

fn bytes_of(cx: &Context, fragment: FragmentId) -> u64 {
    cx.plan
        .fragment(fragment)
        .map_or(0, |f| f.aggregate.of(f.len))
}
