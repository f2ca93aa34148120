//! Exchanges: contributions in, agreed aggregate or mix out. One interface, one file or folder
//! each; tensor-free.

mod all_reduce;
mod center;
mod kind;
mod neighbours;
mod none;
mod signal;

pub use all_reduce::{Schedule, ScheduleCost};
pub(crate) use all_reduce::{inputs_of, slices_of};
pub use kind::{CenterPlan, ExchangeFacts, ExchangeKind, KindError, LeadPlan, ServerPlan};
pub use neighbours::Standing;
pub(crate) use signal::{Arrived, Signal};

use crate::core::context::Context;
use crate::wire::{ExchangeMessage, Scoped};
use crate::{FragmentId, PeerError, PeerId, Round, SliceId, Tag, Topology, TrainSummary};

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
    fn set_weights(&mut self, weights: &[f64]) {
        let _ = weights;
    }

    /// How far it is with each neighbour; empty except in exchanges between two.
    fn standings(&self) -> Vec<Standing> {
        Vec::new()
    }

    /// Slices and messages that wait here.
    fn waiting(&self) -> usize {
        0
    }
}

/// Decisions of past rounds, for stragglers and newcomers.
pub(crate) trait PastRounds {
    /// The decisions of a past round of so many fragments, if all of them are still here.
    fn decisions(&self, round: Round, fragments: usize) -> Option<Vec<Scoped>>;

    /// Keeps the decisions of this round and of those after it, even large ones, for newcomers that
    /// are taking over the state that opened it; `None` ends that.
    fn keep_since(&mut self, round: Option<Round>);

    /// Takes over decisions that were learned from others, so that they can be passed on.
    fn remember(&mut self, cx: &mut Context, round: Round, decisions: Vec<Scoped>);
}

/// Where a peer's push-sum mass is.
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

/// The error for a message that belongs to another exchange than this run's.
fn foreign_message(message: &ExchangeMessage, exchange: &'static str) -> PeerError {
    let message = message.name();
    PeerError::ForeignMessage { message, exchange }
}

/// The error for a slice whose tag belongs to another exchange, or to another part of this one.
fn foreign_tag(tag: Tag, exchange: &'static str) -> PeerError {
    let tag = tag.name();
    PeerError::ForeignTag { tag, exchange }
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
        ExchangeKind::Gossip
        | ExchangeKind::Push
        | ExchangeKind::Pull
        | ExchangeKind::Replicas
        | ExchangeKind::Pairs
        | ExchangeKind::Relay => {
            let topology = topology.expect("an exchange between neighbours comes with a topology");
            neighbours::build(&cx.plan, topology).expect("it is one between neighbours")
        }
    }
}
