//! The phase of the round and what is wrong, as one metric for each phase and each trouble.

use crate::api::{Trouble, TroubleKind};
use murmurate_protocol::Phase;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PhaseLabel {
    phase: String,
}

/// Registers 1 for the phase with this name, and 0 for the others.
pub(super) fn register(registry: &mut Registry, now: &str) {
    let family = Family::<PhaseLabel, Gauge>::default();
    for phase in Phase::ALL.map(|phase| phase.to_string()) {
        let here = i64::from(phase == now);
        family.get_or_create(&PhaseLabel { phase }).set(here);
    }
    let help = "The phase of the round: 1 for the current one";
    registry.register("phase", help, family);
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TroubleLabel {
    kind: &'static str,
}

/// Registers 1 for each kind of trouble that there is, and 0 for the others.
pub(super) fn register_troubles(registry: &mut Registry, now: &[Trouble]) {
    let family = Family::<TroubleLabel, Gauge>::default();
    for kind in TroubleKind::ALL {
        let here = i64::from(now.iter().any(|trouble| trouble.kind == kind));
        family
            .get_or_create(&TroubleLabel { kind: kind.word() })
            .set(here);
    }
    let help = "What is wrong: 1 for each trouble that `murmurate why` tells of now";
    registry.register("trouble", help, family);
}
