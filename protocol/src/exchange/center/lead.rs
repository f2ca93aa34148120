//! The bounded lead: no peer begins a round before all live peers are close enough. Each peer
//! counts the others' rounds by what they say, which is never ahead of what they do. So the bound
//! holds even if messages are late. Where the plan leaves room between two bounds, each peer
//! chooses a lead of its own at the end of every round and with every message that it hears while
//! it waits. It never exceeds the larger bound.

use super::bound::{Progress, choose};
use super::state::{Center, Lead};
use crate::core::context::Context;
use crate::exchange::Outcome;
use crate::wire::{Alive, MembershipMessage, Muster};
use crate::{PeerId, Round, Wait};

impl Center {
    /// Live peers that must advance before this one may begin the next round with this lead.
    pub(super) fn laggards(cx: &Context, lead: Option<u32>) -> Vec<PeerId> {
        let Some(lead) = lead else {
            return Vec::new();
        };
        let next = cx.round.next().0;
        let behind = cx
            .view
            .live()
            .filter(|(_, r)| !r.probation && r.round.0.saturating_add(u64::from(lead)) < next);
        behind.map(|(id, _)| id).collect()
    }

    /// The lead that is never passed.
    pub(super) fn hard(&self) -> Option<u32> {
        self.plan.lead.map(|lead| lead.most)
    }

    /// The lead that this peer allows itself now.
    fn bound(&mut self, cx: &Context) -> Option<u32> {
        let plan = self.plan.lead?;
        // After a missed deadline the choice was wrong, so the widest lead holds for this round.
        if plan.least == plan.most || self.lead.widest {
            return Some(plan.most);
        }
        let now = cx.now;
        if self.lead.took.is_none() {
            self.lead.took = self.lead.began.map(|began| now.since(began));
        }
        // Nothing was measured in the first round.
        let Some(own) = self.lead.took else {
            return Some(plan.least);
        };
        // One that came back a moment ago has no pace to go by.
        let others = cx.view.live().filter(|(_, r)| !r.probation);
        let paces = &self.lead.paces;
        let others: Vec<Progress> = others
            .map(|(id, r)| paces.of(id, r.round, now, own))
            .collect();
        Some(choose(plan, (cx.round.next(), now), own, &others))
    }

    /// The round ends once everything is pulled and no peer is too far behind.
    pub(super) fn check_end(&mut self, cx: &mut Context) {
        let open = self.fragments.iter().any(|p| p.ending.is_none());
        if self.fragments.is_empty() || open || self.outcome.is_some() || self.lead.over {
            return;
        }
        let bound = self.bound(cx);
        let laggards = Self::laggards(cx, bound);
        if laggards.is_empty() {
            self.lead.over = true;
            self.stop_waiting(cx);
            self.outcome = Some(Outcome::Ended);
            return;
        }
        if self.lead.until.is_none() {
            let allowed = cx.deadlines.allow(Wait::Lead, laggards);
            self.lead.since = Some(cx.now);
            self.lead.until = Some(cx.wait(Wait::Lead, allowed));
        }
    }

    fn stop_waiting(&mut self, cx: &mut Context) {
        cx.waited(Wait::Lead);
        self.lead.until = None;
    }

    /// Peers that are still too far behind are not waited for until they have caught up. Peers
    /// within the largest lead are not suspected: only the smaller lead of this peer made it wait.
    pub(super) fn lead_timeout(&mut self, cx: &mut Context) {
        if self.lead.until.is_none_or(|until| until > cx.now) {
            return;
        }
        self.stop_waiting(cx);
        self.lead.widest = true;
        for peer in Self::laggards(cx, self.hard()) {
            cx.suspect(peer);
        }
    }

    /// A peer says how far it is.
    pub(super) fn heard(&mut self, cx: &mut Context, peer: PeerId) {
        let (mine, lead) = (cx.round.0, self.hard());
        if let Some(remote) = cx.view.get(peer)
            && self.plan.lead.is_some()
        {
            self.lead.paces.heard(peer, remote.round, cx.now);
        }
        let near =
            |round: Round| lead.is_none_or(|lead| round.0.saturating_add(u64::from(lead)) >= mine);
        let Some(remote) = cx.view.get_mut(peer).filter(|r| near(r.round)) else {
            return;
        };
        remote.suspected = false;
        remote.settle();
        if let Some(since) = self.lead.since {
            cx.deadlines.record(Wait::Lead, peer, cx.now.since(since));
        }
    }

    /// The round is over: a straggler joins the round of the others, and all learn this one.
    pub(super) fn end_lead(&mut self, cx: &mut Context) {
        self.stop_waiting(cx);
        let mut paces = std::mem::take(&mut self.lead.paces);
        paces.keep(|peer| cx.view.get(peer).is_some());
        self.lead = Lead {
            began: Some(cx.now),
            paces,
            ..Lead::default()
        };
        let Some(lead) = self.hard() else {
            return;
        };
        // A peer that is behind by more would hold all others up to their deadlines.
        cx.follow_the_others(u64::from(lead));
        let (round, anchor) = (cx.round.next(), cx.anchor());
        let peers: Vec<PeerId> = cx.view.greeted().map(|(id, _)| id).collect();
        for peer in peers {
            let alive = Alive {
                round,
                ready: true,
                anchor,
                muster: Muster::Begun,
                branch: None,
            };
            cx.send(peer, MembershipMessage::Alive(alive));
        }
    }
}
