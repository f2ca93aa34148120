//! The mean of parameters over cells of a swarm, other cells in each round.
//!
//! All peers hold places of a roll. A round deals them into cells ([`Dealing`]): along one axis, and the
//! next round along the next, or at random. The peers of a cell reduce the mean of their parameters and hand it to each
//! other as a group of an all-reduce does, with the same votes and ballots ([`CellRound`]): all members
//! that apply it hold the same bits. Cells do not agree with each other, so the swarm's parameters
//! differ. With g peers in a cell, their variance shrinks to 1/g in a round; along axes to nothing after a
//! round for each where no peer fails, at random by the same part in every round.
//!
//! Cost per peer and round with g peers in a cell, f fragments of m encoded bytes in all: g - 1 words
//! that it is ready, 2 f (g - 1) pushes of m / (f g) bytes, f (g - 1) votes. That is 2 m (g - 1) / g
//! bytes, where gossip to all members of the same group would push m (g - 1).
//!
//! **Membership** is not agreed on. The founding's roll is the same at all peers. Later a newcomer gets
//! the place of a peer that is gone, or a new one, from one member, and that change travels with the
//! words of readiness ([`news::News`]). It is in force two rounds after those in which it spreads, when
//! all peers know it. Where one does not, the peers of the cell differ in a member: [`forming::Forming`]
//! leaves that one out, and the others go on.
//!
//! | what fails | what it costs |
//! |---|---|
//! | a member before it is ready | nothing if its link is down; else one deadline for its cell |
//! | a member later | one ballot of its cell |
//! | the member that forms the cell | the next one forms it, at once if its link is down |
//! | half of a cell after it formed | its round: members keep their own parameters |
//! | words that bring a peer ahead of most others | it waits in its round until they are there |
//! | a peer whose roll is older | its own rounds until it knows the roll again |

mod alone;
mod early;
mod forming;
mod mailbox;
mod message;
mod news;
mod seats;

pub use message::CellsMessage;

use crate::core::FetchId;
use crate::core::context::Context;
use crate::core::timers::Timer;
use crate::exchange::agreed::{AgreedMessage, CellRound, Early, History};
use crate::exchange::{
    Arrived, Ending, Exchange, ExchangeMessage, GridMessage, Outcome, Signal, foreign_message,
};
use crate::{
    Dealing, FragmentId, GroupTag, Order, PeerError, PeerId, Round, SliceId, Time, TrainSummary,
    Wait,
};
use early::EarlyReady;
use forming::{Forming, Step};
use news::News;
use std::collections::{BTreeMap, BTreeSet};

/// What this exchange is called in errors.
const EXCHANGE: &str = "means over cells";

/// Rounds that a peer may be behind the others before it skips some.
const BEHIND: u64 = 1;

/// The exchange of one peer of cells.
pub(crate) struct CellsExchange {
    news: News,
    /// The other peers of the round's cell, from the roll; none between rounds.
    mates: Option<BTreeSet<PeerId>>,
    forming: Option<Forming>,
    cell: Option<CellRound>,
    early: Early,
    early_ready: EarlyReady,
    /// Mates without a link, with when that was noticed.
    down: BTreeMap<PeerId, Time>,
    history: History,
    /// The last round that this peer was ready in, and since when.
    last: Option<(Round, Time)>,
    /// The mates that said then that they were ready.
    heard: BTreeSet<PeerId>,
    /// Whether the round goes on without others, which the peer has not been told.
    alone: bool,
    /// Rounds that this peer went alone though others go on.
    alone_for: u32,
    /// A peer that goes on without this one.
    passed_by: Option<PeerId>,
    outcome: Option<Outcome>,
}

impl CellsExchange {
    pub(crate) fn new() -> Self {
        Self {
            news: News::default(),
            mates: None,
            forming: None,
            cell: None,
            early: Early::default(),
            early_ready: EarlyReady::default(),
            down: BTreeMap::new(),
            history: History::default(),
            last: None,
            heard: BTreeSet::new(),
            alone: false,
            alone_for: 0,
            passed_by: None,
            outcome: None,
        }
    }

    /// How the roll is dealt, and this peer's place in it.
    fn place(cx: &Context) -> Option<(Dealing, usize)> {
        let roll = cx.rolls.roll.as_ref()?;
        Some((cx.dealing(roll.len())?, roll.place_of(cx.me())?))
    }

    /// Takes the next step of a cell that is forming.
    fn form(&mut self, cx: &mut Context) {
        let Some(forming) = &self.forming else {
            return;
        };
        match forming.step(cx) {
            Step::Wait => {}
            Step::Alone if self.is_ahead(cx) => self.wait_on(cx),
            Step::Form(members) if members.len() == 1 && self.is_ahead(cx) => self.wait_on(cx),
            Step::Alone => self.go_alone(cx),
            Step::Form(members) => {
                let me = cx.me();
                for peer in members.iter().filter(|peer| **peer != me) {
                    let (round, members) = (cx.round, members.clone());
                    cx.send(*peer, CellsMessage::Form { round, members });
                }
                self.formed(cx, &members);
            }
        }
    }

    /// Tells the peers of the cell that this one has trained.
    fn tell_ready(&self, cx: &mut Context) {
        let Some(forming) = &self.forming else {
            return;
        };
        let (round, news) = (cx.round, self.news.told());
        for mate in forming.mates() {
            if cx.view.takes_part(mate) {
                let news = news.clone();
                cx.send(mate, CellsMessage::Ready { round, news });
            }
        }
    }

    /// The cell has these members, or none.
    fn end_forming(&mut self, cx: &mut Context, members: &[PeerId]) {
        let Some(forming) = self.forming.take() else {
            return;
        };
        cx.waited(Wait::Group, forming.is_late());
        // The others in the cell must not count on this peer in another one.
        let (round, now) = (cx.round, cx.round);
        let others = forming.mates().filter(|peer| !members.contains(peer));
        for peer in others
            .filter(|peer| cx.view.takes_part(*peer))
            .collect::<Vec<_>>()
        {
            cx.send(peer, CellsMessage::Passed { round, now });
        }
        let (since, ready) = forming.over();
        self.last = Some((cx.round, since));
        self.heard = ready;
    }

    /// The members of the cell are known.
    fn formed(&mut self, cx: &mut Context, members: &[PeerId]) {
        self.end_forming(cx, members);
        self.alone_for = 0;
        cx.this_life.newcomer = false;
        self.cell = CellRound::new(cx, members);
    }

    /// After every signal: opens fragments, and the timer follows the earliest deadline.
    fn settle(&mut self, cx: &mut Context) {
        if self.outcome.is_some() || self.alone {
            return;
        }
        self.form(cx);
        self.open_fragments(cx);
        let Some(cell) = &mut self.cell else {
            match &self.forming {
                Some(forming) => cx.timers.set(Timer::Exchange, forming.deadline()),
                None => cx.timers.stop(Timer::Exchange),
            }
            return;
        };
        match cell.due() {
            Some(deadline) => cx.timers.set(Timer::Exchange, deadline),
            None => cx.timers.stop(Timer::Exchange),
        }
        if cell.is_over(cx) {
            self.outcome = Some(Outcome::Ended);
        }
    }

    /// Opens what the window has room for, with what came early.
    fn open_fragments(&mut self, cx: &mut Context) {
        while let Some(cell) = &mut self.cell {
            cell.settle(cx);
            let Some(fragment) = cell.open(cx) else {
                return;
            };
            self.deliver_early(cx, fragment);
        }
    }

    /// A peer's link is gone.
    fn gone(&mut self, cx: &mut Context, peer: PeerId) {
        if cx.rolls.mates.contains(&peer) {
            self.down.entry(peer).or_insert(cx.now);
        }
        if let Some(forming) = &mut self.forming {
            forming.leave_out(peer);
        }
        if let Some(cell) = &mut self.cell {
            cell.gone(cx, peer);
        }
        self.early.drop_of(cx, peer);
        self.early_ready.drop_of(peer);
    }

    fn message(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        message: &ExchangeMessage,
    ) -> Result<(), PeerError> {
        match message {
            ExchangeMessage::Cells(message) => self.cell_message(cx, from, message),
            ExchangeMessage::Agreed(AgreedMessage::Fragment(scoped)) => {
                self.deliver(cx, from, scoped)
            }
            ExchangeMessage::Grid(GridMessage::Apply(record)) => self.seat(cx, from, record),
            other => Err(foreign_message(other, EXCHANGE)),
        }
    }
}

impl Exchange for CellsExchange {
    fn open(&mut self, cx: &mut Context) {
        (self.outcome, self.alone, self.passed_by) = (None, false, None);
        let places = cx.rolls.roll.as_ref().map(|roll| roll.len());
        if let Some(dealing) = places.and_then(|places| cx.dealing(places)) {
            self.news.turn(cx, &dealing);
        }
        self.note_down(cx);
        let roll = cx.rolls.roll.clone();
        let mates = Self::place(cx).zip(roll).map(|((dealing, place), roll)| {
            let cell = dealing.cell(place, cx.round).into_iter();
            let others = cell.filter(|other| *other != place);
            others.filter_map(|other| roll.peer(other)).collect()
        });
        self.mates = Some(mates.unwrap_or_default());
    }

    fn begin(&mut self, cx: &mut Context, _summary: &TrainSummary) {
        (self.outcome, self.alone) = (None, false);
        let mates = self.mates.clone().unwrap_or_default();
        let ready = self.early_ready.of(cx.round);
        self.forming = Some(Forming::new(cx, mates, ready));
        self.tell_ready(cx);
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
            }) => self.arrived(cx, from, (slice, meta, digest)),
            Signal::Pushed { to, slice, outcome } => {
                if let Some(cell) = self.cell.as_mut().filter(|_| slice.round == cx.round) {
                    cell.pushed(cx, to, slice, outcome);
                }
                Ok(())
            }
            Signal::Fetched {
                what: FetchId::Slice(slice),
                digest,
            } => {
                let cell = self.cell.as_mut().filter(|_| slice.round == cx.round);
                let taken = cell.is_some_and(|cell| cell.fetched(cx, slice, digest));
                if !taken && !self.history.keeps(&slice) {
                    cx.order(Order::Release { slice });
                }
                Ok(())
            }
            Signal::FetchFailed {
                what: FetchId::Slice(slice),
            } => {
                if let Some(cell) = self.cell.as_mut().filter(|_| slice.round == cx.round) {
                    cell.fetch_failed(cx, slice);
                }
                Ok(())
            }
            Signal::Done { order, done } => {
                if let Some(cell) = &mut self.cell {
                    cell.done(cx, order, done);
                }
                Ok(())
            }
            Signal::Gone(peer) => {
                self.gone(cx, peer);
                Ok(())
            }
            Signal::Timeout => {
                let forming = self.forming.as_mut();
                if forming.is_some_and(|forming| forming.timeout(cx)) {
                    // The word may be lost, or the answer.
                    self.tell_ready(cx);
                }
                if let Some(cell) = &mut self.cell {
                    cell.timeout(cx);
                }
                Ok(())
            }
            Signal::Heard(_) | Signal::Fetched { .. } | Signal::FetchFailed { .. } => Ok(()),
        };
        self.settle(cx);
        result
    }

    fn ended(&mut self, cx: &Context) -> Vec<(FragmentId, Ending)> {
        if std::mem::take(&mut self.alone) {
            let all = cx.plan.fragments_of(cx.round);
            return all.map(|fragment| (fragment, Ending::Void)).collect();
        }
        self.cell.as_mut().map_or(Vec::new(), CellRound::ended)
    }

    fn applied(&mut self, cx: &mut Context, fragment: FragmentId) {
        if let Some(cell) = &mut self.cell {
            cell.applied(cx, fragment, &mut self.history);
        }
    }

    fn without(&mut self, cx: &mut Context, bad: SliceId, reason: &str) -> Option<Ending> {
        self.cell.as_mut()?.without(cx, bad, reason)
    }

    fn outcome(&mut self) -> Option<Outcome> {
        self.outcome.take()
    }

    fn finish(&mut self, cx: &mut Context) {
        cx.timers.stop(Timer::Exchange);
        self.end_forming(cx, &[]);
        if let Some(mut cell) = self.cell.take() {
            cell.release(cx);
        }
        (self.mates, self.outcome) = (None, None);
        self.alone = false;
        self.early_ready.forget_until(cx.round);
        self.early
            .forget_the_round(cx, |slice| self.history.keeps(slice));
        cx.follow_the_others(BEHIND);
    }

    fn group(&self) -> Option<GroupTag> {
        self.cell.as_ref().map(CellRound::tag)
    }

    fn awaited(&self, cx: &Context, wait: Wait, fragment: FragmentId) -> Vec<PeerId> {
        match (wait, &self.forming, &self.cell) {
            (Wait::Group, Some(forming), _) => forming.awaited(cx),
            (_, _, Some(cell)) => cell.awaited(fragment),
            _ => Vec::new(),
        }
    }

    fn waiting(&self) -> usize {
        self.early.len()
    }
}
