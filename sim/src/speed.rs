//! Differences between machines: their speeds and clocks from the start, and speeds that drift, for example because
//! of other work, heat, or other tenants of a cloud machine. `fault/` changes machines while they run.

use crate::fault::Effect;
use crate::random::Random;
use crate::scenario::Scenario;
use core::time::Duration;
use murmurate_protocol::Time;

/// The offset of a machine's clock.
pub(crate) fn ahead(scenario: &Scenario, index: usize) -> Duration {
    let skew = scenario.faults.iter().find_map(|fault| match fault.effect {
        Effect::ClockSkew { ahead } if fault.peer == index => Some(ahead),
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

/// The logarithm of one machine's slowness, which varies around zero.
///
/// An Ornstein-Uhlenbeck process, drawn on demand: after dt, x <- r x + s sqrt(1 - r^2) N(0, 1)
/// with r = exp(-dt / tau), so its standard deviation is always s.
///
/// Special cases: s = 0 makes no draw and stays at zero; dt = 0 does not change it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Drift {
    at: Option<Time>,
    value: f64,
}

impl Drift {
    /// The factor by which the machine is slower than usual now.
    pub(crate) fn slowness(
        &mut self,
        now: Time,
        (deviation, time): (f64, f64),
        random: &mut Random,
    ) -> f64 {
        if deviation > 0.0 {
            let kept = self
                .at
                .map_or(0.0, |at| (-now.since(at).as_secs_f64() / time).exp());
            self.value =
                kept * self.value + deviation * (1.0 - kept * kept).sqrt() * random.normal();
            self.at = Some(now);
        }
        self.value.exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    #[test]
    fn a_drift_has_its_deviation_and_its_memory() {
        let mut random = Random::new(2, Purpose::Drift);
        let mut drift = Drift::default();
        let values: Vec<f64> = (0..20_000u64)
            .map(|s| {
                let now = Time::from_nanos(s * 1_000_000_000);
                drift.slowness(now, (0.2, 10.0), &mut random).ln()
            })
            .collect();
        let mean = |f: &dyn Fn(usize) -> f64| {
            (0..values.len() - 10).map(f).sum::<f64>() / (values.len() - 10) as f64
        };
        // 20,000 draws with a correlation over 10 are like 1,000 independent ones: standard error
        // 4.5 %.
        let variance = mean(&|i| values[i] * values[i]);
        assert!((variance / 0.04 - 1.0).abs() < 0.2, "{variance}");
        let lagged = mean(&|i| values[i] * values[i + 10]) / variance;
        assert!((lagged - (-1.0f64).exp()).abs() < 0.12, "{lagged}");
        assert_eq!(
            Drift::default().slowness(Time::ZERO, (0.0, 1.0), &mut random),
            1.0
        );
    }
}
