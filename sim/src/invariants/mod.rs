//! The invariants, checked after every input of every peer.
//!
//! Each check costs a few operations on one peer, so a thousand peers stay fast.

mod bounded;
mod data_once;
mod edges_agree;
mod mass_conserved;
mod merged_by_weight;
mod rounds_monotonic;
mod same_bits;
mod same_steps;
mod sums_whole;

use crate::data::DataReport;
use crate::fault::{Effect, Fault};
use crate::host::Host;
use crate::recipe::Recipe;
use crate::scenario::Scenario;
use bounded::{InboxBounded, LeadBounded};
use core::time::Duration;
use data_once::DataOnce;
use edges_agree::EdgesAgree;
use mass_conserved::MassConserved;
use merged_by_weight::MergedByWeight;
use murmurate_protocol::{Event, Input, Order, PeerId, Plan, Round, SliceMeta, Tag, Time};
use rounds_monotonic::RoundsMonotonic;
use same_bits::SameBits;
use same_steps::{SameRatings, SameSteps};
use sums_whole::SumsWhole;

#[derive(Debug)]
pub(crate) struct Checks {
    rounds: RoundsMonotonic,
    /// How long each machine stands still in all: its waits may be longer by that.
    pauses: Vec<Duration>,
    inboxes: InboxBounded,
    mass: Option<MassConserved>,
    bits: Option<SameBits>,
    steps: Option<SameSteps>,
    ratings: Option<SameRatings>,
    lead: Option<LeadBounded>,
    ids: Vec<PeerId>,
    edges: Option<EdgesAgree>,
    branches: Option<MergedByWeight>,
    data: Option<DataOnce>,
    sums: Option<SumsWhole>,
    plan: Plan,
}

impl Checks {
    /// The checks that apply to a scenario's exchange.
    pub(crate) fn new(scenario: &Scenario, recipe: &Recipe<'_>) -> Self {
        let exchange = recipe.plan().exchange;
        let signed = recipe.plan().agreement.signs();
        let together = signed && !scenario.faults.iter().any(Fault::parts_for_long);
        let joins = |fault: &&Fault| matches!(fault.effect, Effect::Join);
        let at_first = scenario.peers - scenario.faults.iter().filter(joins).count();
        Self {
            rounds: RoundsMonotonic::new(scenario.peers),
            pauses: paused(scenario),
            inboxes: InboxBounded::new(recipe.plan(), scenario.peers),
            mass: exchange
                .facts()
                .has_mass
                .then(|| MassConserved::new(scenario.peers)),
            bits: exchange
                .agrees()
                .then(|| SameBits::new(together.then_some(at_first))),
            steps: follows_measures(recipe.plan()).then(SameSteps::default),
            ratings: recipe.plan().scores().then(SameRatings::default),
            lead: exchange.lead().map(|lead| LeadBounded::new(lead.most)),
            ids: (0..scenario.peers).map(|index| recipe.id(index)).collect(),
            edges: exchange.facts().has_edges.then(EdgesAgree::default),
            branches: (!scenario.is_timing_only()).then(|| MergedByWeight::new(recipe.plan())),
            data: scenario.data.map(DataOnce::new),
            sums: (recipe.plan().agreement)
                .whole
                .then(|| SumsWhole::new(usize::from(recipe.plan().agreement.contributions))),
            plan: recipe.plan().clone(),
        }
    }

    /// Notes the start of a machine.
    pub(crate) fn joined(&mut self, index: usize) {
        self.rounds.reset(index);
    }

    /// Notes the loss of a machine with everything that it held.
    pub(crate) fn gone(&mut self, index: usize, peer: PeerId) {
        if let Some(edges) = &mut self.edges {
            edges.gone(peer);
        }
        self.rounds.reset(index);
        if let Some(data) = &mut self.data {
            data.gone(peer);
        }
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

    /// Notes an input. Some inputs change the weight of a peer without a transfer: a state taken
    /// over, a slice that was rejected.
    pub(crate) fn handled(&mut self, index: usize, host: &Host, rebases: bool) {
        if let Some(mass) = self.mass.as_mut().filter(|_| rebases) {
            mass.rebase(index, host.mass());
        }
    }

    /// Set for inputs that may change the weight of a peer without a transfer.
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

    /// Notes that a peer gives up a round.
    pub(crate) fn voided(&mut self, index: usize, round: Round) {
        if let Some(bits) = &mut self.bits {
            bits.voided(index, round);
        }
    }

    /// Notes the start of a push. Returns the mass that is in flight until it arrives.
    pub(crate) fn mass_leaves(&mut self, meta: &SliceMeta) -> f64 {
        match (&mut self.mass, meta.tag) {
            (Some(mass), Tag::Mass { weight }) => mass.leaves(weight),
            _ => 0.0,
        }
    }

    /// Notes mass that arrives or returns to its sender.
    pub(crate) fn mass_lands(&mut self, landed: f64) {
        if let Some(mass) = &mut self.mass {
            mass.lands(landed);
        }
    }

    /// Notes mass that is lost with a dead machine or link.
    pub(crate) fn mass_vanishes(&mut self, vanished: f64) {
        if let Some(mass) = &mut self.mass {
            mass.vanishes(vanished);
        }
    }

    pub(crate) fn hear(&mut self, index: usize, event: &Event) -> Result<(), String> {
        bounded::check_wait(event, self.pauses[index])?;
        match &mut self.bits {
            Some(bits) => bits.check(index, event),
            None => Ok(()),
        }
    }

    pub(crate) fn worked(&mut self, index: usize, host: &mut Host, order: &Order) {
        if let Some(data) = &mut self.data {
            data.worked(&self.plan, self.ids[index], host, order);
        }
        if let Some(sums) = &mut self.sums {
            sums.worked(self.ids[index], order);
        }
    }

    /// Training of data that the machines divide.
    pub(crate) fn data(&self) -> Option<DataReport> {
        self.data.as_ref().map(DataOnce::report)
    }

    /// Notes the branch that a peer brings into a merge.
    pub(crate) fn brings(&mut self, index: usize, round: Round, host: &Host) {
        if let Some(branches) = &mut self.branches {
            branches.brings(self.ids[index], round, host);
        }
    }

    pub(crate) fn merged(
        &mut self,
        index: usize,
        host: &Host,
        event: &Event,
    ) -> Result<(), String> {
        if let (Some(data), Event::RoundEnded { .. }) = (&mut self.data, event) {
            data.opens(host)?;
        }
        match &mut self.branches {
            Some(branches) => branches.check(self.ids[index], host, event),
            None => Ok(()),
        }
    }

    /// Checks a peer after an input and all its outputs. `timed_out` says that the input was a
    /// deadline.
    pub(crate) fn after(
        &mut self,
        (index, me): (usize, PeerId),
        host: &Host,
        timed_out: Option<Time>,
    ) -> Result<(), String> {
        let joins = !host.peer.has_begun();
        self.rounds.check(index, host.peer.round(), joins)?;
        self.inboxes.check(host)?;
        if let Some(steps) = &mut self.steps {
            steps.check(&host.peer)?;
        }
        if let Some(ratings) = &mut self.ratings {
            ratings.check(&host.peer)?;
        }
        if let Some(lead) = &mut self.lead {
            lead.check(self.ids[index], &host.peer)?;
        }
        if let Some(now) = timed_out {
            bounded::check_deadline(host.peer.poll_timeout(), now)?;
        }
        if let Some(sums) = &self.sums {
            sums.check()?;
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

/// How long each machine of a scenario stands still.
fn paused(scenario: &Scenario) -> Vec<Duration> {
    let mut sums = vec![Duration::ZERO; scenario.peers];
    for fault in &scenario.faults {
        if let Effect::Pause { lasts } = fault.effect {
            sums[fault.peer] += lasts;
        }
    }
    sums
}

/// Set if inner steps or the codec of rounds follow from what members agree on.
fn follows_measures(plan: &Plan) -> bool {
    plan.synchronization.pace.is_agreed() || plan.chooses_codecs()
}
