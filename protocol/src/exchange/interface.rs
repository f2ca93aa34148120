//! The interface of an exchange: the calls of the peer.

use crate::core::context::Context;
use crate::exchange::{History, Outcome, PushSum, Signal, Standing};
use crate::{Checked, Ending, FragmentId, GroupTag, PeerId, SliceId, TrainSummary, Wait};

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
    fn signal(&mut self, cx: &mut Context, signal: Signal<'_>) -> Checked;

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
    fn history(&self) -> Option<&History> {
        None
    }

    /// [`Exchange::history`], to change the decisions that are kept.
    fn history_mut(&mut self) -> Option<&mut History> {
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
