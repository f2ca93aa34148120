//! With which state a swarm goes on after all its members were restarted.
//!
//! Peers with a checkpoint say which state they hold. The newest one counts. Where members sign, some
//! may lie about it: then it counts only if more peers than may lie began its round with the same
//! parameters, in this life or an earlier one. A peer whose own state is not confirmed, because it was
//! alone in beginning its round, goes back to the newest one that is.
//!
//! Peers that were on two sides of a split are merged once they have begun. Where sides are not merged, the
//! state of the side with more weight counts, however far the other one is: a peer that trained alone is ahead
//! of those that trained together.

use crate::core::Remote;
use crate::limits::{REST_ASKED_AGAIN, VIEW_PEERS_MAX};
use crate::peer::Peer;
use crate::peer::resting::{Said, Standing};
use crate::wire::{Muster, TransferMessage};
use crate::{Base, Digest, PeerId, Round};
use std::collections::{BTreeMap, BTreeSet};

/// Whether enough peers say that they began a round with a state's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Confirmed,
    Refuted,
    Open,
}

impl Peer {
    /// Where this peer's state stands, before its first round.
    pub(super) fn standing(&self) -> Standing {
        if self.life.once.begun {
            return Standing::Newest;
        }
        match self.cx.plan.agreement.signs() {
            true => self.confirmed_standing(),
            false => self.believed_standing(),
        }
    }

    /// Every peer is believed. Of several states of one round, the one with most holders counts, so
    /// that all choose the same.
    fn believed_standing(&self) -> Standing {
        if self.under_way() {
            return Standing::Newest;
        }
        let mine = self.held();
        if let Some(heavier) = self.heavier_side() {
            return Standing::Behind(heavier);
        }
        let mut holders: BTreeMap<(Round, Digest), usize> =
            BTreeMap::from([((mine.round, mine.anchor), 1)]);
        let of_this_side = self
            .resting()
            .filter(|(id, _)| !self.is_of_another_side(*id));
        for (_, base) in of_this_side.filter(|(_, base)| base.round >= mine.round) {
            *holders.entry((base.round, base.anchor)).or_default() += 1;
        }
        let newest = holders.into_iter();
        let newest = newest.max_by_key(|((round, anchor), count)| (*round, *count, *anchor));
        let Some(((round, anchor), _)) = newest else {
            return Standing::Newest;
        };
        // Peers of a fresh run, and of exchanges without a common anchor, differ by nature.
        let comparable = round > Round(0) && self.cx.plan.exchange.agrees();
        match round > mine.round || (comparable && anchor != mine.anchor) {
            true => Standing::Behind(Base { round, anchor }),
            false => Standing::Newest,
        }
    }

    /// Whether a peer was on another side of a split, in an earlier life of both.
    fn is_of_another_side(&self, peer: PeerId) -> bool {
        let split = &self.cx.view.split;
        let said = self.cx.view.get(peer).and_then(|remote| {
            let theirs = remote.contact.branch.as_deref()?;
            split.credible(theirs, remote.round).then_some(theirs)
        });
        let mine = split.branch().filter(|_| split.misses(peer));
        mine.zip(said).is_some_and(|(mine, said)| said.meets(&mine))
    }

    /// The newest state of another side that waits here and has done more than this one's, where sides are
    /// not merged.
    fn heavier_side(&self) -> Option<Base> {
        let split = &self.cx.view.split;
        let mine = split.branch().filter(|_| !self.cx.plan.merges())?;
        let said = |id: PeerId| {
            let remote = self.cx.view.get(id)?;
            remote.contact.branch.as_deref()
        };
        // Members of a side have checkpoints of different ages: its furthest one speaks for it.
        let (mut ours, mut theirs) = ((mine.weight, self.held().anchor), None);
        for (id, base) in self.resting() {
            let Some(branch) = said(id) else {
                continue;
            };
            let claim = (branch.weight, base.anchor);
            if self.is_of_another_side(id) {
                let best = theirs.get_or_insert((claim, base));
                if weighs_more(&claim, &best.0) {
                    *best = (claim, base);
                }
            } else if !split.misses(id) && branch.meets(&mine) && weighs_more(&claim, &ours) {
                ours = claim;
            }
        }
        theirs.and_then(|(claim, base)| weighs_more(&claim, &ours).then_some(base))
    }

    /// Some peers may lie: a state counts if more than these began its round with it.
    fn confirmed_standing(&self) -> Standing {
        let mine = self.held();
        let claims = self.resting().map(|(_, base)| base).chain([mine]);
        let claims = claims.filter(|base| base.round > Round(0));
        let mut claims: Vec<(Round, usize, Digest)> = claims
            .map(|base| (base.round, self.vouchers(base), base.anchor))
            .collect();
        claims.sort_unstable();
        claims.dedup();
        let under_way = self.under_way();
        for (round, _, anchor) in claims.into_iter().rev() {
            let base = Base { round, anchor };
            // Those that are in rounds are ahead of all that wait.
            if under_way && base != mine {
                continue;
            }
            match self.verdict(base) {
                Verdict::Confirmed if base == mine => return Standing::Newest,
                Verdict::Confirmed => return Standing::Behind(base),
                Verdict::Open => return Standing::Unclear,
                Verdict::Refuted => {}
            }
        }
        match mine.round == Round(0) {
            true => Standing::Newest,
            false => Standing::Unclear,
        }
    }

    fn verdict(&self, base: Base) -> Verdict {
        let (vouchers, liars) = (self.vouchers(base), self.liars());
        let Some(said) = self.rest.rounds.get(&base.round) else {
            return Verdict::Open;
        };
        let silent = self.cx.view.greeted().filter(|(id, remote)| {
            !said.began.contains_key(id) && rests_with(remote) != Some(base)
        });
        let silent = silent.count();
        match vouchers > liars {
            true => Verdict::Confirmed,
            false if vouchers + silent > liars && said.is_open(self.cx.now) => Verdict::Open,
            false => Verdict::Refuted,
        }
    }

    /// How many peers, this one included, hold a state or began its round with it.
    fn vouchers(&self, base: Base) -> usize {
        let said = self.rest.rounds.get(&base.round);
        let began = |id: PeerId| said.and_then(|said| said.began.get(&id).copied().flatten());
        let others = self.cx.view.greeted().filter(|(id, remote)| {
            began(*id) == Some(base.anchor) || rests_with(remote) == Some(base)
        });
        usize::from(self.began(base.round) == Some(base.anchor)) + others.count()
    }

    /// Whether this peer's own state is one that too few others know.
    pub(super) fn is_refuted(&self) -> bool {
        let mine = self.held();
        self.cx.plan.agreement.signs()
            && !self.life.once.begun
            && mine.round > Round(0)
            && self.verdict(mine) == Verdict::Refuted
    }

    /// The oldest state that is worth taking over.
    pub(super) fn oldest_wanted(&self) -> Round {
        let mine = self.cx.round;
        match self.standing() {
            _ if self.is_refuted() => Round(1),
            // A heavier side may have done fewer rounds.
            Standing::Behind(base) => mine.min(base.round),
            Standing::Newest | Standing::Unclear => mine,
        }
    }

    /// Asks the others about the states with which peers wait.
    pub(super) fn ask_about_rest(&mut self) {
        if self.life.once.begun || !self.cx.plan.agreement.signs() {
            return;
        }
        let mine = self.cx.round;
        let claimed = self.resting().map(|(_, base)| base.round).chain([mine]);
        let claimed: BTreeSet<Round> = claimed.filter(|round| *round > Round(0)).collect();
        self.rest.rounds.retain(|round, _| claimed.contains(round));
        let others: Vec<PeerId> = self.cx.view.greeted().map(|(id, _)| id).collect();
        let now = self.cx.now;
        let until = now + self.cx.deadlines.answer();
        for round in claimed.into_iter().rev().take(VIEW_PEERS_MAX) {
            let said = self.rest.rounds.entry(round).or_insert_with(|| Said {
                until,
                asked: BTreeSet::new(),
                again: REST_ASKED_AGAIN,
                began: BTreeMap::new(),
            });
            if now >= said.until && said.again > 0 {
                // A question or its answer may have been lost.
                said.again -= 1;
                let answered = &said.began;
                said.asked.retain(|peer| answered.contains_key(peer));
            }
            for peer in others.iter().filter(|peer| said.asked.insert(**peer)) {
                said.until = until;
                self.cx.send(*peer, TransferMessage::AnchorAsk { round });
            }
        }
    }

    /// A peer says with which parameters it began a round, or that it knows no such round.
    pub(super) fn rest_answered(&mut self, from: PeerId, round: Round, anchor: Option<Digest>) {
        if let Some(said) = self.rest.rounds.get_mut(&round)
            && said.asked.contains(&from)
        {
            said.began.insert(from, anchor);
            self.try_begin();
        }
    }

    /// With which parameters this peer began a round, or waits to begin it.
    pub(super) fn began(&self, round: Round) -> Option<Digest> {
        let mine = self.held();
        if mine.round == round && self.at_rest() {
            return Some(mine.anchor);
        }
        let opened = self.donor.opened.iter().find(|base| base.round == round);
        opened.map(|base| base.anchor)
    }

    fn held(&self) -> Base {
        Base {
            round: self.cx.round,
            anchor: self.cx.anchor(),
        }
    }

    /// The peers that wait for their first round, with their states. Those of a side that is to be merged
    /// begin with a state of their own.
    fn resting(&self) -> impl Iterator<Item = (PeerId, Base)> {
        let here = self.cx.view.of_this_branch();
        here.filter_map(|(id, remote)| Some((id, rests_with(remote)?)))
    }

    /// The peers that wait with the state with which this one begins will begin too. They are no
    /// newcomers: a first group without them would end in a void round.
    pub(super) fn await_holders(&mut self) {
        for peer in self.holders_of(self.held()) {
            if let Some(remote) = self.cx.view.get_mut(peer) {
                remote.contact.together = true;
            }
        }
    }

    /// Peers that wait for their first round and hold the state that this one is to take over.
    pub(super) fn holders_at_rest(&self) -> Vec<PeerId> {
        match self.standing() {
            Standing::Behind(base) => self.holders_of(base),
            Standing::Newest | Standing::Unclear => Vec::new(),
        }
    }

    fn holders_of(&self, base: Base) -> Vec<PeerId> {
        let agreed = self.cx.plan.exchange.agrees();
        let same = |r: &Remote| r.round == base.round && (!agreed || r.anchor == Some(base.anchor));
        let all = self.cx.view.greeted();
        let holders = all.filter(|(_, remote)| rests(remote) && same(remote));
        holders.map(|(id, _)| id).collect()
    }
}

/// Whether a side has more weight than another one; of equals the one with the higher anchor has.
fn weighs_more((weight, anchor): &(f64, Digest), (other, than): &(f64, Digest)) -> bool {
    weight.total_cmp(other).then(anchor.cmp(than)).is_gt()
}

/// Whether a peer waits for its first round, in its own words.
fn rests(remote: &Remote) -> bool {
    remote.muster < Muster::Begun && remote.round > Round(0)
}

/// The state with which it does.
fn rests_with(remote: &Remote) -> Option<Base> {
    let round = remote.round;
    let anchor = remote.anchor.filter(|_| rests(remote));
    anchor.map(|anchor| Base { round, anchor })
}
