//! The signals of a peer to its exchange, and the endings and outcomes of the exchange.

use crate::exchange::ExchangeMessage;
use crate::{Digest, Done, Ending, FragmentId, OrderId, PeerId, PushOutcome, SliceId, SliceMeta};

/// A slice that arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    /// The peer that pushed it.
    pub(crate) from: PeerId,
    /// Its name.
    pub(crate) slice: SliceId,
    /// Its header.
    pub(crate) meta: SliceMeta,
    /// Hash of its bytes; only for aggregates.
    pub(crate) digest: Option<Digest>,
}

/// How a push ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PushEnd {
    pub(crate) to: PeerId,
    pub(crate) slice: SliceId,
    pub(crate) outcome: PushOutcome,
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
    Pushed(PushEnd),
    /// A slice was fetched.
    Fetched {
        slice: SliceId,
        digest: Option<Digest>,
    },
    /// The fetch of a slice failed.
    FetchFailed(SliceId),
    /// An order of the exchange was answered.
    Done { order: OrderId, done: &'a Done },
    /// A peer's link is gone.
    Gone(PeerId),
    /// A peer has said which round it is in.
    Heard(PeerId),
    /// The exchange's timer ran out.
    Timeout,
}

/// The endings that are not told yet, of fragments with their endings and whether they are told.
pub(crate) fn tell<'a>(
    fragments: impl Iterator<Item = (FragmentId, Option<&'a Ending>, &'a mut bool)>,
) -> Vec<(FragmentId, Ending)> {
    let untold = fragments.filter_map(|(fragment, ending, told)| {
        let ending = ending.filter(|_| !std::mem::replace(told, true))?;
        Some((fragment, ending.clone()))
    });
    untold.collect()
}

/// End of a round's exchange.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// Every fragment has ended, and the exchange has reported each ending.
    Ended,
    /// No peer exchanges with this one now: the round continues with more training. It has not
    /// ended, so that a peer that is alone for a while is not ahead of the others afterwards.
    Alone,
    /// The swarm is ahead of this peer.
    Behind {
        /// The peer that said so.
        teller: PeerId,
        /// Replaying past rounds is not enough, and a state must be taken over.
        resync: bool,
    },
}

/// Places of a peer's push-sum mass.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PushSum {
    /// The weight of the parameters, fragment by fragment.
    pub(crate) weights: Vec<f64>,
    /// Weight that is pushed and not acknowledged, or waits to be mixed back in.
    pub(crate) pushed: f64,
    /// Weight that arrived and is not mixed.
    pub(crate) waiting: f64,
    /// Weight that is this peer's: pushed weight is not, until it comes back.
    pub(crate) held: f64,
}
