//! What an exchange does beyond the core: one implementation for each family of exchanges, in
//! `mixers`.

use super::force::End;
use super::host::Host;
use super::mix_core::MixCore;
use murmurate_protocol::{Done, FragmentId, Order, PeerId, SliceId, StoreId, WorkError};

/// The arithmetic of one family of exchanges, with the stores that only it needs. It is chosen once
/// from the strategy and called once for each order.
pub(super) trait Mixer: Send {
    /// Performs one of the orders that combine slices: `Reduce`, `Mix`, `MixReplicas`,
    /// `ResetCenter`, `MoveCenter`, `EncodeRelayed`.
    fn combine(
        &mut self,
        core: &mut MixCore,
        order: &Order,
        host: &dyn Host,
    ) -> Result<Done, WorkError>;

    /// Encodes a shard from any store but the local one.
    fn encode(
        &mut self,
        _core: &mut MixCore,
        store: StoreId,
        _slice: SliceId,
        _of: u16,
        _out: &mut Vec<u8>,
    ) -> Result<(), WorkError> {
        Err(WorkError::Storage {
            reason: format!("this exchange has no store {store:?} to encode from"),
        })
    }

    /// Makes the round's result the anchor. By default it is what the round's mix has left there.
    fn apply(
        &mut self,
        core: &mut MixCore,
        end: End,
        _decided: &[SliceId],
        _host: &dyn Host,
    ) -> Result<(), WorkError> {
        core.end_mixed(end.fragment, false);
        Ok(())
    }

    /// Makes the weighted mean of contributions the move of the anchor.
    fn gather(
        &mut self,
        _core: &mut MixCore,
        _end: End,
        _inputs: &[(SliceId, f64)],
        _host: &dyn Host,
    ) -> Result<(), WorkError> {
        Err(foreign("gather"))
    }

    /// A round's cut is in the local buffer.
    fn cut(&mut self, _core: &mut MixCore) {}

    /// The round's exchange of a fragment was given up.
    fn void(&mut self, _core: &mut MixCore, _fragment: FragmentId) {}

    /// The anchor was replaced by another state: drops what belonged to the old one.
    fn start_over(&mut self, _core: &mut MixCore) {}

    /// Drops what is kept of a neighbour.
    fn forget(&mut self, _core: &mut MixCore, _peer: PeerId) {}

    /// Number of f32 in its stores.
    fn stores(&self) -> Stores;
}

/// An order that another exchange gives.
pub(super) fn foreign(order: &str) -> WorkError {
    WorkError::Training {
        reason: format!("the order \"{order}\" belongs to another exchange"),
    }
}

/// Number of f32 that a mixer keeps, by store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stores {
    pub(super) replicas: usize,
    pub(super) shards: usize,
}
