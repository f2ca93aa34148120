//! Weighted means over decoded slices: shards of an all-reduce, and the mix of gossip. Sums run in
//! the order that the peer gives, which is `PeerId` order.

use super::host::Host;
use super::mix_lane::MixLane;
use crate::aggregate::{RMS_MAX, quarantine};
use crate::compress::Codec;
use murmurate_protocol::{Done, ExchangeKind, FragmentId, Part, Round, SliceId, WorkError};

impl MixLane {
    /// `shard = sum_k a_k decode(slice_k) / sum_k a_k`, or what the plan's other rule makes of them.
    pub(super) fn reduce(
        &mut self,
        fragment: FragmentId,
        shard: u16,
        of: u16,
        inputs: &[(SliceId, f64)],
        host: &dyn Host,
    ) -> Result<Done, WorkError> {
        let len = self.shard_range(fragment, shard, of).len();
        let kept = self.shards.remove(&(fragment, shard));
        let mut acc = kept.unwrap_or_else(|| std::mem::take(&mut self.spare));
        acc.clear();
        acc.resize(len, 0.0);
        let total: f64 = inputs.iter().map(|(_, weight)| weight).sum();
        let result = match self.robust.take() {
            None => self.add_all(&mut acc, inputs, total, host, |acc| acc.fill(0.0)),
            Some(mut robust) => {
                let result = self.aggregate(&mut robust, &mut acc, inputs, host);
                self.robust = Some(robust);
                result
            }
        };
        self.shards.insert((fragment, shard), acc);
        result.map(|()| Done::Combined)
    }

    /// The weighted mean of whole contributions, or what the plan's other rule makes of them, becomes
    /// the move of the anchor.
    pub(super) fn gather(
        &mut self,
        round: Round,
        fragment: FragmentId,
        inputs: &[(SliceId, f64)],
        keep_local: bool,
        host: &dyn Host,
    ) -> Result<Done, WorkError> {
        self.collect();
        if let Some(mut common) = self.common.take() {
            let put = self.gather_in_common(&mut common, round, fragment, inputs, keep_local, host);
            self.common = Some(common);
            return put.map(|()| Done::Applied {
                digest: self.digest(fragment),
            });
        }
        self.reduce(fragment, 0, 1, inputs, host)?;
        let mut moved = self.shards.remove(&(fragment, 0)).unwrap_or_default();
        self.put_in_force(round, fragment, &mut moved, keep_local);
        self.shards.insert((fragment, 0), moved);
        Ok(Done::Applied {
            digest: self.digest(fragment),
        })
    }

    /// `mix = (keep local + sum_k a_k decode(slice_k)) / (keep + sum_k a_k)`, into the anchor: the
    /// local parameters stay as training left them until the mix is good.
    pub(super) fn mix(
        &mut self,
        fragment: FragmentId,
        keep: f64,
        inputs: &[(SliceId, f64)],
        host: &dyn Host,
    ) -> Result<Done, WorkError> {
        let range = self.range(fragment);
        let local = self.take_local();
        let total = keep + inputs.iter().map(|(_, weight)| weight).sum::<f64>();
        let mut anchor = std::mem::take(&mut self.anchor);
        let share = (keep / total) as f32;
        let own = |mixed: &mut [f32]| {
            for (mixed, value) in mixed.iter_mut().zip(&local[range.clone()]) {
                *mixed = share * value;
            }
        };
        own(&mut anchor[range.clone()]);
        let result = self.add_all(&mut anchor[range.clone()], inputs, total, host, own);
        if result.is_err() {
            anchor[range.clone()].copy_from_slice(&local[range]);
        }
        self.anchor = anchor;
        self.put_local(local);
        self.mixed[usize::from(fragment.0)] = result.is_ok();
        result.map(|()| Done::Combined)
    }

    /// `acc += sum_k (a_k / total) decode(slice_k)`. The sum is looked at once, after the last input:
    /// what is not finite stays so, and what cancels out does no harm. Only a sum that fails is
    /// made again from where `begin` puts it, looked at after every input, to name who spoils it.
    pub(super) fn add_all(
        &self,
        acc: &mut [f32],
        inputs: &[(SliceId, f64)],
        total: f64,
        host: &dyn Host,
        begin: impl FnOnce(&mut [f32]),
    ) -> Result<(), WorkError> {
        let share = |weight: f64| (weight / total) as f32;
        for (slice, weight) in inputs {
            self.add(acc, *slice, share(*weight), host)?;
        }
        if quarantine(acc, RMS_MAX).is_ok() {
            return Ok(());
        }
        begin(acc);
        for (slice, weight) in inputs {
            self.add_checked(acc, *slice, share(*weight), host)?;
        }
        Ok(())
    }

    /// `acc += weight decode(slice)`, and looks at the sum.
    pub(super) fn add_checked(
        &self,
        acc: &mut [f32],
        slice: SliceId,
        weight: f32,
        host: &dyn Host,
    ) -> Result<(), WorkError> {
        self.add(acc, slice, weight, host)?;
        quarantine(acc, RMS_MAX).map_err(|error| bad(slice, error.to_string()))?;
        Ok(())
    }

    /// `acc += weight decode(slice)`.
    fn add(
        &self,
        acc: &mut [f32],
        slice: SliceId,
        weight: f32,
        host: &dyn Host,
    ) -> Result<(), WorkError> {
        let bytes = host
            .get(&slice)
            .ok_or_else(|| bad(slice, "its bytes are gone".to_owned()))?;
        let added = self.codec_of(slice.part).decode_add(&bytes, weight, acc);
        added.map_err(|error| bad(slice, error.to_string()))
    }

    /// Which codec a slice is of: contributions that are gathered stay as they are.
    pub(super) fn codec_of(&self, part: Part) -> &dyn Codec {
        match part {
            Part::Contribution => self.codec.as_ref(),
            Part::Aggregate if self.exchange == ExchangeKind::Gathered => self.codec.as_ref(),
            Part::Aggregate | Part::Partial => self.aggregate_codec.as_ref(),
        }
    }
}

fn bad(slice: SliceId, reason: String) -> WorkError {
    WorkError::BadSlice {
        slice,
        origin: slice.origin,
        reason,
    }
}
