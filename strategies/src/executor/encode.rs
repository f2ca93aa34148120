//! Contributions and aggregates on their way out, and what error feedback remembers of them.

use super::host::Host;
use super::mix_lane::{Local, MixLane};
use bytes::Bytes;
use murmurate_protocol::{Digest, Done, FragmentId, Part, Settlement, SliceId, StoreId};
use std::ops::Range;

impl MixLane {
    /// Encodes one shard of the contribution or of a reduction.
    pub(super) fn encode(
        &mut self,
        store: StoreId,
        slice: SliceId,
        of: u16,
        host: &dyn Host,
    ) -> Done {
        let range = self.shard_range(slice.fragment, slice.shard, of);
        let codec = if slice.part == Part::Aggregate {
            &self.aggregate_codec
        } else {
            &self.codec
        };
        let bound = codec.bytes_bound().of(range.len() as u64);
        let mut out = Vec::with_capacity(usize::try_from(bound).unwrap_or(0));
        if let StoreId::Shard(shard) = store {
            let values = self.shards.get(&(slice.fragment, shard));
            self.aggregate_codec
                .encode(values.map_or(&[][..], Vec::as_slice), &mut out);
        } else {
            let local = self.take_local();
            self.encode_local(&local[range.clone()], range, &mut out);
            self.put_local(local);
            self.encoded.insert(slice, of);
        }
        out.shrink_to_fit();
        let digest = (slice.part == Part::Aggregate).then(|| Digest::of(&out));
        let bytes = out.len() as u64;
        host.put(slice, Bytes::from(out));
        Done::Encoded { bytes, digest }
    }

    /// With error feedback, encodes delta + residual and leaves in the residual what the codec
    /// left out.
    fn encode_local(&mut self, values: &[f32], range: Range<usize>, out: &mut Vec<u8>) {
        let Some(residual) = &mut self.residual else {
            self.codec.encode(values, out);
            return;
        };
        let residual = &mut residual[range];
        residual.iter_mut().zip(values).for_each(|(e, v)| *e += v);
        self.codec.encode(residual, out);
        let left = self.codec.decode_add(out, -1.0, residual);
        assert!(left.is_ok(), "a codec decodes what it encoded: {left:?}");
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
            let given = self.codec.decode_add(&bytes, 1.0, &mut residual[range]);
            assert!(given.is_ok(), "a codec decodes what it encoded: {given:?}");
        }
    }

    /// The round's exchange of a fragment came to nothing: the anchor stays, the trainer goes on
    /// from where it is, and the residual is again what it was, because the next delta will
    /// contain this one.
    pub(super) fn void(&mut self, fragment: FragmentId, host: &dyn Host) -> Done {
        let own: Vec<SliceId> = self
            .encoded
            .keys()
            .filter(|s| s.fragment == fragment)
            .copied()
            .collect();
        let local = self.take_local();
        let index = usize::from(fragment.0);
        for slice in own {
            self.give_back(slice, host);
            let of = self.encoded.remove(&slice).unwrap_or(1);
            let range = self.shard_range(fragment, slice.shard, of);
            if let Some(residual) = &mut self.residual
                && self.local[index] == Local::Contribution
            {
                let values = &local[range.clone()];
                residual[range]
                    .iter_mut()
                    .zip(values)
                    .for_each(|(e, v)| *e -= v);
            }
        }
        self.put_local(local);
        self.local[index] = Local::Untouched;
        Done::Applied {
            digest: self.digest(fragment),
        }
    }
}
