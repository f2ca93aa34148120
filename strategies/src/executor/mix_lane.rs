//! The mix lane: performs every order that is not training. Never touches the trainer.

use super::anchor::{Anchor, Ema};
use super::codecs::{CodecState, Codecs, encoded};
use super::common::Common;
use super::contributions::Contributions;
use super::frame::{Handed, Held, MixEnd};
use super::host::{Host, WorkResult};
use super::late::{Ahead, Blend, Eager, Halves, Late};
use super::local::{AtHand, LocalBuffer};
use super::masks::{self, Masks};
use super::merge::Branches;
use super::mix_core::MixCore;
use super::mixer::{End, Mixer, Stored, Work};
use super::places::Places;
use super::{Hidden, Parts, bundle, mixers};
use crate::TensorSpec;
use crate::aggregate::Noised;
use crate::compress::F32;
use murmurate_protocol::{
    Combination, Contribution, Digest, Done, Ending, FragmentId, Order, PeerId, Piece, PlanHash,
    Settlement, SliceId, Source, StoreId, TrainingRules, Unneeded,
};

/// Bytes that the mix lane keeps, by store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The last parameters agreed on.
    pub anchor: u64,
    /// The buffer that travels between the lanes.
    pub local: u64,
    /// What the codec left out, kept for the next round (error feedback).
    pub residual: u64,
    /// State of the codec.
    pub codec: u64,
    /// State of the outer and of the shared inner optimizer, and of eager updates.
    pub outer: u64,
    /// A moving average of the anchor.
    pub ema: u64,
    /// Copies that this peer and its neighbours hold of each other.
    pub replicas: u64,
    /// Reductions of owned shards, owned shards of a center, and contributions that a robust rule
    /// has decoded for them.
    pub shards: u64,
}

impl Memory {
    /// The sum of all stores.
    pub const fn total(&self) -> u64 {
        let kept = self.residual + self.codec + self.outer + self.ema + self.replicas;
        self.anchor + self.local + kept + self.shards
    }
}

/// Owns all parameters but the trainer's.
pub struct MixLane {
    pub(super) core: MixCore,
    pub(super) mixer: Box<dyn Mixer>,
    pub(super) branches: Branches,
    /// The parameters that are measured next, where contributions are scored.
    pub(super) staged: Vec<f32>,
}

impl MixLane {
    pub(super) fn new(
        parts: Parts,
        anchor: Vec<f32>,
        companion: usize,
        tensors: Vec<TensorSpec>,
        frames: MixEnd,
        at_hand: Option<AtHand>,
    ) -> Self {
        let (len, mut codecs) = (anchor.len(), parts.codecs);
        let parameters = len - companion;
        let properties = codecs.any().properties();
        let mut of_codec = Vec::new();
        if properties.matrices {
            of_codec.clone_from(&tensors);
        }
        let places = Places::new(parts.fragments, parameters, tensors);
        let fragments = places.count();
        let codec = codecs.any();
        let aggregate = if parts.mixing.sends_whole_values() {
            Box::new(F32)
        } else {
            codec.aggregate()
        };
        let gathered = parts.mixing.gathers();
        let moves_the_anchor = parts.mixing.moves_the_anchor();
        let in_common = mixers::in_common(&parts.mixing, codec);
        let mixer = mixers::build(parts.mixing, parts.companion, codec, &places);
        let state = CodecState::new(properties.planes, len, of_codec);
        let residual = parts.error_feedback.then(|| vec![0.0; len]);
        let eager = parts.overlap.eager;
        let in_halves = |late: &Late| late.blend == Blend::Estimate;
        let halves = parts.overlap.late.filter(in_halves);
        let halves = halves.map(|_| Halves::new(places.ranges(), parameters));
        let (noised, masks) = hide(parts.hidden, parts.plan);
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
            contributions: Contributions::new(
                state,
                residual,
                in_common.then(|| Common::new(fragments)),
            ),
            mixed: vec![false; fragments],
            ahead: Ahead {
                trains_ahead: parts.overlap.trains_ahead,
                late: parts.overlap.late,
                eager: eager.map(|outer| Eager::new(outer, parameters, fragments)),
            },
            keeper: None,
            sends_deltas: moves_the_anchor && parts.contribution == Contribution::Delta,
            noised,
            masks,
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
            Order::Read { slice } => bundle::read(*slice, host),
            Order::Encode { slice, of, from } => self.encode(*slice, *of, from, host),
            Order::Combine { piece, how } => self.combine(*piece, how, host),
            Order::Apply {
                round,
                fragment,
                ending,
                keep_local,
                rules,
            } => {
                let end = End {
                    round: *round,
                    fragment: *fragment,
                    keep_local: *keep_local,
                };
                self.end(end, ending, *rules, host)
            }
            Order::Pin { round, note } => self.pin(*round, note, host),
            Order::Load { state } => self.load_state(state, host),
            Order::Settle { .. } | Order::Release { .. } | Order::Forget(_) => {
                self.let_go(order, host);
                return None;
            }
            // The host saves both lanes.
            Order::Save { .. } => return None,
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
                    self.core.give_back(*slice, host);
                }
            }
            Order::Release { slice } => host.remove(slice),
            Order::Forget(Unneeded::Replicas(peer)) => self.mixer.forget(&mut self.core, *peer),
            Order::Forget(Unneeded::Forward(_)) => self.core.close_forward(),
            Order::Forget(Unneeded::Pinned(round)) => host.unpin(*round),
            other => panic!("{other:?} lets nothing go"),
        }
    }

    /// Makes means of branches the anchor of a fragment. Everything that belonged to one side is dropped.
    fn merge(
        &mut self,
        End {
            round, fragment, ..
        }: End,
        aggregates: &[SliceId],
        host: &dyn Host,
    ) -> WorkResult<Done> {
        let merged = Branches::decode(&self.core, fragment, aggregates, host)?;
        // First what training has sent: it would take the place of what the trainer takes over.
        self.collect();
        self.core.anchor.values[self.core.places.of(fragment)].copy_from_slice(&merged);
        self.core.anchor.reset_outer();
        self.start_over();
        self.core.local.set(fragment, Held::TakeAnchor);
        self.core.anchor.round_begins(round);
        Ok(self.applied(fragment))
    }

    /// Training is over: the trainer takes the anchor over. Waits for the end of the train lane.
    pub fn close(mut self) {
        let local = &mut self.core.local;
        let mut trainer = local.at_hand.as_mut().and_then(AtHand::take);
        while let Some(handed) = local.frames.wait() {
            if let Handed::Trainer { trainer: last, .. } = handed {
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

    /// Its memory in bytes, by store.
    pub fn memory(&self) -> Memory {
        let bytes = |values: usize| (values * size_of::<f32>()) as u64;
        let (core, mixer) = (&self.core, &self.mixer);
        let contributions = &core.contributions;
        let in_common = contributions.common.as_ref();
        Memory {
            anchor: bytes(core.anchor.values.len()),
            local: bytes(core.local.kept()),
            residual: bytes(contributions.residual.as_ref().map_or(0, Vec::len)),
            codec: bytes(contributions.state.len() + in_common.map_or(0, Common::len)),
            outer: core.anchor.state_bytes() as u64 + bytes(core.ahead.len()),
            ema: bytes(core.ema.as_ref().map_or(0, Ema::len)),
            replicas: bytes(mixer.replicas()),
            shards: bytes(mixer.shards() + self.branches.len() + self.staged.len()),
        }
    }

    /// Processes what the train lane has sent. It is not done before every order: a
    /// settlement of the previous round's slices must still find them after the next cut has
    /// arrived.
    pub(super) fn collect(&mut self) {
        while let Some(handed) = self.core.local.frames.receive() {
            if self.core.take_in(handed) {
                self.mixer.cut(&mut self.core);
            }
        }
        if self.core.take_cut_at_hand() {
            self.mixer.cut(&mut self.core);
        }
    }

    /// Lends the train lane a trainer at hand, so that the lane can write its state. The host calls
    /// it when it has a `Save` to perform, before [`TrainLane::begin_save`](super::TrainLane::begin_save).
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

    fn end(
        &mut self,
        end: End,
        ending: &Ending,
        rules: TrainingRules,
        host: &dyn Host,
    ) -> WorkResult<Done> {
        if let Ending::Merge(aggregates) = ending {
            return self.merge(end, aggregates, host);
        }
        // First the round's cut: it ends the record of what the round before encoded. A round can be
        // void before it has encoded anything, and has nothing to take back then.
        self.collect();
        let (mixer, core) = (&mut self.mixer, &mut self.core);
        if matches!(ending, Ending::Void) {
            mixer.void(core, end.fragment);
            core.void(end.fragment, host)?;
            return Ok(self.applied(end.fragment));
        }
        core.direct(end.round, rules);
        match ending {
            Ending::Gather(inputs) => mixer.gather(Work { core, host }, end, inputs)?,
            Ending::Apply(aggregates) => mixer.apply(Work { core, host }, end, aggregates)?,
            Ending::Merge(_) | Ending::Void => {}
        }
        if let Some(ema) = &mut core.ema {
            let range = core.places.of(end.fragment);
            ema.follow(end.round, range, &core.anchor.values);
        }
        Ok(self.applied(end.fragment))
    }

    pub(super) fn applied(&mut self, fragment: FragmentId) -> Done {
        self.core.fragment_ended(fragment);
        Done::Applied {
            digest: self.core.digest(fragment),
            note: std::mem::take(&mut self.core.note),
        }
    }

    fn combine(&mut self, piece: Piece, how: &Combination, host: &dyn Host) -> WorkResult<Done> {
        match how {
            Combination::Average(inputs) => self.branches.average(&self.core, piece, inputs, host),
            _ => {
                if matches!(
                    how,
                    Combination::Mix { .. } | Combination::MixReplicas { .. }
                ) {
                    // These read the local parameters.
                    self.collect();
                }
                let core = &mut self.core;
                self.mixer.combine(Work { core, host }, piece, how)
            }
        }
    }

    fn encode(
        &mut self,
        slice: SliceId,
        of: u16,
        from: &Source,
        host: &dyn Host,
    ) -> WorkResult<Done> {
        let core = &mut self.core;
        match from {
            Source::Store(store) => self.encode_store(*store, slice, of, host),
            Source::Relayed(inputs) => {
                // It reads the local parameters.
                self.collect();
                let core = &mut self.core;
                self.mixer.relay(Work { core, host }, slice, inputs)
            }
            Source::Basis(inputs) => Work { core, host }.combine_pass(slice, of, None, inputs),
            Source::Second { basis } => Work { core, host }.encode_second(slice, of, *basis),
            Source::Joined { basis, inputs } => {
                Work { core, host }.combine_pass(slice, of, Some(*basis), inputs)
            }
            Source::Noted(note) => bundle::append(slice, note, host),
            Source::Bundle { parts, noted } => bundle::bundle(slice, parts, *noted, host),
            Source::Bytes(bytes) => Ok(bundle::put(slice, bytes.clone(), host)),
            Source::Masked(members) => self.encode_masked(slice, of, members, host),
        }
    }

    /// Encodes one shard of the contribution for the sum of these members' alone.
    fn encode_masked(
        &mut self,
        slice: SliceId,
        of: u16,
        members: &[(PeerId, f64)],
        host: &dyn Host,
    ) -> WorkResult<Done> {
        self.collect();
        let len = self
            .core
            .places
            .shard(slice.fragment, slice.shard, of)
            .len();
        let mut out = host.room(masks::BYTES.of(len as u64) as usize);
        let core = &mut self.core;
        core.encode_contribution(slice, of, Some(members), &mut out)?;
        Ok(encoded(slice, out, host))
    }

    /// Encodes one shard of the contribution or of another store.
    fn encode_store(
        &mut self,
        store: StoreId,
        slice: SliceId,
        of: u16,
        host: &dyn Host,
    ) -> WorkResult<Done> {
        let core = &self.core;
        let len = core.places.shard(slice.fragment, slice.shard, of).len();
        let mut out = core.codecs.room(&slice, len, host);
        if matches!(store, StoreId::Local | StoreId::Replica(_)) {
            self.collect();
        }
        let core = &mut self.core;
        match store {
            StoreId::Branch => Branches::encode(core, slice, of, &mut out)?,
            StoreId::Merged(shard) => self.branches.encode_mean(slice, shard, &mut out)?,
            StoreId::Local => {
                core.encode_contribution(slice, of, None, &mut out)?;
            }
            store => {
                let out = &mut out;
                let from = Stored {
                    store,
                    slice,
                    of,
                    out,
                };
                self.mixer.encode(core, from)?;
            }
        }
        Ok(encoded(slice, out, host))
    }
}

/// What hides contributions.
///
/// # Panics
/// If something is to be hidden, and the host has given no secrets.
fn hide(hidden: Hidden, plan: PlanHash) -> (Option<Noised>, Option<Masks>) {
    if hidden.noised.is_none() && !hidden.masked {
        return (None, None);
    }
    let secrets = hidden.secrets.expect("the host gives its secrets");
    let noised = hidden
        .noised
        .map(|privacy| Noised::new(&privacy, secrets.noise));
    let masks = hidden.masked.then(|| Masks::new(plan, secrets));
    (noised, masks)
}
