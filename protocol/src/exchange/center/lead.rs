//! The bounded lead: nobody begins a round before all live peers are near enough. Each peer counts the
//! others' rounds by their own words, which never run ahead of them, so the bound holds whatever is late.

use super::Center;
use crate::exchange::Outcome;
use crate::peer::context::Context;
use crate::wire::Message;
use crate::{PeerId, Round, Time, Wait};

/// The wait for those that are too far behind.
#[derive(Debug, Default)]
pub(super) struct Lead {
    since: Option<Time>,
    /// Whether the round's end was told.
    over: bool,
    pub(super) until: Option<Time>,
}

impl Center {
    /// Live peers that must go on before this one may begin the next round.
    fn laggards(&self, cx: &Context) -> Vec<PeerId> {
        let Some(lead) = self.plan.lead else {
            return Vec::new();
        };
        let next = cx.round.next().0;
        let behind = cx
            .view
            .live()
            .filter(|(_, r)| !r.probation && r.round.0.saturating_add(u64::from(lead)) < next);
        behind.map(|(id, _)| id).collect()
    }

    /// The round ends once everything is pulled and nobody is too far behind.
    pub(super) fn check_end(&mut self, cx: &mut Context) {
        let open = self.pulls.iter().any(|p| p.ending.is_none());
        if self.pulls.is_empty() || open || self.outcome.is_some() || self.lead.over {
            return;
        }
        let laggards = self.laggards(cx);
        if laggards.is_empty() {
            self.lead.over = true;
            self.stop_waiting(cx, false);
            self.outcome = Some(Outcome::Ended);
            return;
        }
        if self.lead.until.is_none() {
            let allowed = cx.deadlines.allow(Wait::Lead, laggards);
            self.lead.since = Some(cx.now);
            self.lead.until = Some(cx.wait(Wait::Lead, allowed));
        }
    }

    fn stop_waiting(&mut self, cx: &mut Context, expired: bool) {
        cx.waited(Wait::Lead, expired);
        self.lead.until = None;
    }

    /// Whoever is still too far behind is not waited for any more, until it has caught up.
    pub(super) fn lead_timeout(&mut self, cx: &mut Context) {
        if self.lead.until.is_none_or(|until| until > cx.now) {
            return;
        }
        self.stop_waiting(cx, true);
        for peer in self.laggards(cx) {
            cx.suspect(peer);
        }
    }

    /// A peer says how far it is.
    pub(super) fn heard(&mut self, cx: &mut Context, peer: PeerId) {
        let (mine, lead) = (cx.round.0, self.plan.lead);
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

    /// The round is over: a straggler that was left behind goes on where the others are, and all learn
    /// where this peer is.
    pub(super) fn end_lead(&mut self, cx: &mut Context) {
        self.stop_waiting(cx, false);
        self.lead = Lead::default();
        let Some(lead) = self.plan.lead else {
            return;
        };
        let others = cx.view.median_round();
        if others.since(cx.round) > u64::from(lead) {
            cx.round = Round(others.0 - 1);
        }
        let (round, anchor) = (cx.round.next(), cx.anchor());
        let peers: Vec<PeerId> = cx.view.greeted().map(|(id, _)| id).collect();
        for peer in peers {
            let ready = true;
            cx.send(
                peer,
                Message::Alive {
                    round,
                    ready,
                    anchor,
                },
            );
        }
    }
}
