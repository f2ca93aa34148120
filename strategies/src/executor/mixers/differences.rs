//! Differences: one copy of each peer, the same at all who hold it, moved by numbered differences.
//!
//! `h_i` is the copy of this peer, `h_j` those of its neighbours. All hold the same bits of a copy,
//! because all compute it from the same bytes by the same operations.
//!
//! ```text
//! parameters:  encoded q = C(x - h_i)                      moved h' = h + decode(q)
//! estimates:   encoded q = C(x_old + t/2 (x - x_old))      moved h' = (1 - 2/t) h + 2/t decode(q)
//! mix:         x' = h_i + sum_j w_j (h_j - h_i)
//! ```
//!
//! with x what training left and t one more than the round of the slice, the same at both ends. In
//! the first line what the codec leaves out of x is dropped, so the copy is the parameters that
//! enter the mix (DCD-PSGD); in the second x_old is the x of the difference before, exact, and the
//! copies average the errors of the codec over rounds (ECD-PSGD).
//!
//! The papers take the gradient at `h_i` and add it to the mix; here it is taken at the mix, as in
//! all exchanges between neighbours. Shapes: `[len]` of a fragment, f32. State: a copy of each
//! neighbour and of this peer, and x_old with estimates. **Source:** Tang et al. 2018 (NeurIPS),
//! "Communication Compression for Decentralized Training", algorithm 1 (DCD) and 2 (ECD). Special
//! case: a lossless codec is D-PSGD's `X W` in both.

use crate::executor::codecs::{add_decoded, bad_slice, bytes_of};
use crate::executor::host::WorkResult;
use crate::executor::mix_core::MixCore;
use crate::executor::mixer::{Inputs, Mixer, Stored, Work};
use murmurate_protocol::{
    Combination, CopyPlan, Done, FragmentId, Part, PeerId, Piece, Round, SliceId, StoreId,
    WorkError,
};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
struct Copy {
    values: Vec<f32>,
    /// The last slice in it: a mix that is tried again takes it in only once.
    taken: Option<SliceId>,
    /// Of this peer's own copy with estimates: the parameters at the difference before.
    before: Vec<f32>,
}

impl Copy {
    /// Leaves in `room` what the difference of a round is added to, and gives the difference's share.
    fn open(&self, plan: CopyPlan, round: Round, room: &mut Vec<f32>) -> f32 {
        room.clear();
        match plan {
            CopyPlan::Parameters => {
                room.extend_from_slice(&self.values);
                1.0
            }
            CopyPlan::Estimates => {
                let share = 2.0 / time(round);
                room.extend(self.values.iter().map(|h| (1.0 - share) * h));
                share
            }
        }
    }
}

/// The copies that one peer holds, its own among them.
#[derive(Debug)]
pub(super) struct Differences {
    plan: CopyPlan,
    copies: BTreeMap<(FragmentId, PeerId), Copy>,
    /// The peer that this is, once it has encoded something.
    me: Option<PeerId>,
    scratch: Vec<f32>,
}

/// t of a slice's round.
fn time(round: Round) -> f32 {
    // Exact far beyond the rounds of any run; later the copies only average over fewer rounds.
    round.0.saturating_add(1).min(1 << 24) as f32
}

impl Differences {
    pub(super) const fn new(plan: CopyPlan) -> Self {
        Self {
            plan,
            copies: BTreeMap::new(),
            me: None,
            scratch: Vec::new(),
        }
    }

    /// Takes one slice into the copy of its origin. The copy has not changed when it fails.
    fn take(&mut self, work: &Work<'_>, slice: SliceId, len: usize) -> WorkResult {
        let name = (slice.fragment, slice.origin);
        let copy = self.copies.entry(name).or_default();
        // A mix that failed has perhaps taken the first of its slices. After a whole copy all are taken again.
        let whole = slice.part == Part::Aggregate;
        let past = |taken: SliceId| taken.attempt == slice.attempt && slice.round <= taken.round;
        let done = |taken: SliceId| if whole { taken == slice } else { past(taken) };
        if copy.taken.is_some_and(done) {
            return Ok(());
        }
        let bytes = bytes_of(slice, work.host)?;
        let room = &mut self.scratch;
        let share = if whole {
            room.clear();
            room.resize(len, 0.0);
            1.0
        } else if copy.values.len() == len {
            copy.open(self.plan, slice.round, room)
        } else {
            let reason = "there is nothing that it differs from";
            return Err(bad_slice(slice, reason.to_owned()));
        };
        let added = add_decoded(work.core.codecs.of(&slice), &bytes, share, room);
        added.map_err(|reason| bad_slice(slice, reason))?;
        std::mem::swap(room, &mut copy.values);
        copy.taken = Some(slice);
        Ok(())
    }

    /// Encodes the difference of the parameters to this peer's own copy, and moves the copy by it.
    fn encode_difference(&mut self, core: &mut MixCore, from: Stored<'_>) -> WorkResult {
        let (slice, out) = (from.slice, from.out);
        let range = core.places.of(slice.fragment);
        let x = &core.local.values()[range.clone()];
        core.places.must_be_finite(range.start, x)?;
        let Some(own) = self.copies.get_mut(&(slice.fragment, slice.origin)) else {
            return Err(WorkError::Storage {
                reason: "there is no copy yet that parameters differ from".to_owned(),
            });
        };
        let room = &mut self.scratch;
        room.clear();
        match self.plan {
            CopyPlan::Parameters => {
                let pairs = x.iter().zip(&own.values);
                room.extend(pairs.map(|(x, h)| x - h));
            }
            CopyPlan::Estimates => {
                let half = 0.5 * time(slice.round);
                let pairs = x.iter().zip(&own.before);
                let sent = pairs.map(|(x, before)| before + half * (x - before));
                room.extend(sent);
                own.before.copy_from_slice(x);
            }
        }
        core.encode_values(slice, room, out);
        let share = own.open(self.plan, slice.round, room);
        let moved = add_decoded(core.codecs.of(&slice), out, share, room);
        // Parameters that are this large are no neighbour's fault, and none would take them.
        moved.map_err(|reason| WorkError::Storage { reason })?;
        std::mem::swap(room, &mut own.values);
        Ok(())
    }

    /// Encodes this peer's own copy whole. Where there is none yet, it begins at the parameters.
    fn encode_whole(&mut self, core: &mut MixCore, from: Stored<'_>) -> WorkResult {
        let slice = from.slice;
        let range = core.places.of(slice.fragment);
        let own = self
            .copies
            .entry((slice.fragment, slice.origin))
            .or_default();
        if own.values.is_empty() {
            let x = &core.local.values()[range.clone()];
            core.places.must_be_finite(range.start, x)?;
            own.values.extend_from_slice(x);
            if self.plan == CopyPlan::Estimates {
                own.before.extend_from_slice(x);
            }
        }
        core.encode_values(slice, &own.values, from.out);
        Ok(())
    }

    /// Takes the slices into the copies of their origins, then mixes the copies into the anchor.
    fn mix(&mut self, work: &mut Work<'_>, fragment: FragmentId, inputs: Inputs<'_>) -> WorkResult {
        let range = work.core.places.of(fragment);
        for (slice, _) in inputs {
            self.take(work, *slice, range.len())?;
        }
        let core = &mut *work.core;
        let own = self.me.and_then(|me| self.copies.get(&(fragment, me)));
        let anchor = &mut core.anchor.values[range.clone()];
        // A peer that has sent nothing yet is mixed as it is.
        let own = own.filter(|own| own.values.len() == range.len());
        let own = own.map_or(&core.local.values()[range], |own| &own.values);
        anchor.copy_from_slice(own);
        for (slice, weight) in inputs.iter().filter(|(_, weight)| *weight != 0.0) {
            let Some(theirs) = self.copies.get(&(fragment, slice.origin)) else {
                continue;
            };
            let share = *weight as f32;
            let pairs = own.iter().zip(&theirs.values);
            let moves = anchor.iter_mut().zip(pairs);
            moves.for_each(|(x, (mine, theirs))| *x += share * (theirs - mine));
        }
        Ok(())
    }
}

// The copies stay what the neighbours hold when the anchor is replaced: the next difference leads to the new one.
impl Mixer for Differences {
    fn combine(&mut self, work: Work<'_>, piece: Piece, how: &Combination) -> WorkResult<Done> {
        work.mix_copies(piece, how, |work, fragment, inputs| {
            self.mix(work, fragment, inputs)
        })
    }

    fn encode(&mut self, core: &mut MixCore, from: Stored<'_>) -> WorkResult {
        match from.store {
            StoreId::Replica(me) if me == from.slice.origin => {
                self.me = Some(me);
                match from.slice.part {
                    Part::Aggregate => self.encode_whole(core, from),
                    _ => self.encode_difference(core, from),
                }
            }
            store => Err(WorkError::Storage {
                reason: format!("there are no differences in {store:?}"),
            }),
        }
    }

    fn forget(&mut self, _core: &mut MixCore, peer: PeerId) {
        self.copies.retain(|(_, of), _| *of != peer);
    }

    fn replicas(&self) -> usize {
        let copies = self.copies.values();
        let kept: usize = copies.map(|c| c.values.len() + c.before.len()).sum();
        kept + self.scratch.len()
    }
}
