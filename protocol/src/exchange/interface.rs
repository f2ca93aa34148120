//! What the peer asks of an exchange, what it tells one, and how one ends.

use crate::core::FetchId;
use crate::core::context::Context;
use crate::data::Counted;
use crate::exchange::{ExchangeMessage, Scoped, Standing};
use crate::{
    Digest, Done, ExchangeKind, FragmentId, GroupTag, Loss, OrderId, PeerError, PeerId,
    PushOutcome, Round, SliceId, SliceMeta, TrainSummary, Wait,
};

/// One way of exchanging. Lives as long as the peer; works on one round at a time.
pub(crate) trait Exchange: Send {
    /// A round begins, with its training. What others send for it counts from now on.
    fn open(&mut self, _cx: &mut Context) {}

    /// The round's training ended and its contribution lies in the Executor.
    fn begin(&mut self, cx: &mut Context, summary: &TrainSummary);

    /// A fragment's contribution lies in the Executor. Called for each fragment after `begin` where
    /// contributions leave during the backward pass, and never where they leave together.
    fn cut(&mut self, _cx: &mut Context, _fragment: FragmentId) {}

    /// Something happened. Also called between `finish` and `begin`, for what comes early.
    ///
    /// # Errors
    /// When a remote broke a rule.
    fn signal(&mut self, cx: &mut Context, signal: Signal<'_>) -> Result<(), PeerError>;

    /// Fragments whose exchange has ended since the last call; each is reported once a round.
    fn ended(&mut self, cx: &Context) -> Vec<(FragmentId, Ending)>;

    /// The result of a fragment's exchange is applied: bytes that only it needed are released.
    fn applied(&mut self, _cx: &mut Context, _fragment: FragmentId) {}

    /// The result of a fragment cannot be applied, at any member, because of one slice: what to
    /// apply without it. `None` if the fragment is void without it.
    fn without(&mut self, _cx: &mut Context, _bad: SliceId, _reason: &str) -> Option<Ending> {
        None
    }

    /// Outcome of the round's exchange, once it has ended.
    fn outcome(&mut self) -> Option<Outcome>;

    /// This peer's branch is to be merged with another one before it trains on.
    fn merge_is_due(&self, _cx: &Context) -> bool {
        false
    }

    /// Merges branches instead of a round's exchange.
    fn merge(&mut self, _cx: &mut Context) {}

    /// The outcome is applied, or given up for a catch-up: forgets the round.
    fn finish(&mut self, cx: &mut Context);

    /// The group of the round, where there is one.
    fn group(&self) -> Option<GroupTag> {
        None
    }

    /// Past decisions, where peers agree on what they apply.
    fn history(&self) -> Option<&dyn PastRounds> {
        None
    }

    /// [`Exchange::history`], to change what is kept.
    fn history_mut(&mut self) -> Option<&mut dyn PastRounds> {
        None
    }

    /// The account of push-sum mass; all zero where the exchange has none.
    fn push_sum(&self) -> PushSum {
        PushSum::default()
    }

    /// Sets the push-sum weights after a restart or a catch-up.
    fn set_weights(&mut self, _weights: &[f64]) {}

    /// Standing with each neighbour; empty except in exchanges between two.
    fn standings(&self) -> Vec<Standing> {
        Vec::new()
    }

    /// The peers behind a wait that is under way, in any order; empty where it is for none in particular.
    fn awaited(&self, _cx: &Context, _wait: Wait, _fragment: FragmentId) -> Vec<PeerId> {
        Vec::new()
    }

    /// Slices and messages that wait here.
    fn waiting(&self) -> usize {
        0
    }
}

/// Decisions of past rounds, for stragglers and newcomers.
pub(crate) trait PastRounds {
    /// Whose contributions are in the result of a round's first fragment.
    fn counted(&self, kind: ExchangeKind, round: Round, first: FragmentId) -> Counted;

    /// The training loss that these agree on. `None` if the round has no result, or they say none.
    fn loss(&self, kind: ExchangeKind, round: Round, first: FragmentId) -> Option<Loss>;

    /// The decision of one fragment, with its proof if there is one.
    fn decision(&self, round: Round, fragment: FragmentId) -> Option<&Scoped>;

    /// The decisions of a past round with this number of fragments, if all of them are still here.
    fn decisions(&self, round: Round, fragments: usize) -> Option<Vec<Scoped>>;

    /// Keeps the decisions of this round and of those after it, even large ones, for newcomers that
    /// are taking over the state that opened it; `None` ends that.
    fn keep_since(&mut self, round: Option<Round>);

    /// Takes over decisions that were learned from others, so that they can be passed on.
    fn remember(&mut self, cx: &mut Context, round: Round, decisions: Vec<Scoped>);
}

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

/// End of one fragment's exchange.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ending {
    /// Apply these aggregates; none where combining has already moved the parameters.
    Apply(Vec<SliceId>),
    /// Apply the weighted mean of these contributions.
    Gather(Vec<(SliceId, f64)>),
    /// Make these means of branches the anchor.
    Merge(Vec<SliceId>),
    /// Nothing was agreed, or nothing could be mixed: the anchor stays.
    Void,
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
    /// Weight that is this peer's: what it pushed is not, until it comes back.
    pub(crate) held: f64,
}
