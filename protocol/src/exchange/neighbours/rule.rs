//! What differs between the exchanges between neighbours.

use crate::core::context::Context;
use crate::exchange::{Arrived, ExchangeMessage, PushEnd, PushSum, Standing, foreign_message};
use crate::sorted::{SortedMap, SortedSet};
use crate::{
    Checked, Combination, Done, Ending, Event, FragmentId, Order, OrderId, Partners, PeerId, Piece,
    Round, SliceId, Source, Time, Topology, Wait,
};

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
    ) -> Checked;

    fn pushed(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>, push: PushEnd);

    /// An order of the rule's own was answered: neither an encoding for a round nor a combination. Or
    /// one of a round that this peer has left.
    fn done(&mut self, _: &mut Context, _: &mut MixesOf<Self>, _: OrderId, _: &Done) {}

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
    fn unmixed(&mut self, _: &mut Context, _: &mut FragmentMix<Self::Fragment>) {}

    /// A peer's link is gone. The engine awaits it no longer after this.
    fn gone(&mut self, _: &mut Context, _: &mut MixesOf<Self>, _: PeerId) {}

    /// A peer has said which round it is in.
    fn heard(&mut self, _: &mut Context, _: &mut MixesOf<Self>) {}

    fn missed(&mut self, cx: &mut Context, _: FragmentId, peer: PeerId) {
        cx.suspect(peer);
    }

    /// The timer ran out: until when partners are awaited once more, where the rule asks them again
    /// before it gives them up.
    fn ask_again(&mut self, _: &mut Context, _: &mut MixesOf<Self>) -> Option<Time> {
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
        _: &mut Context,
        _: &mut MixesOf<Self>,
        _: PeerId,
        message: &ExchangeMessage,
    ) -> Checked {
        Err(foreign_message(message, "a mix with neighbours"))
    }

    /// The round is over, or given up. Its fragments are still there.
    fn finish(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>);

    /// Slices of others that wait here.
    fn waiting(&self, mixes: &MixesOf<Self>) -> usize;

    /// The account of push-sum mass, where the rule keeps one.
    fn push_sum(&self, _: &MixesOf<Self>) -> PushSum {
        PushSum::default()
    }

    /// Sets the push-sum weights after a restart or a catch-up.
    fn set_weights(&mut self, _: &[f64]) {}

    /// How far it is with each neighbour, where both ends count.
    fn standings(&self) -> Vec<Standing> {
        Vec::new()
    }
}

/// What to combine into a fragment of this peer's parameters.
#[derive(Debug)]
pub(super) struct Mixture {
    /// The order to do so; none where there is nothing to combine.
    pub(super) order: Option<Order>,
    /// How many neighbours' slices it takes, for the report of the mix.
    pub(super) neighbours: u32,
    /// The weight to report: of the push-sum afterwards, or how many peers are in the mean.
    pub(super) weight: f64,
}

/// Where a fragment is.
#[derive(Clone, Debug, PartialEq)]
enum MixStage {
    /// Own slices are being encoded, or partners' slices awaited.
    Collecting,
    /// The order to combine is under way.
    Combining(OrderId),
    /// Mixed, or as training left it.
    Ended(Ending),
}

/// One fragment in one round.
///
/// ```text
/// Collecting --(all encoded and arrived)------> Combining --> Ended(Apply)
///     |                                           |  ^
///     |                                           +--+  without a bad slice
///     +--------(nothing to combine)--------------------> Ended(Apply)
///     +--------(own slice not encoded)--> Ended(Void) <-- any other failure to combine
/// ```
///
/// `Apply` comes without slices: combining has already moved the parameters, and no anchor waits
/// for them.
#[derive(Debug)]
pub(super) struct FragmentMix<P> {
    pub(super) round: Round,
    pub(super) fragment: FragmentId,
    /// Own slices that are being encoded.
    pub(super) encoding: usize,
    /// Set once one of them could not be encoded.
    pub(super) failed: bool,
    /// Partners whose slice is awaited.
    pub(super) expected: SortedSet<PeerId>,
    /// What the rule keeps of this fragment and round.
    pub(super) own: P,
    stage: MixStage,
    /// What the last combination took: slices of neighbours, and the weight to report.
    taken: (u32, f64),
}

impl<P: Default> FragmentMix<P> {
    pub(super) fn new(round: Round, fragment: FragmentId) -> Self {
        Self {
            round,
            fragment,
            encoding: 0,
            failed: false,
            expected: SortedSet::new(),
            own: P::default(),
            stage: MixStage::Collecting,
            taken: (0, 0.0),
        }
    }
}

impl<P> FragmentMix<P> {
    /// Slices may still be pushed and taken in for this round.
    pub(super) fn is_collecting(&self) -> bool {
        self.stage == MixStage::Collecting
    }

    /// Nothing is left to wait for.
    pub(super) fn is_ready(&self) -> bool {
        self.is_collecting() && self.encoding == 0 && self.expected.is_empty()
    }

    fn is_combining(&self, order: OrderId) -> bool {
        self.stage == MixStage::Combining(order)
    }

    /// The weighted mean of this peer's parameters, with weight `keep`, and of slices.
    pub(super) fn mean(&self, keep: f64, inputs: Vec<(SliceId, f64)>) -> Option<Order> {
        (!inputs.is_empty()).then_some(Order::Combine {
            piece: Piece::whole(self.fragment),
            how: Combination::Mix {
                round: self.round,
                keep,
                inputs,
            },
        })
    }

    /// Neighbours' copies that slices move, mixed into this peer's parameters.
    pub(super) fn replicas(&self, inputs: Vec<(SliceId, f64)>) -> Option<Order> {
        (!inputs.is_empty()).then_some(Order::Combine {
            piece: Piece::whole(self.fragment),
            how: Combination::MixReplicas {
                round: self.round,
                inputs,
            },
        })
    }

    /// Orders the mixture; with nothing to combine the fragment is mixed at once.
    pub(super) fn combine(&mut self, cx: &mut Context, mixture: Mixture) {
        self.taken = (mixture.neighbours, mixture.weight);
        match mixture.order {
            Some(order) => self.stage = MixStage::Combining(cx.order(order)),
            None => self.end(cx),
        }
    }

    pub(super) fn end(&mut self, cx: &mut Context) {
        let (inputs, weight) = self.taken;
        cx.emit(Event::Mixed {
            round: self.round,
            inputs,
            weight,
        });
        self.stage = MixStage::Ended(Ending::Apply(Vec::new()));
    }

    /// The parameters stay as training left them.
    pub(super) fn void(&mut self) {
        self.stage = MixStage::Ended(Ending::Void);
    }

    pub(super) fn ending(&self) -> Option<(FragmentId, Ending)> {
        match &self.stage {
            MixStage::Ended(ending) => Some((self.fragment, ending.clone())),
            MixStage::Collecting | MixStage::Combining(_) => None,
        }
    }
}

/// A round's fragments. A rule keeps `F` of each, and notes `E` with orders to encode.
pub(super) struct Mixes<F, E> {
    /// When the round's exchange began.
    began: Time,
    /// One for each fragment of the plan, in its order.
    fragments: Vec<FragmentMix<F>>,
    /// Unanswered orders to encode, with the rule's notes. They may outlive their round.
    encodings: SortedMap<OrderId, (SliceId, E)>,
}

impl<F, E> Default for Mixes<F, E> {
    fn default() -> Self {
        Self {
            began: Time::ZERO,
            fragments: Vec::new(),
            encodings: SortedMap::new(),
        }
    }
}

impl<F: Default, E> Mixes<F, E> {
    pub(super) fn begin(&mut self, cx: &Context) {
        self.began = cx.now;
        let ids = cx.plan.fragment_ids();
        self.fragments = ids.map(|id| FragmentMix::new(cx.round, id)).collect();
    }

    pub(super) fn clear(&mut self) {
        self.fragments.clear();
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &FragmentMix<F>> {
        self.fragments.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut FragmentMix<F>> {
        self.fragments.iter_mut()
    }

    pub(super) fn at(&mut self, index: usize) -> Option<&mut FragmentMix<F>> {
        self.fragments.get_mut(index)
    }

    /// A fragment of this round; none between two rounds.
    pub(super) fn get_mut(&mut self, fragment: FragmentId) -> Option<&mut FragmentMix<F>> {
        self.at(usize::from(fragment.0))
    }

    /// The fragment that this peer's slice was encoded for; `None` after its round.
    pub(super) fn of(&mut self, slice: SliceId) -> Option<&mut FragmentMix<F>> {
        let mix = self.get_mut(slice.fragment)?;
        (mix.round == slice.round).then_some(mix)
    }

    pub(super) fn combining(&self, order: OrderId) -> Option<usize> {
        let mut fragments = self.fragments.iter();
        fragments.position(|mix| mix.is_combining(order))
    }

    /// Orders the encoding of a whole fragment, which the fragment waits for.
    pub(super) fn encode(
        &mut self,
        cx: &mut Context,
        from: Source,
        slice: SliceId,
        note: E,
    ) -> OrderId {
        let id = cx.encode(slice, 1, from);
        self.encodings.insert(id, (slice, note));
        if let Some(mix) = self.of(slice) {
            mix.encoding += 1;
        }
        id
    }

    /// An order to encode was answered: its fragment no longer waits for it.
    pub(super) fn take_encoding(&mut self, order: OrderId) -> Option<(SliceId, E)> {
        let taken = self.encodings.remove(&order)?;
        // The round may be over since, and its next one waits for other slices.
        if let Some(mix) = self.of(taken.0) {
            mix.encoding = mix.encoding.saturating_sub(1);
        }
        Some(taken)
    }

    /// All peers that are waited for, by fragment.
    pub(super) fn expected(&self) -> impl Iterator<Item = PeerId> {
        self.fragments.iter().flat_map(|mix| &mix.expected).copied()
    }

    /// A partner's slice is here: notes how long it took if the partner was awaited.
    pub(super) fn came(&mut self, cx: &mut Context, fragment: FragmentId, from: PeerId) -> bool {
        let waited = cx.now.since(self.began);
        let mix = self.get_mut(fragment);
        let awaited = mix.is_some_and(|mix| mix.expected.remove(&from));
        // Slices that come unasked, or again, say nothing of how long a partner takes.
        if awaited {
            cx.deadlines.record(Wait::Partners, from, waited);
        }
        awaited
    }

    /// A peer is gone: no fragment waits for it.
    pub(super) fn gone(&mut self, peer: PeerId) {
        for mix in &mut self.fragments {
            mix.expected.remove(&peer);
        }
    }
}

/// A sorted list of peers with this one among them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ranks {
    peers: Vec<PeerId>,
    me: usize,
}

impl Ranks {
    pub(super) fn live(cx: &Context) -> Self {
        Self::among(cx.me(), cx.view.live().map(|(id, _)| id))
    }

    /// Over other peers, in ascending order, and this one.
    pub(super) fn among(me: PeerId, others: impl Iterator<Item = PeerId>) -> Self {
        let mut peers: Vec<PeerId> = others.collect();
        let rank = peers.partition_point(|id| *id < me);
        peers.insert(rank, me);
        Self { peers, me: rank }
    }

    /// How many peers there are, this one included.
    pub(super) fn count(&self) -> usize {
        self.peers.len()
    }

    /// The rank of this peer.
    pub(super) fn me(&self) -> usize {
        self.me
    }

    pub(super) fn peer(&self, rank: usize) -> Option<PeerId> {
        self.peers.get(rank).copied()
    }

    /// The peer of a rank, unless it is this one.
    pub(super) fn other(&self, rank: usize) -> Option<PeerId> {
        self.peer(rank).filter(|_| rank != self.me)
    }

    pub(super) fn partners(&self, topology: &dyn Topology, cx: &Context) -> Partners {
        self.partners_of(self.me, topology, cx)
    }

    /// The partners of a rank in the round, by the rates of links if all agree on them.
    pub(super) fn partners_of(
        &self,
        rank: usize,
        topology: &dyn Topology,
        cx: &Context,
    ) -> Partners {
        match cx.view.links.among(cx.round, &self.peers) {
            Some(rates) => topology.partners_by_rate(cx.round, rank, &rates),
            None => topology.partners(cx.round, rank, self.count()),
        }
    }

    pub(super) fn shares(&self, send: Vec<(usize, f64)>) -> Vec<(PeerId, f64)> {
        let named = send.into_iter();
        named
            .filter_map(|(rank, share)| Some((self.other(rank)?, share)))
            .collect()
    }
}
