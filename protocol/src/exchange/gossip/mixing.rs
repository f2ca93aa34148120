//! One fragment's way through one round of gossip: encode, push, collect, combine.

use super::ledger::Ledger;
use crate::core::context::Context;
use crate::exchange::Ending;
use crate::{Event, FragmentId, Order, OrderId, Part, PeerId, Round, SliceId, SliceMeta, StoreId};
use std::collections::BTreeSet;

/// A slice that arrived and is not mixed yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) from: PeerId,
    pub(super) slice: SliceId,
    pub(super) weight: f64,
}

/// Where a fragment is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stage {
    /// The own contribution is being encoded.
    Encoding,
    /// Partners' slices are awaited.
    Collecting,
    /// The mix is being made.
    Combining,
    /// Done.
    Ended(Ending),
}

/// One fragment in one round.
#[derive(Debug)]
pub(super) struct Mixing {
    pub(super) round: Round,
    /// The own contribution's name.
    pub(super) slice: SliceId,
    pub(super) stage: Stage,
    /// The order whose answer is awaited.
    pub(super) order: Option<OrderId>,
    /// Partners whose slice of this round is awaited.
    pub(super) expected: BTreeSet<PeerId>,
    /// Mass pushed in this round.
    pub(super) sent: f64,
    /// What went into the mix.
    pub(super) mixed: Vec<Waiting>,
    /// The last combine's `keep` and `inputs`, for a retry without a bad slice.
    pub(super) last_combine: (f64, Vec<(SliceId, f64)>),
    partners: Vec<(PeerId, f64)>,
}

impl Mixing {
    /// Starts with encoding when there is somebody to push to.
    pub(super) fn new(
        cx: &mut Context,
        fragment: FragmentId,
        partners: Vec<(PeerId, f64)>,
        expected: &[PeerId],
    ) -> Self {
        let slice = SliceId {
            round: cx.round,
            fragment,
            shard: 0,
            part: Part::Contribution,
            origin: cx.me(),
            attempt: cx.life,
        };
        let order = (!partners.is_empty()).then(|| {
            cx.order(Order::Encode {
                store: StoreId::Local,
                slice,
                of: 1,
            })
        });
        Self {
            round: cx.round,
            slice,
            stage: if order.is_some() {
                Stage::Encoding
            } else {
                Stage::Collecting
            },
            order,
            expected: expected.iter().copied().collect(),
            sent: 0.0,
            mixed: Vec::new(),
            last_combine: (0.0, Vec::new()),
            partners,
        }
    }

    /// Pushes the encoded contribution to all partners, each with its share of the mass.
    pub(super) fn push(&mut self, cx: &mut Context, weight: f64, bytes: u64, ledger: &mut Ledger) {
        for (to, share) in &self.partners {
            let mass = share * weight;
            self.sent += mass;
            ledger.push(*to, self.slice, mass);
            let meta = SliceMeta {
                of: 1,
                weight: mass,
                contributors: 0,
                group: 0,
                bytes,
            };
            cx.push(*to, self.slice, meta, 0);
        }
        self.stage = Stage::Collecting;
    }

    /// Whether all that was waited for is there.
    pub(super) fn complete(&self) -> bool {
        self.stage == Stage::Collecting && self.expected.is_empty()
    }

    /// Orders the mix; without inputs there is nothing to mix.
    pub(super) fn combine(&mut self, cx: &mut Context, keep: f64, inputs: Vec<(SliceId, f64)>) {
        if inputs.is_empty() {
            self.end(cx, keep);
            return;
        }
        self.last_combine = (keep, inputs.clone());
        self.stage = Stage::Combining;
        self.order = Some(cx.order(Order::Mix {
            round: self.round,
            fragment: self.slice.fragment,
            keep,
            inputs,
        }));
    }

    /// The mix is made.
    pub(super) fn end(&mut self, cx: &mut Context, weight: f64) {
        let inputs = u32::try_from(self.mixed.len()).unwrap_or(u32::MAX);
        cx.emit(Event::Mixed {
            round: self.round,
            inputs,
            weight,
        });
        self.stage = Stage::Ended(Ending::Apply(Vec::new()));
    }

    /// How it ended, once it has.
    pub(super) fn ending(&self) -> Option<Ending> {
        match &self.stage {
            Stage::Ended(ending) => Some(ending.clone()),
            _ => None,
        }
    }
}
