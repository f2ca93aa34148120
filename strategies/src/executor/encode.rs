//! Contributions and aggregates on their way out, and what error feedback remembers of them.

use super::codec_state::seeds;
use super::host::Host;
use super::mix_lane::{Local, MixLane};
use crate::aggregate::quarantine;
use crate::compress::EncodeContext;
use bytes::Bytes;
use murmurate_protocol::{Digest, Done, FragmentId, Part, Settlement, SliceId, StoreId, WorkError};

impl MixLane {
    /// Encodes one shard of the contribution or of a reduction.
    pub(super) fn encode(
        &mut self,
        store: StoreId,
        slice: SliceId,
        of: u16,
        host: &dyn Host,
    ) -> Result<Done, WorkError> {
        let range = self.shard_range(slice.fragment, slice.shard, of);
        let bound = self
            .codec_of(slice.part)
            .bytes_bound()
            .of(range.len() as u64);
        let mut out = Vec::with_capacity(usize::try_from(bound).unwrap_or(0));
        if let StoreId::Replica(peer) = store {
            self.encode_difference(peer, slice, &mut out)?;
        } else if store != StoreId::Local {
            let held = match store {
                StoreId::Shard(shard) => self.shards.get(&(slice.fragment, shard)),
                StoreId::Center => self.centers.get(&(slice.fragment, slice.shard)),
                StoreId::Local | StoreId::Anchor | StoreId::Replica(_) => None,
            };
            if held.is_none() && matches!(store, StoreId::Shard(_)) {
                return Err(WorkError::Storage {
                    reason: "there is no reduction to encode".to_owned(),
                });
            }
            let values = held.map_or(&self.anchor[range], Vec::as_slice);
            let (seed, shared_seed) = seeds(&self.plan, &slice);
            let mut memory = Vec::new();
            let mut context = EncodeContext {
                shared_seed,
                round: slice.round.0,
                ..EncodeContext::seeded(seed, &mut memory)
            };
            if let (Some(_), StoreId::Shard(shard)) = (&self.squeezed, store) {
                let reduced = self.shards.remove(&(slice.fragment, shard));
                let reduced = reduced.unwrap_or_default();
                self.encode_squeezed(slice, of, &reduced, &mut context, &mut out);
                self.shards.insert((slice.fragment, shard), reduced);
            } else {
                self.aggregate_codec.encode(values, &mut context, &mut out);
            }
            self.reduction_encoded(&slice);
        } else {
            self.take_piece(slice.fragment);
            let local = self.take_local();
            let encoded = self.encode_local(&local[range.clone()], slice, of, &mut out);
            self.put_local(local);
            encoded?;
            self.encoded.insert(slice, of);
        }
        // Bounds of dense codecs are tight: only sparse ones are worth another copy.
        if out.capacity() - out.len() > out.len() / 8 {
            out.shrink_to_fit();
        }
        let digest = (slice.part == Part::Aggregate).then(|| Digest::of(&out));
        let bytes = out.len() as u64;
        host.put(slice, Bytes::from(out));
        Ok(Done::Encoded { bytes, digest })
    }

    /// With error feedback, encodes delta + residual and leaves in the residual what the codec
    /// left out. Values that are not finite go nowhere: neither to others nor into the residual.
    fn encode_local(
        &mut self,
        values: &[f32],
        slice: SliceId,
        of: u16,
        out: &mut Vec<u8>,
    ) -> Result<(), WorkError> {
        quarantine(values, f64::INFINITY).map_err(|error| WorkError::Training {
            reason: format!("the contribution of fragment {}: {error}", slice.fragment.0),
        })?;
        let range = self.shard_range(slice.fragment, slice.shard, of);
        let mut context = self.codec_state.context(&self.plan, &slice, of, &range);
        if let Some(common) = &self.common {
            context.shared = common.shared(slice.fragment);
            context.held = common.held(slice.fragment, slice.origin);
        }
        match &mut self.residual {
            None => self.codec.encode(values, &mut context, out),
            Some(residual) => {
                let residual = &mut residual[range];
                self.codec
                    .encode_residual(values, residual, &mut context, out);
            }
        }
        Ok(())
    }

    /// What became of a contribution: one that was not applied goes back into the residual.
    pub(super) fn settle(&mut self, slice: SliceId, outcome: Settlement, host: &dyn Host) {
        if outcome == Settlement::Lost {
            self.give_back(slice, host);
        }
    }

    fn give_back(&mut self, slice: SliceId, host: &dyn Host) {
        let Some(of) = self.encoded.get(&slice) else {
            return;
        };
        let range = self.shard_range(slice.fragment, slice.shard, *of);
        if let (Some(residual), Some(bytes)) = (&mut self.residual, host.get(&slice)) {
            let residual = &mut residual[range];
            let common = self.common.as_ref();
            let given = match (common, self.codec.gathering()) {
                (Some(common), Some(codec)) => {
                    codec.give_back(&bytes, common.shared(slice.fragment), residual)
                }
                _ => self.codec.decode_add(&bytes, 1.0, residual),
            };
            assert!(given.is_ok(), "a codec decodes what it encoded: {given:?}");
        }
    }

    /// The round's exchange of a fragment came to nothing: the anchor stays, the trainer goes on
    /// from where it is, and the residual is again what it was, because the next delta will
    /// contain this one.
    pub(super) fn void(&mut self, fragment: FragmentId, host: &dyn Host) -> Done {
        if let Some(squeezed) = &mut self.squeezed {
            squeezed.settle(fragment, &[]);
        }
        let own: Vec<SliceId> = self
            .encoded
            .keys()
            .filter(|s| s.fragment == fragment)
            .copied()
            .collect();
        let mut local = self.take_local();
        let index = usize::from(fragment.0);
        for slice in own {
            self.give_back(slice, host);
            let of = self.encoded.remove(&slice).unwrap_or(1);
            let range = self.shard_range(fragment, slice.shard, of);
            if let Some(residual) = &mut self.residual
                && self.local[index] == Local::Contribution
            {
                let values = &local[range.clone()];
                let kept = self.codec.properties().decay;
                for (e, v) in residual[range].iter_mut().zip(values) {
                    *e = (*e - v) / kept;
                }
            }
        }
        let range = self.range(fragment);
        let back = self.eager.as_mut().is_some_and(|eager| {
            eager.resolve(index, range.clone(), &mut local[range.clone()], true)
        });
        self.put_local(local);
        self.local[index] = match back {
            true => Local::Shift,
            false => Local::Untouched,
        };
        Done::Applied {
            digest: self.digest(fragment),
        }
    }
}
