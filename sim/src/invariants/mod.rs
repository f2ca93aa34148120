//! What must always hold, checked after every input of every peer.
//!
//! Each check is one file and costs a few operations on the peer at hand, so that a thousand peers
//! stay fast.

mod edges_agree;
mod inbox_bounded;
mod lead_bounded;
mod mass_conserved;
mod rounds_monotonic;
mod same_bits;
mod waits_bounded;

use crate::host::Host;
use crate::recipe::Recipe;
use crate::scenario::Scenario;
use edges_agree::EdgesAgree;
use inbox_bounded::InboxBounded;
use lead_bounded::LeadBounded;
use mass_conserved::MassConserved;
use murmurate_protocol::{Event, Input, PeerId, Round, SliceMeta, Time};
use rounds_monotonic::RoundsMonotonic;
use same_bits::SameBits;

/// An invariant that did not hold, with all that is needed to see it again.
#[derive(Clone, Debug, thiserror::Error)]
#[error("seed {seed}, {at}, peer {peer}: {what}\n  {}", trace.join("\n  "))]
pub struct Violation {
    /// The scenario's seed.
    pub seed: u64,
    /// Virtual time.
    pub at: Time,
    /// The machine whose input broke it.
    pub peer: usize,
    /// What does not hold.
    pub what: String,
    /// The last inputs and outputs of the swarm, oldest first.
    pub trace: Vec<String>,
}

/// All checks of one run.
#[derive(Debug)]
pub(crate) struct Checks {
    rounds: RoundsMonotonic,
    inboxes: InboxBounded,
    mass: Option<MassConserved>,
    bits: Option<SameBits>,
    lead: Option<LeadBounded>,
    ids: Vec<PeerId>,
    edges: Option<EdgesAgree>,
}

impl Checks {
    /// The checks that a scenario's exchange can satisfy.
    pub(crate) fn new(scenario: &Scenario, recipe: &Recipe<'_>) -> Self {
        let exchange = recipe.plan().exchange;
        Self {
            rounds: RoundsMonotonic::new(scenario.peers),
            inboxes: InboxBounded::new(recipe.plan(), scenario.peers),
            mass: exchange
                .has_mass()
                .then(|| MassConserved::new(scenario.peers)),
            bits: exchange.agrees().then(SameBits::new),
            lead: exchange.lead().map(|lead| LeadBounded::new(lead.most)),
            ids: (0..scenario.peers).map(|index| recipe.id(index)).collect(),
            edges: exchange.facts().has_edges.then(EdgesAgree::default),
        }
    }

    /// A machine starts.
    pub(crate) fn joined(&mut self, index: usize) {
        self.rounds.reset(index);
    }

    /// A machine is gone with all that it held.
    pub(crate) fn gone(&mut self, index: usize, peer: PeerId) {
        if let Some(edges) = &mut self.edges {
            edges.gone(peer);
        }
        self.rounds.reset(index);
        if let Some(bits) = &mut self.bits {
            bits.gone(index);
        }
        if let Some(lead) = &mut self.lead {
            lead.gone(self.ids[index]);
        }
        if let Some(mass) = &mut self.mass {
            mass.rebase(index, 0.0);
        }
    }

    /// An input was handed in. Some of them change what a peer holds by more than what moves: a
    /// state taken over, a slice turned away.
    pub(crate) fn handled(&mut self, index: usize, host: &Host, rebases: bool) {
        if let Some(mass) = self.mass.as_mut().filter(|_| rebases) {
            mass.rebase(index, host.mass());
        }
    }

    /// Whether an input may change what a peer holds beyond what moves.
    pub(crate) fn rebases(input: &Input) -> bool {
        use murmurate_protocol::Done;
        matches!(
            input,
            Input::Start { .. }
                | Input::Done {
                    done: Done::Loaded { .. } | Done::Failed(_),
                    ..
                }
                | Input::Leave
        )
    }

    /// A peer gives a round up.
    pub(crate) fn voided(&mut self, index: usize, round: Round) {
        if let Some(bits) = &mut self.bits {
            bits.voided(index, round);
        }
    }

    /// A push leaves: gives the mass that nobody holds until it lands.
    pub(crate) fn mass_leaves(&mut self, meta: &SliceMeta) -> f64 {
        self.mass
            .as_mut()
            .map_or(0.0, |mass| mass.leaves(meta.weight))
    }

    /// Mass arrives, or comes back to its sender.
    pub(crate) fn mass_lands(&mut self, landed: f64) {
        if let Some(mass) = &mut self.mass {
            mass.lands(landed);
        }
    }

    /// Mass is lost with a dead machine or link.
    pub(crate) fn mass_vanishes(&mut self, vanished: f64) {
        if let Some(mass) = &mut self.mass {
            mass.vanishes(vanished);
        }
    }

    /// A peer told something.
    pub(crate) fn hear(&mut self, index: usize, event: &Event) -> Result<(), String> {
        waits_bounded::check(event)?;
        match &mut self.bits {
            Some(bits) => bits.check(index, event),
            None => Ok(()),
        }
    }

    /// An input and all of its outputs are done; `timed_out` when the input was that a deadline
    /// had passed by then.
    pub(crate) fn after(
        &mut self,
        (index, me): (usize, PeerId),
        host: &Host,
        timed_out: Option<Time>,
    ) -> Result<(), String> {
        self.rounds.check(index, host.peer.round())?;
        self.inboxes.check(host)?;
        if let Some(lead) = &mut self.lead {
            lead.check(self.ids[index], &host.peer)?;
        }
        if let Some(now) = timed_out {
            waits_bounded::check_deadline(host.peer.poll_timeout(), now)?;
        }
        if let Some(edges) = &mut self.edges {
            edges.check(me, &host.peer.standings())?;
        }
        match &mut self.mass {
            Some(mass) => mass.check(index, host.mass()),
            None => Ok(()),
        }
    }
}
