//! What the owner of the run has directed, as `/status` shows it.

use crate::directive::{DirectiveStatus, codec_name};
use murmurate_protocol::{Change, Directive, InForce, Pace, Peer, Phase, Plan, StepBudget};
use murmurate_strategies::grid::rung_words;
use serde::{Deserialize, Serialize};

/// Directives of the run's owner, and what follows from them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ControlStatus {
    /// The owner has paused the run: this daemon begins no round.
    pub paused: bool,
    /// The round from which on the run pauses, if it does in the present round.
    pub paused_from: Option<u64>,
    /// Inner steps of the present round, where a round is a number of them.
    pub inner_steps: Option<u32>,
    /// The training loss of the last round with a result, where inner steps follow from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreed_loss: Option<f64>,
    /// Inner steps for which an exchange holds training up, where inner steps or the codec follow from that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreed_wait: Option<f64>,
    /// The codec that the members have chosen for the present round, where they choose it. One of the owner goes
    /// before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreed_codec: Option<String>,
    /// The fewest inner steps that the strategy takes; null where their number cannot be changed.
    pub inner_steps_least: Option<u32>,
    /// The factor on the learning rate in the present round.
    pub learning_rate: f64,
    /// The codec of contributions in the present round.
    pub codec: String,
    /// The codecs that can take its place, and the configured one first; none where it cannot be changed.
    pub codecs: Vec<String>,
    /// The round at which the configured schedule of the learning rate ends, if there is one. Another number
    /// of rounds does not move it.
    pub rate_ends: Option<f64>,
    /// The directives that count now or later, in their order.
    pub directives: Vec<DirectiveStatus>,
}

impl ControlStatus {
    pub(crate) fn of(peer: &Peer) -> Self {
        let round = peer.round();
        let all = peer.directives();
        let in_force = peer.in_force();
        let shown = |directive: &Directive| {
            let state = match () {
                () if !fits(peer, directive) => "refused",
                () if directive.from > round => "pending",
                () if all.is_in_force(directive, round) => "in force",
                () => "over",
            };
            DirectiveStatus::new(directive, state)
        };
        Self {
            paused: peer.phase() == Phase::Paused,
            paused_from: all.in_force(round).paused.map(|round| round.0),
            inner_steps: match peer.budget() {
                StepBudget::Steps(steps) => Some(steps),
                StepBudget::Time(_) => None,
            },
            agreed_loss: said(peer, |pace| matches!(pace, Pace::Loss { .. })),
            agreed_wait: said(peer, |pace| matches!(pace, Pace::Measured { .. })).or(wait(peer)),
            agreed_codec: peer.chosen_codec().map(|rung| rung_words(&rung)),
            inner_steps_least: inner_steps_least(peer.plan()),
            learning_rate: in_force.training.rate.get(),
            codec: codec_in_force(peer, in_force),
            // The observer knows the configuration.
            codecs: Vec::new(),
            rate_ends: None,
            directives: all.iter().map(shown).collect(),
        }
    }
}

/// The codec of the round: that of the owner, or the one that the members have chosen; empty where neither has.
fn codec_in_force(peer: &Peer, in_force: &InForce) -> String {
    let directed = in_force.training.codec.map(codec_name);
    let chosen = || Some(codec_name(peer.chosen_codec()?.tag));
    directed.or_else(chosen).unwrap_or_default()
}

/// Last agreed value of runs with such a pace.
fn said(peer: &Peer, of: impl Fn(Pace) -> bool) -> Option<f64> {
    let losses = peer.losses().filter(|_| of(peer.configured_pace()))?;
    Some(losses.last()?.value())
}

/// The wait that members agree on where they choose the codec by it.
fn wait(peer: &Peer) -> Option<f64> {
    Some(peer.chosen()?.last()?.value())
}

/// The peer can carry out a directive. Pauses and numbers of rounds fit every plan.
fn fits(peer: &Peer, directive: &Directive) -> bool {
    match directive.change {
        Change::InnerSteps(steps) => takes(peer.plan(), steps),
        _ => true,
    }
}

/// Rounds of a plan can have this number of inner steps.
fn takes(plan: &Plan, steps: u32) -> bool {
    let mut asked = InForce::default();
    asked.training.inner_steps = Some(steps);
    asked.applied_to(plan).is_ok()
}

/// The fewest inner steps of a plan that takes more than one number of them.
fn inner_steps_least(plan: &Plan) -> Option<u32> {
    let least = plan.overlap.late_steps.max(1);
    (takes(plan, least) && takes(plan, least + 1)).then_some(least)
}
