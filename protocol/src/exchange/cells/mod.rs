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
//! | failure | cost |
//! |---|---|
//! | a member before it is ready | nothing if its link is down; else one deadline for its cell |
//! | a member later | one ballot of its cell |
//! | the member that forms the cell | the next one forms it, at once if its link is down |
//! | half of a cell after it formed | its round: members keep their own parameters |
//! | words that bring a peer ahead of most others | it waits in its round until they are there |
//! | a peer whose roll is older | its own rounds until it knows the roll again |

mod forming;
mod message;
mod news;

pub use message::CellsMessage;

use crate::core::context::Context;
use crate::core::deadlines::Timer;
use crate::exchange::agreed::{AgreedMessage, CellRound, Early, History, Scoped};
use crate::exchange::{
    Arrived, Exchange, ExchangeMessage, Outcome, Signal, broke, foreign_message, foreign_tag,
};
use crate::limits::{
    CELL_ALONE_ROUNDS, CELL_SEAT_KEPT, EARLY_MESSAGES_MAX, EARLY_SLICES_MAX, ROLL_PEERS_MAX,
    ROUNDS_AHEAD_MAX,
};
use crate::sorted::{SortedMap, SortedSet};
use crate::wire::PeerRecord;
use crate::{
    Checked, Dealing, Ending, FragmentId, GroupTag, PeerId, RollSeat, Round, SliceId, Time,
    TrainSummary, Wait,
};
use forming::{Forming, Step};
use news::News;

const EXCHANGE: &str = "means over cells";

/// Rounds that a peer may be behind the others before it skips some.
const BEHIND: u64 = 1;

/// The exchange of one peer of cells.
#[derive(Default)]
pub(crate) struct CellsExchange {
    news: News,
    /// The other peers of the round's cell, from the roll; none between rounds.
    dealt: Option<SortedSet<PeerId>>,
    forming: Option<Forming>,
    cell: Option<CellRound>,
    early: Early,
    early_ready: EarlyReady,
    /// Counterparts without a link, with when that was noticed.
    down: SortedMap<PeerId, Time>,
    history: History,
    last: Option<(Round, Time)>,
    /// The peers of the last cell that said that they were ready.
    heard: SortedSet<PeerId>,
    /// The round goes on without others, which the peer has not been told.
    alone: bool,
    /// Rounds that this peer went alone though others go on.
    alone_for: u32,
    /// A peer that goes on without this one.
    passed_by: Option<PeerId>,
    outcome: Option<Outcome>,
}

impl CellsExchange {
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

    fn tell_ready(&self, cx: &mut Context) {
        let Some(forming) = &self.forming else {
            return;
        };
        let (round, news) = (cx.round, self.news.told());
        for peer in forming.dealt() {
            if cx.view.takes_part(peer) {
                let news = news.clone();
                cx.send(peer, CellsMessage::Ready { round, news });
            }
        }
    }

    fn end_forming(&mut self, cx: &mut Context, members: &[PeerId]) {
        let Some(forming) = self.forming.take() else {
            return;
        };
        cx.waited(Wait::Group);
        // The others in the cell must not count on this peer in another one.
        let (round, now) = (cx.round, cx.round);
        let others = forming.dealt().filter(|peer| !members.contains(peer));
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
        match cell.fragments.due() {
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

    fn gone(&mut self, cx: &mut Context, peer: PeerId) {
        if cx.rolls.is_counterpart(peer) {
            self.down.entry(peer).or_insert(cx.now);
        }
        if let Some(forming) = &mut self.forming {
            forming.leave_out(peer);
        }
        if let Some(cell) = &mut self.cell {
            cell.gone(cx, peer);
        }
        // What it sent was for a cell with it; its next life sends other bytes.
        self.early.drop_of(cx, peer);
        self.early_ready.drop_of(peer);
    }

    fn message(&mut self, cx: &mut Context, from: PeerId, message: &ExchangeMessage) -> Checked {
        match message {
            ExchangeMessage::Cells(message) => self.cell_message(cx, from, message),
            ExchangeMessage::Agreed(AgreedMessage::Fragment(scoped)) => {
                self.deliver(cx, from, scoped)
            }
            other => match other.applicant() {
                Some(record) => self.seat(cx, from, record),
                None => Err(foreign_message(other, EXCHANGE)),
            },
        }
    }
}

impl Exchange for CellsExchange {
    fn open(&mut self, cx: &mut Context) {
        (self.outcome, self.alone, self.passed_by) = (None, false, None);
        let places = cx.rolls.roll.as_ref().map(|roll| roll.len());
        if let Some(dealing) = places.and_then(|places| cx.dealing(places)) {
            // First, because the changes that are due now say who is dealt into the cell.
            self.news.turn(cx, &dealing);
        }
        self.note_down(cx);
        let roll = cx.rolls.roll.clone();
        let dealt = Self::place(cx).zip(roll).map(|((dealing, place), roll)| {
            let cell = dealing.cell(place, cx.round).into_iter();
            let others = cell.filter(|other| *other != place);
            others.filter_map(|other| roll.peer(other)).collect()
        });
        self.dealt = Some(dealt.unwrap_or_default());
    }

    fn begin(&mut self, cx: &mut Context, _summary: &TrainSummary) {
        (self.outcome, self.alone) = (None, false);
        let dealt = self.dealt.clone().unwrap_or_default();
        let ready = self.early_ready.of(cx.round);
        self.forming = Some(Forming::new(cx, dealt, ready));
        self.tell_ready(cx);
        self.settle(cx);
    }

    fn signal(&mut self, cx: &mut Context, signal: Signal<'_>) -> Checked {
        let mut result = Ok(());
        match signal {
            Signal::Message { from, message } => result = self.message(cx, from, message),
            Signal::Arrived(arrived) => result = self.arrived(cx, arrived),
            Signal::Pushed(end) => {
                if let Some(cell) = &mut self.cell {
                    cell.fragments.pushed(cx, end);
                }
            }
            Signal::Fetched { slice, digest } => {
                let cell = self.cell.as_mut();
                let taken = cell.is_some_and(|cell| cell.fragments.fetched(cx, slice, digest));
                if !taken && !self.history.keeps(&slice) {
                    cx.release(slice);
                }
            }
            Signal::FetchFailed(slice) => {
                if let Some(cell) = &mut self.cell {
                    cell.fragments.fetch_failed(cx, slice);
                }
            }
            Signal::Done { order, done } => {
                if let Some(cell) = &mut self.cell {
                    cell.fragments.done(cx, order, done);
                }
            }
            Signal::Gone(peer) => self.gone(cx, peer),
            Signal::Timeout => {
                let forming = self.forming.as_mut();
                if forming.is_some_and(|forming| forming.timeout(cx)) {
                    // The word may be lost, or the answer.
                    self.tell_ready(cx);
                }
                if let Some(cell) = &mut self.cell {
                    cell.fragments.timeout(cx);
                }
            }
            Signal::Heard(_) => {}
        }
        self.settle(cx);
        result
    }

    fn ended(&mut self, cx: &Context) -> Vec<(FragmentId, Ending)> {
        if std::mem::take(&mut self.alone) {
            let all = cx.plan.fragments_of(cx.round);
            return all.map(|fragment| (fragment, Ending::Void)).collect();
        }
        let cell = self.cell.as_mut();
        cell.map_or(Vec::new(), |cell| cell.fragments.ended())
    }

    fn applied(&mut self, cx: &mut Context, fragment: FragmentId) {
        if let Some(cell) = &mut self.cell {
            cell.fragments.applied(cx, fragment, &mut self.history);
        }
    }

    fn without(&mut self, cx: &mut Context, bad: SliceId, reason: &str) -> Option<Ending> {
        self.cell.as_mut()?.fragments.without(cx, bad, reason)
    }

    fn outcome(&mut self) -> Option<Outcome> {
        self.outcome.take()
    }

    fn finish(&mut self, cx: &mut Context) {
        cx.timers.stop(Timer::Exchange);
        self.end_forming(cx, &[]);
        if let Some(mut cell) = self.cell.take() {
            cell.fragments.release(cx);
        }
        (self.dealt, self.outcome) = (None, None);
        self.alone = false;
        self.early_ready.forget_until(cx.round);
        self.early
            .forget_the_round(cx, |slice| self.history.keeps(slice));
        // Cells have no common result to catch up with, so a straggler skips the rounds it missed.
        cx.follow_the_others(BEHIND);
    }

    fn group(&self) -> Option<GroupTag> {
        self.cell.as_ref().map(CellRound::tag)
    }

    fn awaited(&self, cx: &Context, wait: Wait, fragment: FragmentId) -> Vec<PeerId> {
        match (wait, &self.forming, &self.cell) {
            (Wait::Group, Some(forming), _) => forming.awaited(cx),
            (_, _, Some(cell)) => cell.fragments.awaited(fragment),
            _ => Vec::new(),
        }
    }

    fn waiting(&self) -> usize {
        self.early.len()
    }
}

/// Rounds that a peer may be ahead of most others before it waits for them.
const AHEAD: u64 = 1;

impl CellsExchange {
    /// The peers of the cell may still come, because most are not in this round yet. Alone this
    /// peer would get further ahead with each round, because such rounds are shorter.
    fn is_ahead(&self, cx: &Context) -> bool {
        let mut dealt = self.dealt.iter().flatten();
        let comes = dealt.any(|peer| {
            let remote = cx.view.get(*peer);
            cx.view.takes_part(*peer) && remote.is_some_and(|remote| remote.round <= cx.round)
        });
        comes && self.passed_by.is_none() && cx.round.since(cx.view.usual_round()) > AHEAD
    }

    /// Gives those that did not come another deadline.
    fn wait_on(&mut self, cx: &mut Context) {
        if let Some(forming) = &mut self.forming {
            forming.wait_on(cx);
        }
    }

    /// No other peer exchanges with this one in this round: it goes on from its own parameters.
    fn go_alone(&mut self, cx: &mut Context) {
        self.end_forming(cx, &[]);
        cx.timers.stop(Timer::Exchange);
        self.alone = true;
        // Only rounds that others spend without it show that its roll may be old.
        self.alone_for += u32::from(self.passed_by.is_some());
        self.outcome = Some(match self.passed_by {
            Some(teller) if self.alone_for >= CELL_ALONE_ROUNDS => {
                self.alone_for = 0;
                self.alone = false;
                let resync = true;
                Outcome::Behind { teller, resync }
            }
            _ => Outcome::Ended,
        });
    }
}

impl CellsExchange {
    /// Notes since when counterparts have no link.
    fn note_down(&mut self, cx: &Context) {
        let is_down = |peer: &PeerId| !cx.view.takes_part(*peer);
        self.down
            .retain(|peer, _| cx.rolls.is_counterpart(*peer) && is_down(peer));
        for peer in cx.rolls.counterparts().filter(is_down) {
            self.down.entry(peer).or_insert(cx.now);
        }
    }

    /// The place of a counterpart that has been gone for long, if no newcomer has it yet.
    fn vacant(&self, cx: &Context) -> Option<usize> {
        let roll = cx.rolls.roll.as_ref()?;
        let gone = |(peer, since): &(&PeerId, &crate::Time)| {
            cx.now.since(**since) >= CELL_SEAT_KEPT && !cx.view.takes_part(**peer)
        };
        let places = self.down.iter().filter(gone);
        let mut places = places.filter_map(|(peer, _)| roll.place_of(*peer));
        places.find(|place| !self.news.changes(*place))
    }

    /// A newcomer asks for a place.
    fn seat(&mut self, cx: &mut Context, from: PeerId, record: &PeerRecord) -> Checked {
        if record.peer != from || record.run != cx.plan.run {
            return broke("another peer's wish for a place");
        }
        let Some(((dealing, _), roll)) = Self::place(cx).zip(cx.rolls.roll.clone()) else {
            return Ok(());
        };
        let has = roll
            .place_of(from)
            .and_then(|at| Some((at, roll.place(at)?)));
        let soon = self.news.seat_of(from).cloned();
        let seat = match (soon, has) {
            // It asks again because the answer was lost: a second place would stay empty.
            (Some(soon), _) => soon,
            (None, Some((place, held))) => RollSeat {
                place: place as u32,
                record: held.record.clone(),
                since: held.since,
            },
            (None, None) => {
                // A place of one that is gone comes first, so that the roll does not grow for ever.
                let place = self.vacant(cx).unwrap_or(self.news.free_place(&roll));
                if place >= ROLL_PEERS_MAX {
                    return Ok(());
                }
                RollSeat {
                    place: place as u32,
                    record: record.clone(),
                    since: News::in_force(cx, &dealing),
                }
            }
        };
        self.news.learn(cx.round, core::slice::from_ref(&seat));
        cx.send(from, CellsMessage::Seats(vec![seat]));
        Ok(())
    }
}

/// Peers that were ready for a round before this one was.
#[derive(Debug, Default)]
pub(super) struct EarlyReady(SortedSet<(Round, PeerId)>);

impl EarlyReady {
    /// The peers that were ready for a round before this one.
    pub(super) fn of(&self, round: Round) -> SortedSet<PeerId> {
        let ready = self.0.iter().filter(|(of, _)| *of == round);
        ready.map(|(_, peer)| *peer).collect()
    }

    pub(super) fn keep(&mut self, round: Round, peer: PeerId) {
        if self.0.len() < EARLY_MESSAGES_MAX {
            self.0.insert((round, peer));
        }
    }

    /// A peer is gone.
    pub(super) fn drop_of(&mut self, peer: PeerId) {
        self.0.retain(|(_, of)| *of != peer);
    }

    fn forget_until(&mut self, round: Round) {
        self.0.retain(|(of, _)| *of > round);
    }
}

/// What arrives for a round of cells: words, slices and messages, early, in time or late.
impl CellsExchange {
    pub(super) fn cell_message(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        message: &CellsMessage,
    ) -> Checked {
        match message {
            CellsMessage::Ready { round, news } => {
                self.news.learn(cx.round, news);
                self.ready(cx, from, *round);
            }
            CellsMessage::Form { round, members } => {
                self.told_members(cx, from, *round, members)?;
            }
            CellsMessage::Passed { round, now } => {
                if let Some(remote) = cx.view.get_mut(from) {
                    // Messages may overtake each other, and a round never goes back.
                    remote.round = remote.round.max(*now);
                }
                if *round == cx.round {
                    if let Some(forming) = &mut self.forming {
                        self.passed_by = Some(from);
                        forming.passed(cx, from);
                    }
                    if let Some(cell) = &mut self.cell {
                        // It is a member by this cell and works in another, so nothing of it will
                        // come.
                        cell.gone(cx, from);
                    }
                }
            }
            CellsMessage::Seats(news) => self.news.learn(cx.round, news),
        }
        Ok(())
    }

    fn ready(&mut self, cx: &mut Context, from: PeerId, round: Round) {
        if round >= cx.round {
            // It has trained, so it is waited for, whatever was suspected before.
            cx.view.did_its_part(from, round);
        }
        let now = cx.round;
        if round > now || (round == now && self.is_before_forming()) {
            // No peer may make this one keep words of rounds that are far off.
            if round.since(now) <= ROUNDS_AHEAD_MAX {
                self.early_ready.keep(round, from);
            }
            return;
        }
        let forming = self.forming.as_mut().filter(|_| round == now);
        if let Some(forming) = forming.filter(|forming| forming.knows(from)) {
            forming.ready(cx, from);
            return;
        }
        let cell = self.cell.as_ref().filter(|_| round == now);
        if let Some(cell) = cell.filter(|cell| cell.has(from)) {
            // Another member may have heard it first. One that says it again has not heard of the cell.
            if !self.heard.insert(from) {
                let members = cell.members();
                cx.send(from, CellsMessage::Form { round, members });
            }
            return;
        }
        if let Some((_, since)) = self.last.filter(|(last, _)| *last == round) {
            // The next deadline allows for peers that are always as late.
            let waited = cx.now.since(since);
            cx.deadlines.record(Wait::Group, from, waited);
        }
        cx.view.forgive(from);
        cx.send(from, CellsMessage::Passed { round, now });
    }

    /// A peer says who is in the round's cell.
    fn told_members(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        round: Round,
        members: &[PeerId],
    ) -> Checked {
        let now = cx.round;
        if members.len() > Dealing::largest_of(cx.plan.agreement.grouping) {
            return broke("a cell of more peers than the plan deals");
        }
        // A member cannot form a cell for others without being in it.
        let has_me = members.contains(&cx.me()) && members.contains(&from);
        let forming = self.forming.as_mut().filter(|_| round == now);
        match forming.filter(|forming| forming.knows(from)) {
            Some(_) if has_me => self.formed(cx, members),
            // It is in a cell without this peer: as good as a word that it has passed.
            Some(forming) => forming.passed(cx, from),
            // It counts on this peer, which is in another cell, or alone.
            None if has_me && round <= now => {
                let cell = self.cell.as_ref().filter(|_| round == now);
                if cell.is_none_or(|cell| cell.members() != members) {
                    cx.send(from, CellsMessage::Passed { round, now });
                }
            }
            None => {}
        }
        Ok(())
    }

    /// This peer has not trained in its round yet.
    fn is_before_forming(&self) -> bool {
        let over = self.alone || self.outcome.is_some();
        self.forming.is_none() && self.cell.is_none() && !over
    }

    pub(super) fn arrived(&mut self, cx: &mut Context, arrived: Arrived) -> Checked {
        let Arrived { slice, meta, .. } = arrived;
        let Some(group) = meta.tag.group() else {
            cx.release(slice);
            return Err(foreign_tag(meta.tag, EXCHANGE));
        };
        if slice.round == cx.round
            && let Some(cell) = &mut self.cell
        {
            // The window has not come to that fragment here.
            if cell.tag() == group && !cell.has_opened(slice.fragment) {
                return self.keep_early(cx, arrived);
            }
            let taken = cell.arrived(cx, arrived);
            // A late copy has the name of a kept slice, and releasing it would take that one.
            if !matches!(taken, Ok(true)) && !self.history.keeps(&slice) {
                cx.release(slice);
            }
            return taken.map(|_| ());
        }
        let soon = slice.round >= cx.round && slice.round.since(cx.round) <= ROUNDS_AHEAD_MAX;
        if soon && !(slice.round == cx.round && (self.alone || self.outcome.is_some())) {
            return self.keep_early(cx, arrived);
        }
        if !self.history.keeps(&slice) {
            cx.release(slice);
        }
        Ok(())
    }

    fn keep_early(&mut self, cx: &mut Context, early: Arrived) -> Checked {
        self.early
            .keep_slice(cx, early, EARLY_SLICES_MAX)
            .map(|_| ())
    }

    pub(super) fn deliver(&mut self, cx: &mut Context, from: PeerId, message: &Scoped) -> Checked {
        let (round, fragment) = (message.round, message.fragment);
        if round < cx.round {
            // A group of this number may have been another cell.
            let decision = self.history.decision(round, fragment);
            if decision.is_some_and(|decision| decision.group == message.group) {
                self.history.tell(cx, from, message);
            }
            return Ok(());
        }
        let open = |fragment| {
            let cell = self.cell.as_ref();
            cell.is_some_and(|cell| cell.has_opened(fragment))
        };
        if round > cx.round || !open(fragment) {
            if round.since(cx.round) <= ROUNDS_AHEAD_MAX {
                self.early.keep_message(from, message);
            }
            return Ok(());
        }
        match &mut self.cell {
            Some(cell) => cell.message(cx, from, message),
            None => Ok(()),
        }
    }

    /// A fragment is open: gives it what came early.
    pub(super) fn deliver_early(&mut self, cx: &mut Context, fragment: FragmentId) {
        let round = cx.round;
        let belongs = |r: Round, f: FragmentId| r == round && f == fragment;
        for arrived in self.early.take_slices(belongs) {
            if let Err(error) = self.arrived(cx, arrived) {
                cx.accuse(arrived.from, error.to_string());
            }
        }
        for (from, message) in self.early.take_messages(belongs) {
            if let Err(error) = self.deliver(cx, from, &message) {
                cx.accuse(from, error.to_string());
            }
        }
    }
}
