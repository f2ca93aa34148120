//! What goes into a peer.

use crate::core::FetchId;
use crate::wire::{Message, PeerRecord, WireError};
use crate::{Base, Digest, Directive, Evaluation, FragmentId};
use crate::{Done, OrderId, PeerId, PushOutcome, SliceId, SliceMeta, Snapshot};
use core::time::Duration;
use serde::{Deserialize, Serialize};

/// Something that happened, as the driver tells it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Input {
    /// The first input.
    Start {
        /// What an earlier life of this peer saved, if anything.
        snapshot: Option<Snapshot>,
        /// Hashes of the Executor's anchor, one per fragment.
        digests: Vec<Digest>,
        /// What earlier lives of this peer put out as [`Output::Opened`](crate::Output::Opened),
        /// oldest first.
        opened: Vec<Base>,
    },
    /// A control message from a linked peer.
    Received {
        /// From whom (authenticated by the link).
        from: PeerId,
        /// What.
        message: Message,
    },
    /// Bytes from a linked peer that are not a message.
    Malformed {
        /// From whom.
        from: PeerId,
        /// The error of their decoding.
        error: WireError,
    },
    /// This peer's own record changed (new address, new signature).
    Record(PeerRecord),
    /// A link is up.
    LinkUp(PeerId),
    /// A link is down.
    LinkDown(PeerId),
    /// A link was measured.
    Measured {
        /// To whom.
        peer: PeerId,
        /// Round-trip time.
        rtt: Duration,
        /// Bytes per second that the link carried.
        rate: u64,
    },
    /// The Executor's answer to an order.
    Done {
        /// The order.
        order: OrderId,
        /// The answer.
        done: Done,
    },
    /// A slice arrived and its bytes are at the Executor's disposal.
    Arrived {
        /// From whom.
        from: PeerId,
        /// Its name.
        slice: SliceId,
        /// What its header said.
        meta: SliceMeta,
        /// Hash of its bytes; only for aggregates.
        digest: Option<Digest>,
    },
    /// A push ended.
    Pushed {
        /// To whom.
        to: PeerId,
        /// What.
        slice: SliceId,
        /// How.
        outcome: PushOutcome,
    },
    /// A fetched slice or state is at the Executor's disposal.
    Fetched {
        /// What.
        what: FetchId,
        /// Header of a fetched slice.
        meta: Option<SliceMeta>,
        /// Hash of a fetched slice's bytes.
        digest: Option<Digest>,
    },
    /// A fetch failed.
    FetchFailed {
        /// What.
        what: FetchId,
    },
    /// The deadline that `poll_timeout` gave has passed. Too early or too late is harmless.
    Timeout,
    /// Leave politely: tell peers, write a checkpoint.
    Leave,
    /// The backward pass of a training order has completed a fragment. Its gradient is in the
    /// Executor; the answer to the order follows later.
    Cut {
        /// The training order.
        order: OrderId,
        /// Which fragment.
        fragment: FragmentId,
        /// Samples of the batch.
        samples: u64,
    },
    /// By its certificate, this peer only observes: it takes part in no round. Follows the `LinkUp`
    /// of another peer; comes before `Start` where it is this peer itself.
    Observes(PeerId),
    /// The owner's directives that the host knows, whose signatures it has checked. They come before `Start`
    /// where it knows any by then, and again with each new one.
    Directives(Vec<Directive>),
}

/// A finished evaluation with the round it belongs to, for reports.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluated {
    /// The parameters at the start of this round.
    pub round: crate::Round,
    /// Its result.
    pub evaluation: Evaluation,
}
