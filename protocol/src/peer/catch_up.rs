//! Catching up: a newcomer or a straggler takes over the swarm's state.
//!
//! A straggler that missed a round or two replays their decisions (the encoded aggregates, a
//! fraction of a state) and keeps what it trained on top. All others fetch a pinned state
//! from several donors, then replay what was decided meanwhile. No other peer's round waits for
//! either.

use crate::core::timers::Timer;
use crate::core::{Event, FetchId, Output, Phase, Wait};
use crate::peer::Peer;
use crate::peer::lag::{CatchUp, Helpers, Offer};
use crate::peer::resting::Standing;
use crate::wire::TransferMessage;
use crate::{Base, Digest, Done, OrderId, PeerError, PeerId};
use core::time::Duration;

/// Bytes per second below which a state transfer is given up.
const SLOWEST_RATE: u64 = 64 << 10;

impl Peer {
    /// The swarm continued without this peer.
    pub(super) fn fall_behind(&mut self, teller: PeerId, resync: bool) {
        // The others hear first that this peer takes part in no round, so that no group waits for
        // it.
        self.tell_alive();
        let agreed = self.cx.plan.exchange.agrees();
        if agreed && !resync {
            self.replay(teller, 0);
        } else {
            self.ask_state();
        }
    }

    /// Starts the clock of the next step of a catch-up.
    pub(super) fn wait_for_state(&mut self, allowed: Duration) {
        self.cx.waited(Wait::State, false);
        let deadline = self.cx.wait(Wait::State, allowed);
        self.cx.timers.set(Timer::CatchUp, deadline);
    }

    /// No peer can help: continues from this peer's state, or waits for another peer.
    pub(super) fn give_up_catching_up(&mut self) {
        self.catch_up = CatchUp::Idle;
        self.cx.timers.stop(Timer::CatchUp);
        self.cx.waited(Wait::State, true);
        let deadline = self.cx.wait(Wait::Peers, self.cx.config.start_wait);
        self.cx.timers.set(Timer::Join, deadline);
    }

    /// A donor offers its state.
    ///
    /// # Errors
    /// When it is larger than any state of this plan.
    pub(super) fn state_offered(&mut self, from: PeerId, offer: Offer) -> Result<(), PeerError> {
        let oldest = self.oldest_wanted();
        let CatchUp::Asking { asked, offers } = &mut self.catch_up else {
            return Ok(());
        };
        let late = self.helpers.late.remove(&from);
        if !asked.remove(&from) && !late {
            return Ok(());
        }
        // A late one has been waited for long enough.
        let last = asked.is_empty() || late;
        let state = offer.state;
        let fits = state.bytes <= self.cx.plan.state_bytes_max();
        // An older state would take this peer back.
        if fits && state.round >= oldest {
            offers.entry(offer).or_default().push(from);
        } else {
            self.blame_donors([from]);
        }
        if last {
            self.choose_state();
        }
        match fits {
            true => Ok(()),
            false => Err(PeerError::Unexpected {
                what: format!(
                    "a state of {} bytes, more than the plan allows",
                    state.bytes
                ),
            }),
        }
    }

    pub(super) fn state_refused(&mut self, from: PeerId) {
        let CatchUp::Asking { asked, .. } = &mut self.catch_up else {
            return;
        };
        let (mine, last) = (asked.remove(&from), asked.is_empty());
        if mine {
            self.blame_donors([from]);
        }
        if last {
            self.choose_state();
        }
    }

    /// Takes the state with the most donors, because its chunks come from all of them at once; the
    /// newest of equals.
    fn choose_state(&mut self) {
        let CatchUp::Asking { offers, .. } = &self.catch_up else {
            return;
        };
        let best = offers
            .iter()
            .max_by_key(|(offer, donors)| (donors.len(), offer.state.round));
        let Some((offer, donors)) = best.map(|(offer, donors)| (*offer, donors.clone())) else {
            // No peer had a state: ask again when the next sign of life is due.
            self.ask_later(self.cx.deadlines.answer());
            return;
        };
        // Others have vouched for a state with which peers wait.
        let base = Base {
            round: offer.state.round,
            anchor: offer.anchor,
        };
        let known = self.standing() == Standing::Behind(base);
        if self.liars() > 0 && !known {
            self.seek_vouchers(offer, donors);
        } else {
            self.fetch_state(offer, donors);
        }
    }

    pub(super) fn fetch_state(&mut self, offer: Offer, donors: Vec<PeerId>) {
        let state = offer.state;
        let allowed = Duration::from_secs(state.bytes / SLOWEST_RATE) + self.cx.deadlines.ceiling();
        let deadline = self.cx.now + allowed;
        let count = u32::try_from(donors.len()).unwrap_or(u32::MAX);
        let from = self.cx.round;
        self.cx.emit(Event::CatchUp {
            from,
            to: state.round,
            donors: count,
        });
        self.cx.put(Output::Fetch {
            what: FetchId::State(state),
            from: donors.clone(),
            deadline,
        });
        self.wait_for_state(allowed);
        self.catch_up = CatchUp::Fetching(offer, donors);
    }

    /// While a state is on its way its donors are asked for it again with every sign of life, so
    /// that they keep it, and the rounds since, however long the download takes.
    pub(super) fn keep_donors(&mut self) {
        let (offer, donors) = match &self.catch_up {
            CatchUp::Fetching(offer, donors) => (offer, donors),
            CatchUp::Vouching(vouching) => (&vouching.offer, &vouching.donors),
            _ => return,
        };
        let at_least = offer.state.round;
        for donor in donors {
            self.cx.send(*donor, TransferMessage::StateAsk { at_least });
        }
    }

    /// A fetch for the catch-up ended well; false when it was not for it.
    pub(super) fn catch_up_fetched(&mut self, what: FetchId, digest: Option<Digest>) -> bool {
        match (&mut self.catch_up, what) {
            (CatchUp::Fetching(offer, donors), FetchId::State(got)) if offer.state == got => {
                let (offer, donors) = (*offer, std::mem::take(donors));
                self.cx.timers.stop(Timer::CatchUp);
                self.cx.waited(Wait::State, false);
                self.load_or_keep(offer, donors);
                true
            }
            (CatchUp::Replaying(replay), FetchId::Slice(slice)) => {
                let Some(wanted) = replay.fetching.remove(&slice) else {
                    return false;
                };
                replay.here.push(slice);
                if Some(wanted) == digest {
                    self.apply_replay();
                } else {
                    // The donor served other bytes than those that were decided.
                    self.ask_others();
                }
                true
            }
            // A state that was given up meanwhile. No exchange fetches states.
            (_, FetchId::State(_)) => true,
            _ => false,
        }
    }

    /// A fetch for the catch-up failed; false when it was not for it.
    pub(super) fn catch_up_fetch_failed(&mut self, what: FetchId) -> bool {
        let mine = match (&self.catch_up, what) {
            (CatchUp::Fetching(offer, _), FetchId::State(lost)) => offer.state == lost,
            (CatchUp::Replaying(replay), FetchId::Slice(slice))
                if replay.fetching.contains_key(&slice) =>
            {
                self.ask_state();
                return true;
            }
            (_, FetchId::State(_)) => return true,
            _ => false,
        };
        if mine {
            self.blame_for_the_state();
            self.ask_state();
        }
        mine
    }

    /// The donors' state did not come or did not fit.
    fn blame_for_the_state(&mut self) {
        if let CatchUp::Fetching(_, donors) | CatchUp::Loading(_, _, donors) = &mut self.catch_up {
            let donors = std::mem::take(donors);
            self.blame_donors(donors);
        }
    }

    /// An order of the catch-up was answered; false when it is not one.
    pub(super) fn catch_up_done(&mut self, order: OrderId, done: &Done) -> bool {
        match &mut self.catch_up {
            CatchUp::Loading(id, offer, _) if *id == order => {
                let offer = *offer;
                match done {
                    Done::Loaded { digests, note } => self.loaded(offer, digests, note),
                    other => {
                        let what = format!("cannot take over the fetched state: {other:?}");
                        self.cx.emit(Event::WorkFailed { what });
                        self.blame_for_the_state();
                        self.ask_others();
                    }
                }
                true
            }
            CatchUp::Keeping(id, offer, donors) if *id == order => {
                let (offer, donors) = (*offer, std::mem::take(donors));
                self.branch_kept(done);
                self.load(offer, donors);
                true
            }
            CatchUp::Replaying(replay) => match replay.applies.remove(&order) {
                Some(fragment) => {
                    self.replayed(fragment, done);
                    true
                }
                None => self.scores_replayed(order, done),
            },
            _ => false,
        }
    }

    fn loaded(&mut self, offer: Offer, digests: &[Digest], note: &[u8]) {
        if let CatchUp::Loading(_, _, donors) = &self.catch_up {
            // They keep the rounds since, however large; others may have forgotten them.
            self.helpers.donors.clone_from(donors);
        }
        self.drop_pin();
        self.leave_branch();
        self.cx.digests = digests.to_vec();
        self.take_shared(note);
        self.cx.round = offer.state.round;
        if self.cx.plan.agreement.signs() && self.cx.anchor() != offer.anchor {
            // The donors served other parameters than those that others vouched for.
            self.blame_for_the_state();
            self.ask_others();
            return;
        }
        let base = Base {
            round: offer.state.round,
            anchor: self.cx.anchor(),
        };
        self.cx.view.split.passed(base);
        // An evaluation or checkpoint of this round was of other parameters.
        self.life.evaluated_round = None;
        self.life.saved_round = None;
        let ones = vec![1.0; self.cx.plan.fragments.len()];
        self.exchange.set_weights(&ones);
        self.caught_up(0);
    }

    /// A state is loaded or a round replayed: replays the next round, or takes part.
    pub(super) fn caught_up(&mut self, replayed: u32) {
        // Each replay takes time in which the others decide more rounds, so it ends only when no
        // peer that helps is ahead.
        let least = self.cx.view.live().map(|(id, _)| self.in_vain(id)).min();
        let helps = |id: PeerId| Some(self.in_vain(id)) == least;
        let ahead = self.cx.view.live().filter(|(_, r)| r.round > self.cx.round);
        let ahead = ahead.filter(|(id, _)| helps(*id));
        let kept = |id: PeerId| self.helpers.donors.contains(&id);
        let furthest = ahead.max_by_key(|(id, r)| (kept(*id), r.round, *id));
        let furthest = furthest.map(|(id, _)| id);
        if let Some(donor) = furthest
            && self.cx.plan.exchange.agrees()
        {
            self.replay(donor, replayed);
            return;
        }
        self.catch_up = CatchUp::Idle;
        // Inner steps that were taken ahead began from an anchor that is replaced now.
        self.life.ahead.taken = None;
        // It may not know all peers yet, so it proposes no group until it has been in one.
        self.cx.this_life.newcomer = true;
        self.helpers = Helpers::default();
        self.cx.timers.stop(Timer::CatchUp);
        self.cx.waited(Wait::State, false);
        if self.phase == Phase::Join {
            self.begin();
        }
    }

    /// A donor is gone.
    pub(super) fn catch_up_gone(&mut self, peer: PeerId) {
        match &mut self.catch_up {
            CatchUp::Asking { .. } => self.state_refused(peer),
            CatchUp::Replaying(replay) if !replay.started && replay.donor == Some(peer) => {
                self.ask_state();
            }
            _ => {}
        }
    }

    /// The catch-up's deadline has passed.
    pub(super) fn catch_up_expired(&mut self) {
        self.cx.waited(Wait::State, true);
        match &mut self.catch_up {
            CatchUp::Idle | CatchUp::Keeping(..) | CatchUp::Loading(..) => {}
            CatchUp::Asking { asked, offers } => {
                let (silent, offered) = (std::mem::take(asked), !offers.is_empty());
                self.helpers.note_late(&silent);
                self.blame_donors(silent);
                if offered {
                    self.choose_state();
                } else {
                    self.ask_state();
                }
            }
            CatchUp::Vouching(_) => self.seek_again(),
            CatchUp::Fetching(..) => {
                self.blame_for_the_state();
                self.ask_state();
            }
            CatchUp::Replaying(_) => {
                if !self.fetch_from_another() {
                    self.ask_state();
                }
            }
        }
    }
}
