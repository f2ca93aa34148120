//! What comes out of a peer: outputs for its driver, and the rules that a remote broke.

use crate::core::Event;
use crate::wire::{Message, PeerRecord, Reason};
use crate::{Base, Order, OrderId, PeerId, Proof, SliceId, SliceMeta, StateId, Time};
use serde::{Deserialize, Serialize};

/// Something for the driver to do, in the order given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Output {
    /// Send a control message. Delivery is not promised; the peer has deadlines of its own.
    Send {
        /// To whom.
        to: PeerId,
        /// What.
        message: Message,
    },
    /// Push an encoded slice. Answered by `Pushed`.
    Push {
        /// To whom.
        to: PeerId,
        /// What.
        slice: SliceId,
        /// What its header says.
        meta: SliceMeta,
        /// Lower goes first.
        priority: u8,
        /// When to give up.
        deadline: Time,
    },
    /// Fetch a slice or a state. Answered by `Fetched` or `FetchFailed`.
    Fetch {
        /// What.
        what: FetchId,
        /// From whom; a state may be drawn from all of them at once.
        from: Vec<PeerId>,
        /// When to give up.
        deadline: Time,
    },
    /// Stop pushing a slice.
    Cancel {
        /// Which.
        slice: SliceId,
    },
    /// A work order for the Executor.
    Order {
        /// Its number.
        id: OrderId,
        /// What to do.
        order: Order,
    },
    /// Let the training that is under way end at the next inner step.
    Interrupt,
    /// Open a link.
    Dial(PeerRecord),
    /// Close a link.
    Disconnect {
        /// To whom.
        peer: PeerId,
        /// Why.
        reason: Reason,
    },
    /// Something for people and metrics. Never drives logic.
    Emit(Event),
    /// The peer is done: the driver may stop.
    Left,
    /// Remember, across restarts, with which parameters a round began. Asked for only where members
    /// sign. Those of the last [`OPENINGS_MAX`](crate::limits::OPENINGS_MAX) rounds suffice.
    Opened(Base),
    /// A peer lies, and this proves it to everyone.
    Prove(Box<Proof>),
}

/// Something that a peer fetches from another one over the bulk protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum FetchId {
    /// An encoded slice.
    Slice(SliceId),
    /// A pinned state.
    State(StateId),
}
