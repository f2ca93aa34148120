//! A branch that another state replaces: it is saved first.

use super::lag::{CatchUp, Offer};
use crate::core::{Event, Phase};
use crate::peer::Peer;
use crate::{Branch, Done, Order, PeerId};
use std::collections::BTreeSet;

impl Peer {
    /// Peers of another branch may have come: notes it, and stops for a merge as soon as this peer's
    /// work allows.
    pub(super) fn look_for_branches(&mut self) {
        let here = self.cx.view.apart().next().is_some();
        if self.cx.view.split.apart(here, self.cx.now)
            && let Some(branch) = self.cx.branch()
        {
            let round = self.cx.round;
            self.cx.emit(Event::BranchesMet {
                round,
                base: branch.began(),
                weight: branch.weight,
            });
        }
        if self.cx.branch().is_none() {
            // They have been here for too long without a merge.
            let round = self.cx.round;
            let given_up = true;
            self.cx.emit(Event::NotMerged { round, given_up });
            self.cx.sort_sides();
            return;
        }
        if !here || !self.exchange.merge_is_due(&self.cx) {
            return;
        }
        // Otherwise it stops when the round's training or its exchange ends.
        if matches!(self.phase, Phase::Finished | Phase::Paused) {
            self.merge();
        }
    }

    /// The branch that it is in since it lost peers to a split, and how many are missing from it.
    pub fn branch(&self) -> Option<(Branch, usize)> {
        let split = &self.cx.view.split;
        let branch = split.branch()?;
        Some((branch, split.missing().count()))
    }

    /// Whether peers of another branch are linked.
    pub fn meets_another_branch(&self) -> bool {
        self.cx.view.apart().next().is_some()
    }

    /// The branch whose state is lost when this peer takes over another one: none while the peers that
    /// are missing from it are away, because then the other state is of the same branch.
    fn replaced_branch(&self) -> Option<Branch> {
        let split = &self.cx.view.split;
        let back = |id: PeerId| {
            let remote = self.cx.view.get(id);
            remote.is_some_and(|r| r.linked && r.greeted)
        };
        let branch = split.branch().filter(|branch| branch.weight > 0.0);
        branch.filter(|_| split.missing().any(back))
    }

    /// A state is here: loads it, and saves this peer's branch before that if it has one.
    pub(super) fn load_or_keep(&mut self, offer: Offer, donors: Vec<PeerId>) {
        if self.replaced_branch().is_none() {
            self.load(offer, donors);
            return;
        }
        let (round, snapshot) = (self.cx.round, self.snapshot());
        let order = Order::SaveBranch { round, snapshot };
        let order = self.cx.order(order);
        self.catch_up = CatchUp::Keeping(order, offer, donors);
    }

    /// The branch is saved. Without it the peer goes on too: it cannot stay with a state of its own.
    pub(super) fn branch_kept(&mut self, done: &Done) {
        match (done, self.cx.view.split.branch()) {
            (Done::Saved, Some(branch)) => {
                let (round, weight) = (self.cx.round, branch.weight);
                self.cx.emit(Event::BranchSaved { round, weight });
            }
            (Done::Saved, None) => {}
            (other, _) => self.report_failure(other),
        }
    }

    pub(super) fn load(&mut self, offer: Offer, donors: Vec<PeerId>) {
        let state = offer.state;
        let order = self.cx.order(Order::Load { state });
        self.catch_up = CatchUp::Loading(order, offer, donors);
    }

    /// Another state has replaced this peer's. If it is of the same side, so is its branch.
    pub(super) fn leave_branch(&mut self) {
        let CatchUp::Loading(_, _, donors) = &self.catch_up else {
            return;
        };
        let view = &self.cx.view;
        let branch_of = |id: &PeerId| {
            view.get(*id)
                .and_then(|remote| remote.contact.branch.as_deref().copied())
        };
        let mut of_donors = donors.iter().filter(|id| !view.split.misses(**id));
        let theirs = of_donors.find_map(branch_of);
        let theirs = theirs.filter(|_| self.replaced_branch().is_none());
        let own = view.split.branch();
        let away = |id: &PeerId| view.get(*id).is_none_or(|r| !r.linked);
        let missing: BTreeSet<PeerId> = view.split.known().filter(away).collect();
        match (theirs, own) {
            (Some(theirs), Some(own)) if theirs.meets(&own) => {
                self.cx.view.split.took_over(&theirs);
            }
            (theirs, _) => {
                self.cx.view.split.forget();
                if let Some(theirs) = theirs {
                    self.cx.view.split.adopt(&theirs, missing);
                }
            }
        }
        self.cx.sort_sides();
    }
}
