//! Replaying: a straggler that missed a round or two fetches their decisions (the encoded
//! aggregates, a fraction of a state) and applies them in order. It keeps what it trained on top.

use super::lag::{CatchUp, Replay};
use crate::core::{Event, FetchId, Output, PeerError, Wait};
use crate::exchange::{admit, digests_of, inputs_of, proven, slices_of};
use crate::limits::DONORS_MAX;
use crate::peer::Peer;
use crate::wire::{AgreedMessage, ExchangeMessage, FragmentMessage, Scoped, TransferMessage};
use crate::{Base, Done, FragmentId, Order, PeerId, Round, SliceId};

/// Replayed rounds over which a straggler's own delta is kept.
pub(super) const STALENESS_MAX: u32 = 2;

impl Peer {
    /// Asks for the decisions of the round this peer is in.
    pub(super) fn replay(&mut self, donor: PeerId, replayed: u32) {
        let (round, anchor) = (self.cx.round, self.cx.anchor());
        let began = Base { round, anchor };
        self.cx.send(donor, TransferMessage::HistoryAsk { began });
        self.wait_for_state(self.cx.deadlines.allow(Wait::Agreement, [donor]));
        self.catch_up = CatchUp::Replaying(Replay {
            donor: Some(donor),
            replayed,
            ..Replay::default()
        });
    }

    /// The decision in a message, if the replay waits for it.
    pub(super) fn replays<'a>(
        &self,
        from: PeerId,
        message: &'a ExchangeMessage,
    ) -> Option<&'a Scoped> {
        let CatchUp::Replaying(replay) = &self.catch_up else {
            return None;
        };
        let ExchangeMessage::Agreed(AgreedMessage::Fragment(scoped)) = message else {
            return None;
        };
        let waits = replay.donor == Some(from) && !replay.started;
        // Where members sign, only a decision with its proof counts.
        let shown = scoped.body.ends() && scoped.body.is_signed() == self.cx.plan.agreement.signs();
        (waits && shown && scoped.round == self.cx.round).then_some(scoped)
    }

    /// One fragment's decision; with all of them, their slices are fetched. Where members sign, one
    /// donor is enough: the decision carries its proof.
    pub(super) fn replay_decision(&mut self, message: &Scoped) -> Result<(), PeerError> {
        let plain = match self.cx.plan.agreement.signs() {
            false => message.clone(),
            true => {
                let Some(proven) = proven(&self.cx, message) else {
                    return Err(PeerError::Unexpected {
                        what: "a decision without its proof".to_owned(),
                    });
                };
                if proven.signers <= self.liars() {
                    self.ask_others();
                    return Ok(());
                }
                if proven.anchor != self.cx.anchor() {
                    // The run has another state than this peer: no replay leads there.
                    self.ask_state();
                    return Ok(());
                }
                proven.plain
            }
        };
        let fragment = message.fragment;
        if !self.fits_the_plan(fragment, &plain.body) {
            return Err(PeerError::Unexpected {
                what: "a decision that does not fit the plan".to_owned(),
            });
        }
        let CatchUp::Replaying(replay) = &mut self.catch_up else {
            return Ok(());
        };
        if plain != *message {
            replay.proofs.insert(fragment, message.clone());
        }
        replay.decisions.insert(fragment, plain);
        if replay.decisions.len() == self.cx.plan.fragments_of(self.cx.round).count() {
            self.fetch_replay();
        }
        Ok(())
    }

    /// Whether a decision of a fragment can be one of this peer's round.
    fn fits_the_plan(&self, fragment: FragmentId, decision: &FragmentMessage) -> bool {
        let plan = &self.cx.plan;
        if !plan.overlap.exchanges(self.cx.round, fragment) {
            return false;
        }
        let Some(f) = plan.fragment(fragment) else {
            return false;
        };
        match decision {
            FragmentMessage::Decided {
                members, versions, ..
            } => plan.may_have_parts(versions.len() as u64, f.len, members.len()),
            FragmentMessage::Collected { known, versions } => {
                let columns = self
                    .cx
                    .rolls
                    .roll
                    .as_ref()
                    .map(|roll| roll.grid().columns());
                known.iter().all(|known| *known) && Some(versions.len()) == columns
            }
            _ => true,
        }
    }

    /// All decisions of the round are known: fetches their slices.
    pub(super) fn fetch_replay(&mut self) {
        let CatchUp::Replaying(replay) = &mut self.catch_up else {
            return;
        };
        // From now on decisions of the donor are no part of the replay: it has all that it needs.
        replay.started = true;
        for decision in replay.decisions.values() {
            let named = digests_of(self.cx.plan.exchange, decision);
            replay.fetching.extend(named);
        }
        self.fetch_owed();
        self.apply_replay();
    }

    /// Asks the donor for the slices that have not come, and others where it has not got them. While there are
    /// others, it has the time in which it usually hands out a round; the last one has as much as a transfer
    /// may take.
    fn fetch_owed(&mut self) {
        let others = self.other_holders();
        let CatchUp::Replaying(replay) = &self.catch_up else {
            return;
        };
        let ceiling = self.cx.deadlines.ceiling();
        let allowed = match others.is_empty() {
            true => ceiling,
            false => self.cx.deadlines.allow(Wait::Agreement, replay.donor),
        };
        let deadline = self.cx.now + ceiling;
        let from: Vec<PeerId> = replay.donor.into_iter().chain(others).collect();
        let wanted: Vec<SliceId> = replay.fetching.keys().copied().collect();
        for slice in wanted {
            self.cx.put(Output::Fetch {
                what: FetchId::Slice(slice),
                from: from.clone(),
                deadline,
            });
        }
        self.wait_for_state(allowed);
    }

    /// Peers that have the round that is replayed, without those that were asked for it: those that keep it
    /// first, then those that failed to help least often.
    fn other_holders(&self) -> Vec<PeerId> {
        let CatchUp::Replaying(replay) = &self.catch_up else {
            return Vec::new();
        };
        let asked = |id: &PeerId| replay.donor == Some(*id) || replay.debtors.contains(id);
        let ahead = self.cx.view.live().filter(|(_, r)| r.round > self.cx.round);
        let mut others: Vec<PeerId> = ahead.map(|(id, _)| id).filter(|id| !asked(id)).collect();
        others.sort_by_key(|id| (!self.helpers.donors.contains(id), self.in_vain(*id), *id));
        others.truncate(DONORS_MAX);
        others
    }

    /// Slices are owed for too long: asks another peer for them, and blames only the one that owes them.
    /// False if none is left to ask.
    pub(super) fn fetch_from_another(&mut self) -> bool {
        let next = self.other_holders().first().copied();
        let CatchUp::Replaying(replay) = &mut self.catch_up else {
            return false;
        };
        if next.is_none() || replay.fetching.is_empty() {
            return false;
        }
        let debtor = std::mem::replace(&mut replay.donor, next);
        replay.debtors.extend(debtor);
        self.blame_donors(debtor);
        self.fetch_owed();
        true
    }

    /// All slices are here: applies the round, with this peer's delta on top while it is recent. After the
    /// last round no one would learn of it.
    pub(super) fn apply_replay(&mut self) {
        let CatchUp::Replaying(replay) = &mut self.catch_up else {
            return;
        };
        // The fragments of a round are applied together: a round that is applied in part can be
        // neither replayed nor trained on.
        if !replay.fetching.is_empty() || !replay.applies.is_empty() {
            return;
        }
        let round = self.cx.round;
        let keep_local = replay.replayed < STALENESS_MAX && !self.cx.plan.ends_with(round);
        if self.cx.plan.scores() && !self.scores_are_read() {
            return;
        }
        // Those of the round, not those of the peer's present.
        let rules = self.with_codec(self.cx.directed.all().in_force(round).training);
        let CatchUp::Replaying(replay) = &mut self.catch_up else {
            return;
        };
        for (fragment, decision) in &replay.decisions {
            let decided = matches!(
                decision.body,
                FragmentMessage::Decided { .. } | FragmentMessage::Collected { .. }
            );
            if decided {
                let (fragment, kind) = (*fragment, self.cx.plan.exchange);
                let inputs = match self.cx.plan.scores() {
                    true => admit(&mut self.cx, decision, &replay.scores.said),
                    false => inputs_of(decision),
                };
                if self.cx.plan.scores() && inputs.is_empty() {
                    // The members admitted no one: their anchor stayed.
                    continue;
                }
                let order = match kind.facts().shows_contributions {
                    true => Order::Gather {
                        round,
                        fragment,
                        inputs,
                        keep_local,
                        rules,
                    },
                    false => Order::Apply {
                        round,
                        fragment,
                        aggregates: slices_of(kind, decision),
                        keep_local,
                        rules,
                    },
                };
                replay.applies.insert(self.cx.order(order), fragment);
            }
        }
        if replay.applies.is_empty() {
            self.round_replayed();
        }
    }

    pub(super) fn replayed(&mut self, fragment: FragmentId, done: &Done) {
        match done {
            Done::Applied { digest, note } => {
                self.cx.rolls.note.extend_from_slice(note);
                if let Some(slot) = self.cx.digests.get_mut(usize::from(fragment.0)) {
                    *slot = *digest;
                }
            }
            other => {
                let what = format!("cannot apply a fetched round: {other:?}");
                self.cx.emit(Event::WorkFailed { what });
                self.ask_others();
                return;
            }
        }
        let CatchUp::Replaying(replay) = &self.catch_up else {
            return;
        };
        if replay.applies.is_empty() {
            self.round_replayed();
        }
    }

    pub(super) fn round_replayed(&mut self) {
        let CatchUp::Replaying(replay) = &mut self.catch_up else {
            return;
        };
        let shown = match replay.proofs.is_empty() {
            true => &mut replay.decisions,
            false => &mut replay.proofs,
        };
        let decisions = std::mem::take(shown).into_values().collect();
        // The round becomes part of this peer's history: other stragglers may ask for it next.
        let replayed = replay.replayed + 1;
        let round = self.cx.round;
        let kept = replayed <= STALENESS_MAX && !self.cx.plan.ends_with(round);
        if let Some(history) = self.exchange.history_mut() {
            history.remember(&mut self.cx, round, decisions);
        }
        self.cx.emit(Event::Replayed { round, kept });
        self.cx.round = round.next();
        self.turn(round, kept);
        self.caught_up(replayed);
    }

    /// Releases what an abandoned replay has fetched.
    pub(super) fn drop_replay(&mut self) {
        if let CatchUp::Replaying(replay) = &mut self.catch_up {
            for slice in std::mem::take(&mut replay.here) {
                self.cx.order(Order::Release { slice });
            }
            let blamed = replay.donor;
            // Once only: the catch-up ends, or begins again with others.
            self.catch_up = CatchUp::Idle;
            self.blame_donors(blamed);
        }
    }

    pub(super) fn history_refused(&mut self, from: PeerId, round: Round) {
        let mine = matches!(&self.catch_up, CatchUp::Replaying(r) if r.donor == Some(from));
        if mine && round == self.cx.round {
            self.ask_state();
        }
    }
}
