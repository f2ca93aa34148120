//! Exchanges: contributions in, agreed aggregate or mix out. One interface, one file or folder
//! each; tensor-free.

mod all_reduce;
mod center;
mod gossip;
mod kind;
mod none;
mod pairwise;
mod pull;
mod relay;

pub use all_reduce::{Schedule, ScheduleCost};
pub(crate) use all_reduce::{inputs_of, slices_of};
pub use kind::{CenterPlan, ExchangeFacts, ExchangeKind, KindError, LeadPlan, ServerPlan};
pub use pairwise::Standing;

use crate::core::FetchId;
use crate::core::context::Context;
use crate::wire::Message;
use crate::{
    Digest, Done, FragmentId, OrderId, PeerError, PeerId, PushOutcome, Round, SliceId, SliceMeta,
    Topology, TrainSummary,
};

/// Something that an exchange may have to act on.
pub(crate) enum Signal<'a> {
    /// A message of the exchange.
    Message { from: PeerId, message: &'a Message },
    /// A slice arrived.
    Arrived {
        from: PeerId,
        slice: SliceId,
        meta: SliceMeta,
        digest: Option<Digest>,
    },
    /// A push ended.
    Pushed {
        to: PeerId,
        slice: SliceId,
        outcome: PushOutcome,
    },
    /// A fetch ended well.
    Fetched {
        what: FetchId,
        digest: Option<Digest>,
    },
    /// A fetch came to nothing.
    FetchFailed { what: FetchId },
    /// An order of the exchange was answered.
    Done { order: OrderId, done: &'a Done },
    /// A peer is gone.
    Gone(PeerId),
    /// A peer has said how far it is.
    Heard(PeerId),
    /// Its deadline has passed.
    Timeout,
}

/// How the exchange of one fragment ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ending {
    /// Put these aggregates (none after gossip) in force.
    Apply(Vec<SliceId>),
    /// Put the weighted mean of these contributions in force.
    Gather(Vec<(SliceId, f64)>),
    /// Nothing was agreed: the anchor stays.
    Void,
}

/// How a round's exchange ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// Of every fragment: [`Exchange::ended`] has told how.
    Ended,
    /// Nobody exchanges with this peer just now: the round goes on with more training. It has not
    /// ended, so that a peer that is alone for a while is not ahead of the others afterwards.
    Alone,
    /// The swarm is ahead of this peer.
    Behind {
        /// Who said so.
        teller: PeerId,
        /// Whether past rounds will not mend it.
        resync: bool,
    },
}

/// One way of exchanging. Lives as long as the peer; works on one round at a time.
pub(crate) trait Exchange: Send {
    /// The round's training ended and its contribution lies in the Executor.
    fn begin(&mut self, cx: &mut Context, summary: &TrainSummary);

    /// A fragment's contribution lies in the Executor; called for each of them after `begin` where they leave
    /// under the backward pass, and never where they leave together.
    fn cut(&mut self, cx: &mut Context, fragment: FragmentId) {
        let _ = (cx, fragment);
    }

    /// Something happened. Also called between `finish` and `begin`, for what comes early.
    ///
    /// # Errors
    /// When a remote broke a rule.
    fn signal(&mut self, cx: &mut Context, signal: Signal<'_>) -> Result<(), PeerError>;

    /// Fragments whose exchange has ended since the last call; each is told once a round.
    fn ended(&mut self, cx: &Context) -> Vec<(FragmentId, Ending)>;

    /// What a fragment's exchange ended with is in force: the bytes that only it needed can go.
    fn applied(&mut self, cx: &mut Context, fragment: FragmentId) {
        let _ = (cx, fragment);
    }

    /// What a fragment ended with cannot be put in force because of one slice, at every member
    /// alike: what there is without it. `None` where the fragment is void without it.
    fn without(&mut self, cx: &mut Context, bad: SliceId, reason: &str) -> Option<Ending> {
        let _ = (cx, bad, reason);
        None
    }

    /// How the round's exchange ended, once it has.
    fn outcome(&mut self) -> Option<Outcome>;

    /// The outcome is in force (or given up for a catch-up): forget the round.
    fn finish(&mut self, cx: &mut Context);

    /// The decisions of a past round, if they are still here.
    fn history(&self, round: Round, fragments: usize) -> Option<Vec<Message>> {
        let _ = (round, fragments);
        None
    }

    /// Keeps the decisions of this round and of those after it, even large ones, for newcomers
    /// who are taking over the state that opened it; `None` when there are none any more.
    fn keep_since(&mut self, round: Option<Round>) {
        let _ = round;
    }

    /// Takes over decisions that were learned from others, so that they can be passed on.
    fn remember(&mut self, cx: &mut Context, round: Round, decisions: Vec<Message>) {
        let _ = (cx, round, decisions);
    }

    /// Push-sum weights, fragment by fragment.
    fn weights(&self) -> Vec<f64> {
        Vec::new()
    }

    /// Sets the push-sum weights after a restart or a catch-up.
    fn set_weights(&mut self, weights: &[f64]) {
        let _ = weights;
    }

    /// Weight that is pushed and not yet acknowledged, and weight that arrived and is not mixed.
    fn in_flight(&self) -> (f64, f64) {
        (0.0, 0.0)
    }

    /// Push-sum weight that is this peer's: what it pushed is not, until it comes back.
    fn held(&self) -> f64 {
        0.0
    }

    /// How far it is with each neighbour; empty but in exchanges between two.
    fn standings(&self) -> Vec<Standing> {
        Vec::new()
    }

    /// Slices that wait in inboxes.
    fn waiting(&self) -> usize {
        0
    }
}

/// What the fragments ended with, once all have; nothing before.
fn all_ended(
    fragments: impl Iterator<Item = (FragmentId, Option<Ending>)>,
) -> Vec<(FragmentId, Ending)> {
    let told: Option<Vec<_>> = fragments.map(|(id, ending)| Some((id, ending?))).collect();
    told.unwrap_or_default()
}

/// Makes the exchange that a plan asks for.
///
/// # Panics
/// When a plan that needs a topology comes without one: whoever builds the peer passes both.
pub(crate) fn build(cx: &Context, topology: Option<Box<dyn Topology>>) -> Box<dyn Exchange> {
    match cx.plan.exchange {
        ExchangeKind::None => Box::new(none::NoExchange::new(&cx.plan)),
        ExchangeKind::AllReduce | ExchangeKind::Gathered | ExchangeKind::Server(_) => {
            Box::new(all_reduce::AllReduce::new())
        }
        ExchangeKind::Center(center) => Box::new(center::Center::new(&cx.plan, center)),
        ExchangeKind::Gossip | ExchangeKind::Push => {
            let topology = topology.expect("a gossip plan comes with a topology");
            Box::new(gossip::Gossip::new(&cx.plan, topology))
        }
        ExchangeKind::Pull => {
            let topology = topology.expect("a plan of pulls comes with a topology");
            Box::new(pull::Pull::new(topology))
        }
        ExchangeKind::Replicas | ExchangeKind::Pairs => {
            let topology = topology.expect("a plan of pairs comes with a topology");
            Box::new(pairwise::Pairwise::new(&cx.plan, topology))
        }
        ExchangeKind::Relay => {
            let topology = topology.expect("a plan that relays comes with a topology");
            Box::new(relay::Relay::new(topology))
        }
    }
}
