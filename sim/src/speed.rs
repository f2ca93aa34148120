//! Differences between machines from the start: their speeds and clocks. `drift.rs` and `fault/`
//! change machines while they run.

use crate::fault::Fault;
use crate::random::Random;
use crate::scenario::Scenario;
use core::time::Duration;

/// The offset of a machine's clock.
pub(crate) fn ahead(scenario: &Scenario, index: usize) -> Duration {
    let skew = scenario.faults.iter().find_map(|fault| match fault {
        Fault::ClockSkew { peer, ahead } if *peer == index => Some(*ahead),
        _ => None,
    });
    skew.unwrap_or_default()
}

/// The factor by which a machine is slower than the scenario's inner step.
pub(crate) fn slowness(scenario: &Scenario, index: usize, setup: &mut Random) -> f64 {
    let speeds = &scenario.compute.speeds;
    let dealt = if speeds.is_empty() {
        1.0
    } else {
        speeds[index % speeds.len()]
    };
    let spread = scenario.compute.spread;
    let drawn = if spread > 0.0 {
        1.0 + spread * setup.unit()
    } else {
        1.0
    };
    drawn / dealt
}
