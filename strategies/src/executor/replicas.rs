//! Replicas: what neighbours know of each other, and the mix of it.
//!
//! For each neighbour j two runs of values: `h_ij`, what j knows of this peer, and `h_ji`, what this peer
//! knows of j. Both ends of a link hold the same bits of both, because both make them of the same
//! bytes by the same additions.
//!
//! ```text
//! encoded: q = C(x - h_ij),   h_ij' = h_ij + decode(q)        arrived: h_ji' = h_ji + decode(q_j)
//! mix:     f_j = rate w_j (h_ji - h_ij),   x' = x + sum_j f_j
//! ```
//!
//! With exact diffusion a sum of these moves is kept for each neighbour and taken off the parameters
//! before every exchange:
//!
//! ```text
//! y = x - lr g - sum_j d_j,   f_j from y,   d_j' = d_j - f_j,   x' = y + sum_j f_j
//! ```
//!
//! which is `x' = x - lr g - sum_j d_j'`. What one end adds to its d the other takes off, so their sum
//! over the peers stays zero; a neighbour that is gone takes its d along at both ends, and what is
//! left still sums to zero.
//!
//! With error feedback there is no difference to a replica: what is sent is `C(x + e_j)`, h holds the
//! last slice alone, and what the codec left out waits in e_j for the next (DeepSqueeze):
//!
//! ```text
//! encoded: h_ij' = decode(C(x + e_j)),   e_j' = x + e_j - h_ij'        arrived: h_ji' = decode(q_j)
//! ```
//!
//! A companion that flows ([`Companion::Flows`](crate::correct::Companion)) is such a sum and nothing else: what is
//! mixed of it is `-sum_j d_j'`.
//!
//! Shapes: `[len]` of a fragment, f32. State: two runs for each neighbour, three with exact
//! diffusion or error feedback. **Source:** Koloskova et al. 2019 (ICML), algorithm 2, with one replica for each neighbour in
//! the place of one for all; Tang et al. 2018 (ICML), D2, and Yuan et al. 2019 (IEEE TSP), exact
//! diffusion, in the form of Huang and Pu 2023, CEDAS, algorithm 1, with `rate = gamma / 2`; Tang et al. 2019
//! (arXiv 1907.07346), DeepSqueeze, algorithm 1, with one residual for each neighbour. Special cases:
//! a lossless codec and rate 1 are D-PSGD's `X W`; rate 1/2 with exact diffusion is D2 with `(I + W) / 2`.

use super::host::Host;
use super::mix_lane::MixLane;
use crate::aggregate::{RMS_MAX, quarantine};
use crate::compress::Codec;
use murmurate_protocol::{Done, FragmentId, Part, PeerId, SliceId, WorkError};
use std::collections::BTreeMap;

/// What is kept for each neighbour beside what the two know of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// Nothing.
    Replicas,
    /// What has moved along the edge: exact diffusion.
    Moves,
    /// What the codec left out, and no replicas: error feedback.
    Residual,
}

/// What two neighbours know of each other in one fragment.
#[derive(Debug, Default)]
struct Copies {
    mine: Vec<f32>,
    theirs: Vec<f32>,
    /// The last slice in `theirs`: taken in once, however often a mix is tried.
    taken: Option<SliceId>,
    /// Minus what has moved along this edge; empty without exact diffusion.
    moved: Vec<f32>,
    /// What the codec left out; empty without error feedback.
    residual: Vec<f32>,
}

impl Copies {
    /// A session begins: neither end knows anything of the other.
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

/// All replicas of one peer.
#[derive(Debug)]
pub(super) struct Replicas {
    rate: f32,
    keeps: Keeps,
    /// The first fragment of a companion that flows.
    beside: Option<usize>,
    copies: BTreeMap<(FragmentId, PeerId), Copies>,
    scratch: Vec<f32>,
}

impl Replicas {
    pub(super) const fn new(rate: f32, keeps: Keeps, beside: Option<usize>) -> Self {
        Self {
            rate,
            keeps,
            beside,
            copies: BTreeMap::new(),
            scratch: Vec::new(),
        }
    }

    /// What is kept of one fragment: where a companion flows, what has flowed is all there is of it.
    fn keeps(&self, fragment: FragmentId) -> Keeps {
        match self.beside {
            Some(first) if usize::from(fragment.0) >= first => Keeps::Moves,
            _ => self.keeps,
        }
    }

    /// Values that are kept.
    pub(super) fn len(&self) -> usize {
        let copies = self.copies.values();
        copies
            .map(|c| c.mine.len() + c.theirs.len() + c.moved.len() + c.residual.len())
            .sum::<usize>()
            + self.scratch.len()
    }

    /// Drops all that has to do with a peer.
    pub(super) fn forget(&mut self, peer: PeerId) {
        self.copies.retain(|(_, other), _| *other != peer);
    }

    /// Takes what has moved off the parameters: y of x.
    pub(super) fn correct(&self, fragment: FragmentId, values: &mut [f32]) {
        let here = self.copies.iter().filter(|((of, _), _)| *of == fragment);
        for (_, copies) in here {
            for (value, moved) in values.iter_mut().zip(&copies.moved) {
                *value -= moved;
            }
        }
    }

    /// The sum of what has flowed here along all links.
    fn flowed(&self, fragment: FragmentId, into: &mut [f32]) {
        into.fill(0.0);
        self.correct(fragment, into);
    }

    /// Takes one slice into the replica of its origin. The replica is as it was when it fails.
    fn take(
        &mut self,
        slice: SliceId,
        bytes: &[u8],
        codec: &dyn Codec,
        len: usize,
    ) -> Result<(), String> {
        let keeps = self.keeps(slice.fragment);
        let copies = self.copies.get_mut(&(slice.fragment, slice.origin));
        let copies = copies.ok_or("there is no replica for it")?;
        if copies.taken == Some(slice) {
            return Ok(());
        }
        self.scratch.clear();
        if slice.part == Part::Aggregate || keeps == Keeps::Residual {
            self.scratch.resize(len, 0.0);
        } else if copies.theirs.len() == len {
            self.scratch.extend_from_slice(&copies.theirs);
        } else {
            return Err("there is nothing that it differs from".to_owned());
        }
        let added = codec.decode_add(bytes, 1.0, &mut self.scratch);
        added.map_err(|error| error.to_string())?;
        quarantine(&self.scratch, RMS_MAX).map_err(|error| error.to_string())?;
        std::mem::swap(&mut self.scratch, &mut copies.theirs);
        copies.taken = Some(slice);
        Ok(())
    }
}

impl MixLane {
    /// Encodes what the local parameters differ from what `peer` knows of them, and moves that there.
    pub(super) fn encode_difference(
        &mut self,
        peer: PeerId,
        slice: SliceId,
        out: &mut Vec<u8>,
    ) -> Result<(), WorkError> {
        let range = self.range(slice.fragment);
        let local = self.take_local();
        let values = &local[range.clone()];
        let finite = quarantine(values, f64::INFINITY).map_err(|error| WorkError::Training {
            reason: format!("the parameters of fragment {}: {error}", slice.fragment.0),
        });
        if let (Ok(_), Some(replicas)) = (&finite, &mut self.replicas) {
            let keeps = replicas.keeps(slice.fragment);
            let copies = replicas.copies.entry((slice.fragment, peer)).or_default();
            let mut context = self.codec_state.context(&self.plan, &slice, 1, &range);
            let begins = slice.part == Part::Aggregate;
            if begins {
                copies.begin(values.len(), keeps);
            }
            let known = &mut copies.mine;
            known.resize(values.len(), 0.0);
            let codec = match begins {
                true => &mut self.aggregate_codec,
                false => &mut self.codec,
            };
            if keeps == Keeps::Residual && !begins {
                let residual = &mut copies.residual;
                residual.resize(values.len(), 0.0);
                residual.iter_mut().zip(values).for_each(|(e, x)| *e += x);
                codec.encode(residual, &mut context, out);
                known.fill(0.0);
            } else {
                let difference = &mut replicas.scratch;
                difference.clear();
                difference.extend(values.iter().zip(&*known).map(|(x, h)| x - h));
                codec.encode(difference, &mut context, out);
            }
            let decoded = codec.decode_add(out, 1.0, known);
            if keeps == Keeps::Residual && !begins {
                let left = copies.residual.iter_mut().zip(&*known);
                left.for_each(|(e, h)| *e -= h);
            }
            assert!(
                decoded.is_ok(),
                "a codec decodes what it encoded: {decoded:?}"
            );
        }
        self.put_local(local);
        finite.map(|_| ())
    }

    /// Takes the slices into the replicas of their origins, then moves the local parameters towards
    /// each neighbour by its weight, into the anchor.
    pub(super) fn mix_replicas(
        &mut self,
        fragment: FragmentId,
        inputs: &[(SliceId, f64)],
        host: &dyn Host,
    ) -> Result<Done, WorkError> {
        let Some(mut replicas) = self.replicas.take() else {
            return Err(WorkError::Training {
                reason: "there are no replicas to mix".to_owned(),
            });
        };
        let mixed = self.mixed_with(&mut replicas, fragment, inputs, host);
        self.replicas = Some(replicas);
        self.mixed[usize::from(fragment.0)] = mixed.is_ok();
        mixed.map(|()| Done::Combined)
    }

    fn mixed_with(
        &mut self,
        replicas: &mut Replicas,
        fragment: FragmentId,
        inputs: &[(SliceId, f64)],
        host: &dyn Host,
    ) -> Result<(), WorkError> {
        let range = self.range(fragment);
        for (slice, _) in inputs {
            let bytes = host.get(slice);
            let codec = match slice.part {
                Part::Aggregate => &*self.aggregate_codec,
                Part::Contribution | Part::Partial => &*self.codec,
            };
            let taken = match bytes {
                Some(bytes) => replicas.take(*slice, &bytes, codec, range.len()),
                None => Err("its bytes are gone".to_owned()),
            };
            taken.map_err(|reason| WorkError::BadSlice {
                slice: *slice,
                origin: slice.origin,
                reason,
            })?;
        }
        let local = self.take_local();
        let anchor = &mut self.anchor[range.clone()];
        anchor.copy_from_slice(&local[range]);
        let keeps = replicas.keeps(fragment);
        for (slice, weight) in inputs {
            let share = replicas.rate * *weight as f32;
            let Some(copies) = replicas.copies.get_mut(&(fragment, slice.origin)) else {
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
                anchor
                    .iter_mut()
                    .zip(flows)
                    .for_each(|(x, flow)| *x += flow);
            }
        }
        self.put_local(local);
        if replicas.beside.is_some() && self.is_companion(fragment) {
            let range = self.range(fragment);
            replicas.flowed(fragment, &mut self.anchor[range]);
        }
        Ok(())
    }

    /// What is known of a companion that flows, from what has flowed along each link.
    pub(super) fn sum_flows(&mut self) {
        let Some(replicas) = self.replicas.take() else {
            return;
        };
        for at in replicas.beside.unwrap_or(usize::MAX)..self.fragments.len() {
            let range = self.fragments[at].clone();
            replicas.flowed(FragmentId(at as u16), &mut self.anchor[range]);
        }
        self.replicas = Some(replicas);
    }
}
