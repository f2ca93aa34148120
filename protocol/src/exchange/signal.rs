//! Signals: what an exchange may have to react to.

use crate::core::FetchId;
use crate::exchange::ExchangeMessage;
use crate::{Digest, Done, OrderId, PeerId, PushOutcome, SliceId, SliceMeta};

/// A slice that arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    /// The peer that pushed it.
    pub(crate) from: PeerId,
    /// Its name.
    pub(crate) slice: SliceId,
    /// What its header said.
    pub(crate) meta: SliceMeta,
    /// Hash of its bytes; only for aggregates.
    pub(crate) digest: Option<Digest>,
}

/// Something that an exchange may have to react to.
pub(crate) enum Signal<'a> {
    /// A message of the exchange.
    Message {
        from: PeerId,
        message: &'a ExchangeMessage,
    },
    /// A slice arrived.
    Arrived(Arrived),
    /// A push ended.
    Pushed {
        to: PeerId,
        slice: SliceId,
        outcome: PushOutcome,
    },
    /// A fetch succeeded.
    Fetched {
        what: FetchId,
        digest: Option<Digest>,
    },
    /// A fetch failed.
    FetchFailed { what: FetchId },
    /// An order of the exchange was answered.
    Done { order: OrderId, done: &'a Done },
    /// A peer's link is gone.
    Gone(PeerId),
    /// A peer has said which round it is in.
    Heard(PeerId),
    /// The exchange's timer ran out.
    Timeout,
}
