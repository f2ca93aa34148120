//! What differs between the exchanges between neighbours.

use super::mix::{FragmentMix, Mixes, Mixture};
use crate::core::context::Context;
use crate::exchange::{Arrived, ExchangeMessage, PushEnd, PushSum, Standing, foreign_message};
use crate::{Done, FragmentId, OrderId, PeerError, PeerId, SliceId, Time};

/// The fragments of a round under a rule.
pub(super) type MixesOf<R> = Mixes<<R as Rule>::Fragment, <R as Rule>::Encoding>;

/// The answer to an order to encode.
pub(super) struct Encoded<'a, N> {
    pub(super) order: OrderId,
    pub(super) slice: SliceId,
    /// What the rule noted when it gave the order.
    pub(super) note: N,
    pub(super) done: &'a Done,
}

impl<N> Encoded<'_, N> {
    /// Encoded bytes; none where it failed.
    pub(super) fn bytes(&self) -> Option<u64> {
        match self.done {
            Done::Encoded { bytes, .. } => Some(*bytes),
            _ => None,
        }
    }
}

/// One way of exchanging with neighbours. It lives as long as the peer; its state of a single
/// round is in [`FragmentMix::own`].
pub(super) trait Rule: Send + Sized {
    /// Its state of one fragment in one round.
    type Fragment: Default + Send;

    /// A note to an order to encode, which comes back with the answer.
    type Encoding: Send;

    /// A round begins: orders the slices that are pushed in it, names the partners that are
    /// awaited, and starts the clock of that wait.
    fn begin(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>);

    /// A slice of this peer is encoded, or cannot be. Its round may be over.
    fn encoded(
        &mut self,
        cx: &mut Context,
        mixes: &mut MixesOf<Self>,
        encoded: Encoded<'_, Self::Encoding>,
    );

    /// A slice arrived, perhaps between two rounds.
    ///
    /// # Errors
    /// When it breaks a rule. The slice is then released by the engine.
    fn arrived(
        &mut self,
        cx: &mut Context,
        mixes: &mut MixesOf<Self>,
        arrived: &Arrived,
    ) -> Result<(), PeerError>;

    fn pushed(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>, push: PushEnd);

    /// An order of the rule's own was answered: neither an encoding for a round nor a combination. Or
    /// one of a round that this peer has left.
    fn done(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>, order: OrderId, done: &Done) {
        let _ = (cx, mixes, order, done);
    }

    /// A fragment has nothing left to wait for: what to combine. `None` if a slice could not be
    /// encoded; then the fragment is void.
    fn mixture(
        &mut self,
        cx: &mut Context,
        mix: &mut FragmentMix<Self::Fragment>,
    ) -> Option<Mixture>;

    /// What to combine instead, without a slice that is bad. `None` where it was no input.
    fn without(
        &mut self,
        cx: &mut Context,
        mix: &mut FragmentMix<Self::Fragment>,
        bad: SliceId,
    ) -> Option<Mixture>;

    /// A fragment is combined.
    fn mixed(&mut self, cx: &mut Context, mix: &mut FragmentMix<Self::Fragment>) {
        mix.end(cx);
    }

    /// A fragment cannot be combined; it is void after this.
    fn unmixed(&mut self, cx: &mut Context, mix: &mut FragmentMix<Self::Fragment>) {
        let _ = (cx, mix);
    }

    /// A peer's link is gone. The engine awaits it no longer after this.
    fn gone(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>, peer: PeerId) {
        let _ = (cx, mixes, peer);
    }

    /// A peer has said which round it is in.
    fn heard(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>) {
        let _ = (cx, mixes);
    }

    fn missed(&mut self, cx: &mut Context, fragment: FragmentId, peer: PeerId) {
        let _ = fragment;
        cx.suspect(peer);
    }

    /// The timer ran out: until when partners are awaited once more, where the rule asks them again
    /// before it gives them up.
    fn ask_again(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>) -> Option<Time> {
        let _ = (cx, mixes);
        None
    }

    /// The clock of the wait for partners runs for this fragment. It also runs while this
    /// peer's slices are encoded: partners cannot be late for a peer that is not ready itself.
    fn waits(&self, mix: &FragmentMix<Self::Fragment>) -> bool {
        mix.is_collecting()
    }

    /// A message of an exchange arrived. Most rules exchange slices only.
    ///
    /// # Errors
    /// When the message is not of this exchange.
    fn message(
        &mut self,
        cx: &mut Context,
        mixes: &mut MixesOf<Self>,
        from: PeerId,
        message: &ExchangeMessage,
    ) -> Result<(), PeerError> {
        let _ = (cx, mixes, from);
        Err(foreign_message(message, "a mix with neighbours"))
    }

    /// The round is over, or given up. Its fragments are still there.
    fn finish(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>);

    /// Slices of others that wait here.
    fn waiting(&self, mixes: &MixesOf<Self>) -> usize;

    /// The account of push-sum mass, where the rule keeps one.
    fn push_sum(&self, mixes: &MixesOf<Self>) -> PushSum {
        let _ = mixes;
        PushSum::default()
    }

    /// Sets the push-sum weights after a restart or a catch-up.
    fn set_weights(&mut self, weights: &[f64]) {
        let _ = weights;
    }

    /// How far it is with each neighbour, where both ends count.
    fn standings(&self) -> Vec<Standing> {
        Vec::new()
    }
}
