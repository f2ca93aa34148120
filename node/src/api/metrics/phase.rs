//! The phase of the round, as one metric for each phase.

use murmurate_protocol::Phase;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// All phases.
const PHASES: [Phase; 10] = [
    Phase::New,
    Phase::Join,
    Phase::Train,
    Phase::Exchange,
    Phase::Apply,
    Phase::Settle,
    Phase::Paused,
    Phase::Finished,
    Phase::Leaving,
    Phase::Left,
];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PhaseLabel {
    phase: String,
}

/// Registers 1 for the phase with this name, and 0 for the others.
pub(super) fn register(registry: &mut Registry, now: &str) {
    let family = Family::<PhaseLabel, Gauge>::default();
    for phase in PHASES.map(|phase| phase.to_string()) {
        let here = i64::from(phase == now);
        family.get_or_create(&PhaseLabel { phase }).set(here);
    }
    let help = "The phase of the round: 1 for the current one";
    registry.register("phase", help, family);
}
