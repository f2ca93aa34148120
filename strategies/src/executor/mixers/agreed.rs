//! All-reduce and parameter server in step: each shard is reduced by one owner, and the group
//! agrees on the reductions.

use super::rule::Rule;
use super::squeezed::Squeezed;
use crate::aggregate::Aggregator;
use crate::executor::force::End;
use crate::executor::host::Host;
use crate::executor::memory::Stores;
use crate::executor::mix_core::MixCore;
use crate::executor::mixer::{Mixer, foreign};
use murmurate_protocol::{Done, FragmentId, Order, SliceId, StoreId, WorkError};
use std::collections::BTreeMap;

/// Reductions that a group agrees on.
pub(super) struct Agreed {
    rule: Rule,
    /// What reductions of owned shards left out; only of codecs that feed it back.
    squeezed: Option<Squeezed>,
    /// Reductions of owned shards that are not encoded yet.
    shards: BTreeMap<(FragmentId, u16), Vec<f32>>,
    /// Room of the last reduction that was encoded, for the next one.
    spare: Vec<f32>,
}

impl Agreed {
    pub(super) fn new(rule: Option<Box<dyn Aggregator>>, squeezes: bool) -> Self {
        Self {
            rule: Rule::new(rule),
            squeezed: squeezes.then(Squeezed::default),
            shards: BTreeMap::new(),
            spare: Vec::new(),
        }
    }
}

impl Mixer for Agreed {
    fn combine(
        &mut self,
        core: &mut MixCore,
        order: &Order,
        host: &dyn Host,
    ) -> Result<Done, WorkError> {
        let Order::Reduce {
            fragment,
            shard,
            of,
            inputs,
        } = order
        else {
            return Err(foreign("combine"));
        };
        let len = core.places.shard(*fragment, *shard, *of).len();
        let kept = self.shards.remove(&(*fragment, *shard));
        let mut acc = kept.unwrap_or_else(|| std::mem::take(&mut self.spare));
        let reduced = self.rule.reduce(&core.codecs, &mut acc, len, inputs, host);
        self.shards.insert((*fragment, *shard), acc);
        reduced.map(|()| Done::Combined)
    }

    fn encode(
        &mut self,
        core: &mut MixCore,
        store: StoreId,
        slice: SliceId,
        of: u16,
        out: &mut Vec<u8>,
    ) -> Result<(), WorkError> {
        let reduced = match store {
            StoreId::Shard(shard) => self.shards.remove(&(slice.fragment, shard)),
            _ => None,
        };
        let reduced = reduced.ok_or_else(|| WorkError::Storage {
            reason: "there is no reduction to encode".to_owned(),
        })?;
        match &mut self.squeezed {
            Some(squeezed) => squeezed.encode(&mut core.codecs, (slice, of), &reduced, out),
            None => core.codecs.encode_aggregate(&slice, &reduced, None, out),
        }
        // All members, the owner included, continue with the encoded bytes. Kept until the end of the
        // round, the reductions would be a second model: the next reduction takes the room.
        self.spare = reduced;
        Ok(())
    }

    fn apply(
        &mut self,
        core: &mut MixCore,
        end: End,
        decided: &[SliceId],
        host: &dyn Host,
    ) -> Result<(), WorkError> {
        core.apply_aggregates(end, decided, host)?;
        if let Some(squeezed) = &mut self.squeezed {
            squeezed.settle(end.fragment, decided);
        }
        Ok(())
    }

    fn void(&mut self, fragment: FragmentId) {
        if let Some(squeezed) = &mut self.squeezed {
            squeezed.settle(fragment, &[]);
        }
    }

    fn start_over(&mut self, _core: &mut MixCore) {
        if let Some(squeezed) = &mut self.squeezed {
            squeezed.clear();
        }
    }

    fn stores(&self) -> Stores {
        let reduced = self.shards.values().map(Vec::len).sum::<usize>();
        let squeezed = self.squeezed.as_ref().map_or(0, Squeezed::len);
        Stores {
            shards: self.rule.len() + reduced + squeezed + self.spare.len(),
            ..Stores::default()
        }
    }
}
