//! Exchanges with agreement (all-reduce along a schedule, gathered, parameter server in step):
//! survivors hold the same bits, the weighted mean of a stated set of contributions.
//!
//! Life of a round: `grouping` forms the group, one `FragmentRound` a fragment reduces its shards
//! (`reduce`), votes on them (`agree`) and replaces the shards of dead members (`repair`);
//! `history` keeps decisions for late peers. Where groups survive liars, `sealed` forms them and
//! `signed` votes and repairs, by the rule in `rule`. `meeting` brings the sides of a swarm that was
//! split together again, and `merging` says what follows.
//!
//! Messages per round and member when all is well, with n members and f fragments: one `Ready` and
//! one `Propose` (n - 1 of the latter by the proposer), f (n - 1) votes; 2 f (n - 1) pushes of
//! about 1/n of a fragment each. Latency: group (one round trip), contributions, aggregates, votes.
//!
//! A round's fragments (all of them, or some of them if they are staggered) are opened in order, a
//! window at a time. A decided fragment goes to the Executor at once and its bytes are released, so
//! memory follows the window and not the model. No member is more than a window ahead of the
//! slowest one that it still waits for, because every fragment needs a shard of each.

mod agree;
mod agreement;
mod arrivals;
mod attendance;
mod awaited;
mod ballot;
mod ballots;
mod carried;
mod carry_out;
mod cell_round;
mod column;
mod contributors;
mod coordinate;
mod cut;
mod duty;
mod early;
mod electorate;
mod formed;
mod forming;
mod forming_message;
mod fragment;
mod gathered;
mod group;
mod grouping;
mod handed_on;
mod history;
mod in_group;
mod joined;
mod losses;
mod mailbox;
mod meeting;
mod member;
mod merge_side;
mod merging;
mod message;
mod opening;
mod pipeline;
mod proposal;
mod proposing;
mod proven;
mod pushing;
mod quorum;
mod ready;
mod reduce;
mod repair;
mod resend;
mod rule;
mod said;
mod scope;
mod scoring;
mod scoring_state;
mod sealed;
mod second_pass;
mod server;
mod sides;
mod signed;
mod signed_group;
mod signed_message;
mod slices;
mod state;
mod tallies;
mod tellers;
mod turns;
mod value;
mod weights;
mod whereabouts;
mod window;

pub use ballot::{Ballot, Held, ShardPlan, ShardVersion};
pub(in crate::exchange) use cell_round::CellRound;
pub(in crate::exchange) use column::{Column, Shape};
pub(in crate::exchange) use early::{Early, EarlySlice};
pub(in crate::exchange) use electorate::ahead;
pub(in crate::exchange) use history::History;
pub(crate) use history::{digests_of, inputs_of, scores_of, slices_of};
pub use message::{
    AgreedMessage, FormingMessage, FragmentMessage, Member, MergeSide, Promise, Said, Scoped,
};
pub(crate) use proven::proven;
pub(crate) use scoring::admit;
pub use signed_group::{Seated, SignedGroup};
pub use signed_message::{Pledge, Seat, SignedMessage, VoteCertificate};
pub use value::value_of;
pub use whereabouts::Whereabouts;

use crate::core::FetchId;
use crate::core::context::Context;
use crate::core::timers::Timer;
use crate::exchange::{Arrived, Ending, Exchange, Outcome, PastRounds, Signal};
use crate::{
    FragmentId, GroupTag, Layers, Members, Order, PeerError, PeerId, SliceId, TrainSummary, Wait,
};
use attendance::note_round;
use carried::Carried;
use fragment::FragmentRound;
use group::Group;
use grouping::Grouping;
use in_group::Programs;
use tellers::Tellers;

/// What this exchange is called in errors.
const EXCHANGE: &str = "agreement in a group";

/// The agreed exchange of one peer.
pub(crate) struct Agreed {
    grouping: Grouping,
    group: Option<Group>,
    /// What the schedule asks of this peer in such a group.
    programs: Programs,
    /// The round's fragments opened so far, by their number.
    fragment_rounds: Vec<FragmentRound>,
    /// Fragments that have left so far, where they leave under the backward pass.
    cut: Vec<FragmentId>,
    /// Members that were given up in some fragment of this round.
    lost: Members,
    /// Members that are in another group of this round.
    elsewhere: Members,
    /// Members that do not join the group.
    declined: Members,
    /// Peers that say that this round continues without this peer.
    tellers: Tellers,
    early: Early,
    history: History,
    /// How the round ends without a group, once every fragment has left the training.
    alone: Option<Outcome>,
    /// Whether no group came about: every fragment is void.
    no_group: bool,
    outcome: Option<Outcome>,
    /// Inner steps of rounds whose training is still to be contributed.
    carried: Carried,
}

impl Agreed {
    pub(crate) fn new() -> Self {
        Self {
            grouping: Grouping::default(),
            group: None,
            programs: Programs::default(),
            fragment_rounds: Vec::new(),
            cut: Vec::new(),
            lost: Members::NONE,
            elsewhere: Members::NONE,
            declined: Members::NONE,
            tellers: Tellers::default(),
            early: Early::default(),
            history: History::default(),
            alone: None,
            no_group: false,
            outcome: None,
            carried: Carried::default(),
        }
    }

    fn of_fragment(&mut self, fragment: FragmentId) -> Option<&mut FragmentRound> {
        let at = self.place(fragment);
        self.fragment_rounds.get_mut(at.ok()?)
    }

    /// Where a fragment is among those that are open, or where it belongs.
    fn place(&self, fragment: FragmentId) -> Result<usize, usize> {
        self.fragment_rounds
            .binary_search_by_key(&fragment, |b| b.scope.fragment)
    }

    /// After every signal: the timer follows the earliest open deadline.
    fn settle(&mut self, cx: &mut Context) {
        if self.group.is_none() || self.outcome.is_some() {
            return;
        }
        // Losses first: they may end fragments, which makes room in the window.
        self.share_losses(cx);
        self.open(cx);
        if let Some(teller) = self.fragment_rounds.iter().find_map(|b| b.missed) {
            cx.timers.stop(Timer::Exchange);
            let resync = true;
            self.outcome
                .get_or_insert(Outcome::Behind { teller, resync });
            return;
        }
        if self.alone.is_none() && self.fragment_rounds.iter().any(FragmentRound::is_spent) {
            self.try_again(cx);
            return;
        }
        let open = self.fragment_rounds.iter().filter(|b| b.ending.is_none());
        match open.map(FragmentRound::due).min() {
            Some(deadline) => cx.timers.set(Timer::Exchange, deadline),
            // The other fragments are still in this peer's backward pass: no other peer is awaited.
            None if !self.all_cut(cx) => cx.timers.stop(Timer::Exchange),
            None => {
                cx.timers.stop(Timer::Exchange);
                self.outcome.get_or_insert(Outcome::Ended);
            }
        }
    }

    /// Whether every fragment of the round has left this peer's training.
    fn all_cut(&self, cx: &Context) -> bool {
        let together = cx.plan.overlap.layers == Layers::Together;
        together || self.cut.len() == cx.plan.fragments.len()
    }
}

impl Exchange for Agreed {
    fn begin(&mut self, cx: &mut Context, summary: &TrainSummary) {
        self.outcome = None;
        self.no_group = false;
        self.alone = None;
        let weight = self.carried.weigh(cx.plan.agreement.weighing, summary);
        let formed = self.grouping.begin(cx, weight);
        self.formed(cx, formed);
        self.settle(cx);
    }

    fn cut(&mut self, cx: &mut Context, fragment: FragmentId) {
        if !self.cut.contains(&fragment) {
            self.cut.push(fragment);
        }
        self.go_alone(cx);
        self.settle(cx);
    }

    fn signal(&mut self, cx: &mut Context, signal: Signal<'_>) -> Result<(), PeerError> {
        let result = match signal {
            Signal::Message { from, message } => self.message(cx, from, message),
            Signal::Arrived(Arrived {
                from,
                slice,
                meta,
                digest,
            }) => self.arrived(cx, from, slice, meta, digest),
            Signal::Pushed { to, slice, outcome } => {
                if let Some(fragment_round) = self.of_fragment(slice.fragment)
                    && fragment_round.scope.round == slice.round
                {
                    fragment_round.pushed(cx, to, slice, outcome);
                }
                Ok(())
            }
            Signal::Fetched {
                what: FetchId::Slice(slice),
                digest,
            } => {
                let kept = self.kept(slice);
                let fragment_round = self.of_fragment(slice.fragment);
                if let Some(fragment_round) =
                    fragment_round.filter(|b| b.scope.round == slice.round)
                {
                    fragment_round.fetched(cx, slice, digest);
                } else if !kept {
                    cx.order(Order::Release { slice });
                }
                Ok(())
            }
            Signal::FetchFailed {
                what: FetchId::Slice(slice),
            } => {
                if let Some(fragment_round) = self.of_fragment(slice.fragment) {
                    fragment_round.fetch_failed(cx, slice);
                }
                Ok(())
            }
            Signal::Done { order, done } => {
                self.fragment_rounds
                    .iter_mut()
                    .any(|b| b.done(cx, order, done));
                Ok(())
            }
            Signal::Gone(peer) => {
                self.grouping.joined.forget(peer);
                self.gone(cx, peer);
                self.gone_from_forming(cx, peer);
                Ok(())
            }
            Signal::Timeout => {
                self.leave_unless_joined(cx);
                self.fragment_rounds.iter_mut().for_each(|b| b.timeout(cx));
                self.forming_timeout(cx);
                Ok(())
            }
            Signal::Heard(peer) => {
                let formed = self.grouping.meeting.heard(cx, peer);
                self.brought_together(cx, formed);
                self.stop_forming(cx);
                Ok(())
            }
            Signal::Fetched { .. } | Signal::FetchFailed { .. } => Ok(()),
        };
        self.settle(cx);
        result
    }

    fn ended(&mut self, cx: &Context) -> Vec<(FragmentId, Ending)> {
        if std::mem::take(&mut self.no_group) {
            let all = cx.plan.fragments_of(cx.round);
            return all.map(|f| (f, Ending::Void)).collect();
        }
        let untold = self.fragment_rounds.iter_mut().filter(|b| !b.told);
        let ended = untold.filter_map(|b| {
            let ending = b.ending.clone()?;
            b.told = true;
            Some((b.scope.fragment, ending))
        });
        ended.collect()
    }

    fn applied(&mut self, cx: &mut Context, fragment: FragmentId) {
        let at = self.place(fragment);
        if let Some(fragment_round) = at.ok().and_then(|at| self.fragment_rounds.get_mut(at))
            && fragment_round.told
        {
            self.history.close(cx, fragment_round);
        }
    }

    fn without(&mut self, cx: &mut Context, bad: SliceId, reason: &str) -> Option<Ending> {
        let fragment_round = self.of_fragment(bad.fragment)?;
        fragment_round.leave_out(cx, bad, reason)
    }

    fn outcome(&mut self) -> Option<Outcome> {
        self.outcome.take()
    }

    fn merge_is_due(&self, cx: &Context) -> bool {
        self.grouping.meeting.due(cx)
    }

    fn merge(&mut self, cx: &mut Context) {
        self.meet_branches(cx);
        self.settle(cx);
    }

    fn finish(&mut self, cx: &mut Context) {
        note_round(cx, self.group.as_ref(), &self.fragment_rounds);
        let void = |b: &FragmentRound| matches!(b.ending, Some(Ending::Void));
        let none = self.group.is_none() || self.fragment_rounds.iter().any(void);
        self.carried.ended(none);
        self.grouping.end(cx, false);
        self.end_merge(cx);
        cx.timers.stop(Timer::Exchange);
        self.group = None;
        self.cut.clear();
        self.alone = None;
        self.lost = Members::NONE;
        self.elsewhere = Members::NONE;
        let signed = |b: &FragmentRound| b.has_signed();
        if self.fragment_rounds.iter().any(signed) {
            self.grouping.leave_signed(cx.round);
        }
        for mut fragment_round in std::mem::take(&mut self.fragment_rounds) {
            // A round that is given up half-way is learned from others later, so its bytes go. A
            // closed fragment holds none.
            fragment_round.stop_waiting(cx);
            fragment_round.release(cx, &[]);
        }
        self.early.forget_the_round(cx, |_| false);
    }

    fn group(&self) -> Option<GroupTag> {
        self.group.as_ref().map(|group| group.tag)
    }

    fn history(&self) -> Option<&dyn PastRounds> {
        Some(&self.history)
    }

    fn history_mut(&mut self) -> Option<&mut dyn PastRounds> {
        Some(&mut self.history)
    }

    fn waiting(&self) -> usize {
        self.early.len()
    }

    fn awaited(&self, cx: &Context, wait: Wait, fragment: FragmentId) -> Vec<PeerId> {
        self.awaited_peers(cx, wait, fragment)
    }
}
