//! What a peer shows to its host.

use crate::core::{Phase, View};
use crate::exchange::Standing;
use crate::peer::Peer;
use crate::{Digest, GroupTag, Plan, Round};

impl Peer {
    /// Where this peer is in its round.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The round this peer is in.
    pub fn round(&self) -> Round {
        self.cx.round
    }

    /// Whether it has begun its first round in this life.
    pub fn has_begun(&self) -> bool {
        self.life.once.begun
    }

    /// The group of the round, where the exchange has one and it has formed.
    pub fn group(&self) -> Option<GroupTag> {
        self.exchange.group()
    }

    /// The peers this peer knows.
    pub fn view(&self) -> &View {
        &self.cx.view
    }

    /// Whether it has a place in a roll.
    pub fn has_place(&self) -> bool {
        self.sits()
    }

    /// The plan it follows.
    pub fn plan(&self) -> &Plan {
        &self.cx.plan
    }

    /// One hash over all fragments of the parameters that open this round.
    pub fn digest(&self) -> Digest {
        self.cx.anchor()
    }

    /// Whether it takes part in rounds.
    pub fn ready(&self) -> bool {
        match self.phase {
            _ if self.life.once.observes => false,
            Phase::New | Phase::Leaving | Phase::Left => false,
            Phase::Join => self.cx.round == Round(0) && self.catch_up.idle(),
            _ => true,
        }
    }

    /// Push-sum weights, fragment by fragment; empty except in gossip.
    pub fn weights(&self) -> Vec<f64> {
        self.exchange.push_sum().weights
    }

    /// Push-sum weight that is pushed and unacknowledged, and that arrived and is not mixed.
    pub fn weight_in_flight(&self) -> (f64, f64) {
        let mass = self.exchange.push_sum();
        (mass.pushed, mass.waiting)
    }

    /// Push-sum weight that is this peer's, over all fragments: in its parameters, its inbox, or
    /// on its way back into them. Pushed weight does not count, unless it is known to be lost.
    pub fn weight_held(&self) -> f64 {
        self.exchange.push_sum().held
    }

    /// How far it is with each neighbour and fragment; empty except in exchanges between two.
    pub fn standings(&self) -> Vec<Standing> {
        self.exchange.standings()
    }

    /// Slices and messages that wait for their round: bounded by `limits`.
    pub fn inbox_len(&self) -> usize {
        self.exchange.waiting()
    }
}
