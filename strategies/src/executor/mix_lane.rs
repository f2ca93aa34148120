//! The mix lane: performs every order that is not training. Never touches the trainer.

use super::ahead::Ahead;
use super::anchor::Anchor;
use super::at_hand::AtHand;
use super::branches::Branches;
use super::bundle;
use super::codec_state::CodecState;
use super::codecs::Codecs;
use super::contributions::Contributions;
use super::eager::Eager;
use super::ema::Ema;
use super::force::End;
use super::frame::{Handed, MixEnd};
use super::halves::Halves;
use super::host::Host;
use super::late::{Blend, Late};
use super::local::LocalBuffer;
use super::memory::Memory;
use super::mix_core::MixCore;
use super::mixer::{Mixer, foreign};
use super::mixers;
use super::parts::Parts;
use super::places::Places;
use super::scores;
use crate::TensorSpec;
use crate::compress::F32;
use murmurate_protocol::{
    Contribution, Digest, Done, FragmentId, Order, Part, Settlement, SliceId, StoreId, WorkError,
};

/// Owns all parameters but the trainer's.
pub struct MixLane {
    pub(super) core: MixCore,
    pub(super) mixer: Box<dyn Mixer>,
    pub(super) branches: Branches,
    /// What is measured next, where contributions are scored.
    pub(super) staged: Vec<f32>,
}

impl MixLane {
    pub(super) fn new(
        parts: Parts,
        anchor: Vec<f32>,
        companion: usize,
        tensors: Vec<TensorSpec>,
        (frames, at_hand): (MixEnd, Option<AtHand>),
    ) -> Self {
        let (len, mut codecs) = (anchor.len(), parts.codecs);
        let parameters = len - companion;
        let properties = codecs.any().properties();
        let of_codec = match properties.matrices {
            true => tensors.clone(),
            false => Vec::new(),
        };
        let places = Places::new(parts.fragments, parameters, tensors);
        let fragments = places.count();
        let codec = codecs.any();
        let aggregate: Box<dyn crate::compress::Codec> = match parts.mixing.sends_whole_values() {
            true => Box::new(F32),
            false => codec.aggregate(),
        };
        let gathered = parts.mixing.gathers();
        let moves_the_anchor = parts.mixing.moves_the_anchor();
        let mixer = mixers::build(parts.mixing, parts.companion, codec, &places);
        let state = CodecState::new(properties.planes, len, of_codec);
        let residual = parts.error_feedback.then(|| vec![0.0; len]);
        let eager = parts.overlap.eager;
        let in_halves = |late: &Late| late.blend == Blend::Estimate;
        let halves = parts.overlap.late.filter(in_halves);
        let halves = halves.map(|_| Halves::new(places.ranges(), parameters));
        let core = MixCore {
            ema: parts
                .ema
                .map(|decay| Ema::new(decay, &anchor[..parameters])),
            anchor: Anchor::new(
                anchor,
                parameters,
                parts.outer,
                parts.inner,
                halves,
                parts.rules,
            ),
            local: LocalBuffer::new(len, fragments, at_hand, frames),
            codecs: Codecs {
                plan: parts.plan,
                contribution: codecs,
                aggregate,
                gathered,
            },
            contributions: Contributions::new(state, residual),
            ahead: Ahead {
                trains_ahead: parts.overlap.trains_ahead,
                late: parts.overlap.late,
                eager: eager.map(|outer| Eager::new(outer, parameters, fragments)),
            },
            keeper: None,
            sends_deltas: moves_the_anchor && parts.contribution == Contribution::Delta,
            note: Vec::new(),
            places,
        };
        Self {
            core,
            mixer,
            branches: Branches::default(),
            staged: Vec::new(),
        }
    }

    /// Performs an order of this lane. `Train` and `Evaluate` come here first: the lane hands the
    /// train lane its buffer. `None` where nothing is answered.
    pub fn perform(&mut self, order: &Order, host: &dyn Host) -> Option<Done> {
        let done = match order {
            Order::Train { .. } | Order::Evaluate { .. } => {
                self.hand_over(order);
                return None;
            }
            Order::Measure { .. } => {
                self.lend_staged();
                return None;
            }
            Order::Stage { slice } => self.stage(*slice, host),
            Order::Keep { slice, bytes } => scores::keep(*slice, bytes, host),
            Order::Read { slice } => scores::read(*slice, host),
            Order::Encode { store, slice, of } => self.encode(*store, *slice, *of, host),
            Order::Mix { .. } | Order::MixReplicas { .. } | Order::EncodeRelayed { .. } => {
                // These read the local parameters.
                self.collect();
                self.mixer.combine(&mut self.core, order, host)
            }
            Order::Average {
                fragment,
                shard,
                of,
                inputs,
            } => self.average((*fragment, *shard, *of), inputs, host),
            Order::Merge {
                round,
                fragment,
                aggregates,
            } => self.merge(*round, *fragment, aggregates, host),
            Order::Reduce { .. }
            | Order::SumRow { .. }
            | Order::ResetCenter { .. }
            | Order::MoveCenter { .. } => self.mixer.combine(&mut self.core, order, host),
            Order::Apply { .. } | Order::Gather { .. } => self.end(order, host),
            Order::Void { fragment, .. } => self.void(*fragment, host),
            Order::EncodeBasis { .. } | Order::EncodeSecond { .. } | Order::EncodeJoined { .. } => {
                self.encode_in_two_passes(order, host)
            }
            Order::Append { slice, note, .. } => bundle::append(*slice, note, host),
            Order::Bundle {
                slice,
                parts,
                noted,
                ..
            } => bundle::bundle(*slice, parts, *noted, host),
            Order::Pin { round, note } => self.pin(*round, note, host),
            Order::Load { state } => self.load_state(state, host),
            Order::Settle { .. }
            | Order::Release { .. }
            | Order::ForgetReplicas { .. }
            | Order::BreakOff { .. }
            | Order::Unpin { .. } => {
                self.let_go(order, host);
                return None;
            }
            // The host saves both lanes.
            Order::Save { .. } | Order::SaveBranch { .. } => return None,
        };
        Some(done.unwrap_or_else(Done::Failed))
    }

    /// Performs an order after which something is no longer needed.
    ///
    /// # Panics
    ///
    /// If the order is another one.
    fn let_go(&mut self, order: &Order, host: &dyn Host) {
        match order {
            Order::Settle { slice, outcome } => {
                if *outcome == Settlement::Lost {
                    self.core.give_back(*slice, self.mixer.common(), host);
                }
            }
            Order::Release { slice } => host.remove(slice),
            Order::ForgetReplicas { peer } => self.mixer.forget(&mut self.core, *peer),
            Order::BreakOff { .. } => self.core.close_forward(),
            Order::Unpin { round } => host.unpin(*round),
            other => panic!("{other:?} lets nothing go"),
        }
    }

    /// Encodes for one of the passes of codecs whose members contribute twice.
    fn encode_in_two_passes(&mut self, order: &Order, host: &dyn Host) -> Result<Done, WorkError> {
        match order {
            Order::EncodeBasis { slice, of, inputs } => {
                self.encode_pass((*slice, *of), None, inputs, host)
            }
            Order::EncodeSecond { slice, of, basis } => {
                self.encode_pass((*slice, *of), Some(*basis), &[], host)
            }
            Order::EncodeJoined {
                slice,
                of,
                basis,
                inputs,
            } => self.encode_pass((*slice, *of), Some(*basis), inputs, host),
            _ => Err(foreign("encode in two passes")),
        }
    }

    fn void(&mut self, fragment: FragmentId, host: &dyn Host) -> Result<Done, WorkError> {
        // First the round's cut: it ends the record of what the round before encoded. A round can be
        // void before it has encoded anything, and has nothing to take back then.
        self.collect();
        let encoded = self.core.contributions.encoded_of(fragment);
        self.mixer.void(&mut self.core, fragment);
        let common = self.mixer.common();
        let voided = self.core.void(fragment, encoded, common, host);
        voided.map(|()| self.applied(fragment))
    }

    /// Training is over: the trainer takes the anchor over. Waits for the end of the train lane.
    pub fn close(mut self) {
        let local = &mut self.core.local;
        let mut trainer = local.at_hand.as_mut().and_then(AtHand::take);
        while let Some(handed) = local.frames.wait() {
            if let Handed::Trained(last) | Handed::Back(last) = handed {
                trainer = Some(last);
            }
        }
        if let Some(trainer) = &mut trainer {
            trainer.finish(self.core.anchor.parameters());
        }
    }

    /// Hash of every fragment's anchor.
    pub fn digests(&self) -> Vec<Digest> {
        self.core.digests()
    }

    /// The anchor: the last parameters agreed on, or, in gossip, those that opened the round.
    pub fn anchor(&self) -> &[f32] {
        self.core.anchor.parameters()
    }

    /// What it keeps, by store.
    pub fn memory(&self) -> Memory {
        let bytes = |values: usize| (values * size_of::<f32>()) as u64;
        let (core, stores) = (&self.core, self.mixer.stores());
        let contributions = &core.contributions;
        Memory {
            anchor: bytes(core.anchor.values.len()),
            local: bytes(core.local.kept()),
            residual: bytes(contributions.residual.as_ref().map_or(0, Vec::len)),
            codec: bytes(contributions.state.len() + stores.codec),
            outer: core.anchor.state_bytes() as u64 + bytes(core.ahead.len()),
            ema: bytes(core.ema.as_ref().map_or(0, Ema::len)),
            replicas: bytes(stores.replicas),
            shards: bytes(stores.shards + self.branches.len() + self.staged.len()),
        }
    }

    /// Processes what the train lane has sent. It is not done before every order: a
    /// settlement of the previous round's slices must still find them after the next cut has
    /// arrived.
    pub(super) fn collect(&mut self) {
        while let Some(handed) = self.core.local.receive() {
            if self.core.take_in(handed) {
                self.mixer.cut(&mut self.core);
            }
        }
        if self.core.take_cut_at_hand() {
            self.mixer.cut(&mut self.core);
        }
    }

    /// Gives the train lane what it needs to write the trainer's state. The host calls it when it has
    /// a `Save` to perform, before [`TrainLane::begin_save`](super::TrainLane::begin_save).
    pub fn begin_save(&mut self) {
        self.core.lend_for_save();
    }

    fn hand_over(&mut self, order: &Order) {
        let collects = match order {
            Order::Train { cut: false, .. } => self.core.ahead.eagerly().is_some(),
            Order::Evaluate { .. } => !self.core.ahead.trains_ahead,
            _ => true,
        };
        if let Order::Train { round, rules, .. } = order {
            self.core.anchor.round_begins(*round);
            self.core.direct(*round, *rules);
        }
        if collects {
            self.collect();
        }
        self.core.hand_over(order);
    }

    /// Ends a fragment's round with a result.
    fn end(&mut self, order: &Order, host: &dyn Host) -> Result<Done, WorkError> {
        self.collect();
        let (mixer, core) = (&mut self.mixer, &mut self.core);
        let (round, fragment) = match order {
            Order::Apply {
                round,
                fragment,
                aggregates,
                keep_local,
                rules,
            } => {
                core.direct(*round, *rules);
                let end = End {
                    round: *round,
                    fragment: *fragment,
                    keep_local: *keep_local,
                };
                mixer.apply(core, end, aggregates, host)?;
                (*round, *fragment)
            }
            Order::Gather {
                round,
                fragment,
                inputs,
                keep_local,
                rules,
            } => {
                core.direct(*round, *rules);
                let end = End {
                    round: *round,
                    fragment: *fragment,
                    keep_local: *keep_local,
                };
                mixer.gather(core, end, inputs, host)?;
                (*round, *fragment)
            }
            _ => unreachable!("only called for orders that end a fragment's round"),
        };
        if let Some(ema) = &mut core.ema {
            ema.follow(round, core.places.of(fragment), &core.anchor.values);
        }
        Ok(self.applied(fragment))
    }

    pub(super) fn applied(&mut self, fragment: FragmentId) -> Done {
        self.core.fragment_ended(fragment);
        Done::Applied {
            digest: self.core.digest(fragment),
            note: std::mem::take(&mut self.core.note),
        }
    }

    /// Encodes one shard of the contribution or of another store.
    fn encode(
        &mut self,
        store: StoreId,
        slice: SliceId,
        of: u16,
        host: &dyn Host,
    ) -> Result<Done, WorkError> {
        let core = &self.core;
        let len = core.places.shard(slice.fragment, slice.shard, of).len();
        let bound = core.codecs.of(&slice).bytes_bound().of(len as u64);
        let mut out = host.room(usize::try_from(bound).unwrap_or(0));
        if matches!(store, StoreId::Local | StoreId::Replica(_)) {
            self.collect();
        }
        let core = &mut self.core;
        match store {
            StoreId::Branch => Branches::encode(core, slice, of, &mut out)?,
            StoreId::Merged(shard) => self.branches.encode_mean(slice, shard, &mut out)?,
            StoreId::Local => {
                core.encode_contribution(slice, of, self.mixer.common(), &mut out)?;
            }
            store => self.mixer.encode(core, store, slice, of, &mut out)?,
        }
        let digest = (slice.part == Part::Aggregate).then(|| Digest::of(&out));
        let bytes = out.len() as u64;
        host.put(slice, host.keep(out));
        Ok(Done::Encoded { bytes, digest })
    }
}
