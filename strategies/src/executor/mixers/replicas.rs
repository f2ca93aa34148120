//! Replicas: copies that neighbours hold of each other's parameters, and the mix of them.
//!
//! For each neighbour j two runs of values: `h_ij`, j's copy of this peer, and `h_ji`, this peer's
//! copy of j. Both ends of a link hold the same bits of both, because both compute them from the
//! same bytes by the same additions.
//!
//! ```text
//! encoded: q = C(x - h_ij),   h_ij' = h_ij + decode(q)        arrived: h_ji' = h_ji + decode(q_j)
//! mix:     f_j = rate w_j (h_ji - h_ij),   x' = x + sum_j f_j
//! ```
//!
//! With exact diffusion a sum of these moves is kept for each neighbour and taken off the
//! parameters before every exchange:
//!
//! ```text
//! y = x - lr g - sum_j d_j,   f_j from y,   d_j' = d_j - f_j,   x' = y + sum_j f_j
//! ```
//!
//! which is `x' = x - lr g - sum_j d_j'`. What one end adds to its d the other subtracts, so the
//! sum of all d over the peers stays zero. When a link is dropped both ends drop its d, and the
//! remaining d still sum to zero.
//!
//! With error feedback nothing is sent as a difference to a copy: a slice is `C(x + e_j)`, h holds
//! the last slice alone, and what the codec left out waits in e_j for the next slice (DeepSqueeze):
//!
//! ```text
//! encoded: h_ij' = decode(C(x + e_j)),   e_j' = x + e_j - h_ij'
//! arrived: h_ji' = decode(q_j)
//! ```
//!
//! A companion that flows ([`Companion::Flows`](crate::correct::Companion)) is such a sum and
//! nothing else: its mix is `-sum_j d_j'`.
//!
//! Shapes: `[len]` of a fragment, f32. State: two runs for each neighbour, three with exact
//! diffusion or error feedback. **Source:** Koloskova et al. 2019 (ICML), algorithm 2, with one
//! replica for each neighbour instead of one for all; Tang et al. 2018 (ICML), D2, and Yuan et al.
//! 2019 (IEEE TSP), exact diffusion, in the form of Huang and Pu 2023, CEDAS, algorithm 1, with
//! `rate = gamma / 2`; Tang et al. 2019 (arXiv 1907.07346), DeepSqueeze, algorithm 1, with one
//! residual for each neighbour. Special cases: a lossless codec and rate 1 are D-PSGD's `X W`; rate
//! 1/2 with exact diffusion is D2 with `(I + W) / 2`.

use crate::executor::codecs::{add_decoded, bad_slice, bytes_of};
use crate::executor::host::WorkResult;
use crate::executor::mix_core::MixCore;
use crate::executor::mixer::{End, Inputs, Mixer, Stored, Work};
use murmurate_protocol::{
    Combination, Done, FragmentId, Part, PeerId, Piece, SliceId, StoreId, WorkError,
};
use std::collections::BTreeMap;

/// The vector of each neighbour beside the two copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// Nothing.
    Replicas,
    /// The sum of the moves along the edge: exact diffusion.
    Moves,
    /// The error of the codec, beside the last decoded values: error feedback.
    Residual,
}

/// What two neighbours know of each other in one fragment.
#[derive(Debug, Default)]
struct Copies {
    /// The neighbour's copy of this peer.
    mine: Vec<f32>,
    /// This peer's copy of the neighbour.
    theirs: Vec<f32>,
    /// The last slice in `theirs`: a mix that is tried again takes it in only once.
    taken: Option<SliceId>,
    /// Minus the sum of the moves along this edge; empty without exact diffusion.
    moved: Vec<f32>,
    /// What the codec left out; empty without error feedback.
    residual: Vec<f32>,
}

impl Copies {
    /// A session begins: both ends start from zeros, and forget what the last session kept.
    fn begin(&mut self, len: usize, keeps: Keeps) {
        self.mine.clear();
        self.moved.clear();
        self.residual.clear();
        self.mine.resize(len, 0.0);
        if keeps == Keeps::Moves {
            self.moved.resize(len, 0.0);
        }
    }
}

#[derive(Debug)]
pub(super) struct Replicas {
    rate: f32,
    keeps: Keeps,
    /// The first fragment of a companion that flows.
    flowing: Option<usize>,
    copies: BTreeMap<(FragmentId, PeerId), Copies>,
    scratch: Vec<f32>,
}

impl Replicas {
    pub(super) const fn new(rate: f32, keeps: Keeps, flowing: Option<usize>) -> Self {
        Self {
            rate,
            keeps,
            flowing,
            copies: BTreeMap::new(),
            scratch: Vec::new(),
        }
    }

    fn flows(&self, fragment: FragmentId) -> bool {
        self.flowing
            .is_some_and(|first| usize::from(fragment.0) >= first)
    }

    /// The vector of one fragment beside the two copies. Of a companion that flows only the moves matter.
    fn keeps(&self, fragment: FragmentId) -> Keeps {
        if self.flows(fragment) {
            Keeps::Moves
        } else {
            self.keeps
        }
    }

    /// Takes what has moved off the parameters: y of x.
    fn correct(&self, fragment: FragmentId, values: &mut [f32]) {
        let here = self.copies.iter().filter(|((of, _), _)| *of == fragment);
        for (_, copies) in here {
            for (value, moved) in values.iter_mut().zip(&copies.moved) {
                *value -= moved;
            }
        }
    }

    /// The sum of what has flowed to this peer along all links.
    fn flowed(&self, fragment: FragmentId, into: &mut [f32]) {
        into.fill(0.0);
        self.correct(fragment, into);
    }

    /// Computes a companion that flows from what has flowed along each link.
    fn sum_flows(&self, core: &mut MixCore) {
        for at in self.flowing.unwrap_or(usize::MAX)..core.places.count() {
            let range = core.places.ranges()[at].clone();
            self.flowed(FragmentId(at as u16), &mut core.anchor.values[range]);
        }
    }

    /// Takes one slice into the copy of its origin. The copy has not changed when it fails.
    fn take(&mut self, work: &Work<'_>, slice: SliceId, len: usize) -> WorkResult {
        let bytes = bytes_of(slice, work.host)?;
        let bad = |reason: &str| bad_slice(slice, reason.to_owned());
        let keeps = self.keeps(slice.fragment);
        let copies = self.copies.get_mut(&(slice.fragment, slice.origin));
        let copies = copies.ok_or_else(|| bad("there is no replica for it"))?;
        if copies.taken == Some(slice) {
            return Ok(());
        }
        let room = &mut self.scratch;
        room.clear();
        if slice.part == Part::Aggregate || keeps == Keeps::Residual {
            room.resize(len, 0.0);
        } else if copies.theirs.len() == len {
            room.extend_from_slice(&copies.theirs);
        } else {
            return Err(bad("there is nothing that it differs from"));
        }
        let added = add_decoded(work.core.codecs.of(&slice), &bytes, 1.0, room);
        added.map_err(|reason| bad(&reason))?;
        std::mem::swap(room, &mut copies.theirs);
        copies.taken = Some(slice);
        Ok(())
    }

    /// Encodes the difference between the local parameters and `peer`'s copy of them, and moves the copy by it.
    fn encode_difference(
        &mut self,
        core: &mut MixCore,
        peer: PeerId,
        Stored { slice, out, .. }: Stored<'_>,
    ) -> WorkResult {
        let range = core.places.of(slice.fragment);
        let values = &core.local.values()[range.clone()];
        core.places.must_be_finite(range.start, values)?;
        let keeps = self.keeps(slice.fragment);
        let copies = self.copies.entry((slice.fragment, peer)).or_default();
        let begins = slice.part == Part::Aggregate;
        if begins {
            copies.begin(values.len(), keeps);
        }
        let known = &mut copies.mine;
        known.resize(values.len(), 0.0);
        if keeps == Keeps::Residual && !begins {
            let residual = &mut copies.residual;
            residual.resize(values.len(), 0.0);
            residual.iter_mut().zip(values).for_each(|(e, x)| *e += x);
            core.encode_values(slice, residual, out);
            known.fill(0.0);
        } else {
            let difference = &mut self.scratch;
            difference.clear();
            difference.extend(values.iter().zip(&*known).map(|(x, h)| x - h));
            core.encode_values(slice, difference, out);
        }
        let decoded = core.codecs.of(&slice).decode_add(out, 1.0, known);
        if keeps == Keeps::Residual && !begins {
            let left = copies.residual.iter_mut().zip(&*known);
            left.for_each(|(e, h)| *e -= h);
        }
        assert!(
            decoded.is_ok(),
            "a codec decodes what it encoded: {decoded:?}"
        );
        Ok(())
    }

    /// Takes the slices into the copies of their origins, then moves the local parameters towards
    /// each neighbour by its weight, into the anchor.
    fn mix(&mut self, work: &mut Work<'_>, fragment: FragmentId, inputs: Inputs<'_>) -> WorkResult {
        let range = work.core.places.of(fragment);
        for (slice, _) in inputs {
            self.take(work, *slice, range.len())?;
        }
        let core = &mut *work.core;
        let anchor = &mut core.anchor.values[range.clone()];
        anchor.copy_from_slice(&core.local.values()[range]);
        let keeps = self.keeps(fragment);
        for (slice, weight) in inputs {
            let share = self.rate * *weight as f32;
            let Some(copies) = self.copies.get_mut(&(fragment, slice.origin)) else {
                continue;
            };
            let pairs = copies.theirs.iter().zip(&copies.mine);
            let flows = pairs.map(|(theirs, mine)| share * (theirs - mine));
            if keeps == Keeps::Moves {
                let here = anchor.iter_mut().zip(&mut copies.moved);
                for ((x, moved), flow) in here.zip(flows) {
                    *x += flow;
                    *moved -= flow;
                }
            } else {
                let moved = anchor.iter_mut().zip(flows);
                moved.for_each(|(x, flow)| *x += flow);
            }
        }
        if self.flows(fragment) {
            self.flowed(fragment, anchor);
        }
        Ok(())
    }
}

impl Mixer for Replicas {
    fn combine(&mut self, work: Work<'_>, piece: Piece, how: &Combination) -> WorkResult<Done> {
        work.mix_copies(piece, how, |work, fragment, inputs| {
            self.mix(work, fragment, inputs)
        })
    }

    fn encode(&mut self, core: &mut MixCore, from: Stored<'_>) -> WorkResult {
        match from.store {
            StoreId::Replica(peer) => self.encode_difference(core, peer, from),
            store => Err(WorkError::Storage {
                reason: format!("there are no replicas in {store:?}"),
            }),
        }
    }

    fn apply(&mut self, work: Work<'_>, end: End, _decided: &[SliceId]) -> WorkResult {
        // A companion that flows is known from the links, whether it was mixed in this round or not.
        let in_anchor = self.flows(end.fragment);
        work.core.end_mixed(end.fragment, in_anchor);
        Ok(())
    }

    fn cut(&mut self, core: &mut MixCore) {
        let local = core.local.values();
        let fragments = core.places.ranges().iter().enumerate();
        // The correction is of parameters; their companion has none.
        let parameters = fragments.take_while(|(_, range)| range.start < core.places.parameters());
        for (index, range) in parameters {
            self.correct(FragmentId(index as u16), &mut local[range.clone()]);
        }
    }

    fn start_over(&mut self, core: &mut MixCore) {
        if self.flowing.is_some() {
            // Flows along another peer's links, or before a restart, do not count here.
            let parameters = core.places.parameters();
            core.anchor.values[parameters..].fill(0.0);
            self.sum_flows(core);
        }
    }

    fn forget(&mut self, core: &mut MixCore, peer: PeerId) {
        self.copies.retain(|(_, other), _| *other != peer);
        self.sum_flows(core);
    }

    fn replicas(&self) -> usize {
        let copies = self.copies.values();
        let kept = copies
            .map(|c| c.mine.len() + c.theirs.len() + c.moved.len() + c.residual.len())
            .sum::<usize>();
        kept + self.scratch.len()
    }
}
