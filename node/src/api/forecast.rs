//! Predicts this daemon's rounds, for comparison with the measured ones, and measures these: time, inner
//! steps and bytes, from counters read at the end of each round. The arithmetic of the prediction is
//! `murmurate_strategies::plan`, which `murmurate plan` also uses; step times and link rates are those that
//! this daemon measured.

use crate::api::LinkStatus;
use murmurate_protocol::{Plan, Time};
use murmurate_strategies::grid::Strategy;
use murmurate_strategies::plan::{Cluster, Cost, Link};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::Duration;

/// Cost of one round of this daemon. The same fields hold predicted and measured values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RoundStatus {
    /// Fraction of the round's time that is spent in training, 0 to 1.
    pub utilization: f64,
    /// Duration of a round, seconds.
    pub round_s: f64,
    /// Part of the duration that is spent in inner steps, seconds.
    pub train_s: f64,
    /// Inner steps in a round.
    pub inner_steps: f64,
    /// Encoded bytes sent in a round.
    pub bytes_sent: f64,
    /// Encoded bytes received in a round.
    pub bytes_received: f64,
    /// Encoded bytes sent and received in an hour.
    pub bytes_per_hour: f64,
    /// Bytes of memory. Predicted: needed by the model and its method. Measured: resident in the process.
    pub memory_bytes: Option<f64>,
}

impl RoundStatus {
    fn new(cost: &Cost) -> Self {
        Self {
            utilization: cost.utilization,
            round_s: cost.round_s,
            train_s: cost.train_s,
            inner_steps: cost.inner_steps,
            bytes_sent: cost.bytes_up,
            bytes_received: cost.bytes_down,
            bytes_per_hour: cost.bytes_per_hour,
            memory_bytes: Some(cost.memory_bytes),
        }
    }

    /// Means over the last rounds, and the resident memory of the process.
    pub(super) fn measured(mean: &RoundMean, rss_bytes: Option<u64>) -> Self {
        // Rounds that were caught up with take no time; this avoids a division by zero.
        let round_s = mean.round_s.max(1e-9);
        Self {
            utilization: (mean.train_s / round_s).min(1.0),
            round_s,
            train_s: mean.train_s,
            inner_steps: mean.inner_steps,
            bytes_sent: mean.sent,
            bytes_received: mean.received,
            bytes_per_hour: (mean.sent + mean.received) * 3600.0 / round_s,
            memory_bytes: rss_bytes.map(|bytes| bytes as f64),
        }
    }
}

/// The measurements that a prediction starts from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Basis {
    /// Seconds of one inner step.
    pub step_s: f64,
    /// One-way latency in seconds: half the median of the links' smallest round-trip times.
    pub latency_s: f64,
    /// Bytes per second on the fastest link. All exchanges of this daemon share this rate.
    pub link_bytes_per_s: f64,
    /// Peers that exchange with each other, this one included.
    pub peers: usize,
}

/// A prediction with its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PredictedStatus {
    /// The measured inputs.
    pub from: Basis,
    /// The predicted round.
    #[serde(flatten)]
    pub round: RoundStatus,
}

/// Latency and rate of a daemon's links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Links {
    latency_s: f64,
    bytes_per_s: f64,
}

impl Links {
    /// Summarizes the links that are up. `None` until at least one of them has a rate.
    pub(super) fn of<'a>(links: impl Iterator<Item = &'a LinkStatus> + Clone) -> Option<Self> {
        let rtt = |link: &LinkStatus| link.min_rtt_s.or(link.rtt_s);
        let mut rtts: Vec<f64> = links.clone().filter_map(rtt).collect();
        rtts.sort_by(f64::total_cmp);
        let pushed = |link: &LinkStatus| link.push_bytes_per_s.map(|rate| rate as f64);
        let rate = |link: &LinkStatus| link.delivery_bytes_per_s.or_else(|| pushed(link));
        let bytes_per_s = links.filter_map(rate).fold(0.0, f64::max);
        let rtt = *rtts.get(rtts.len() / 2)?;
        (bytes_per_s > 0.0).then_some(Self {
            latency_s: rtt / 2.0,
            bytes_per_s,
        })
    }
}

/// Predicts rounds of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecaster {
    strategy: Strategy,
    plan: Plan,
    parameters: u64,
}

impl Forecaster {
    /// Keeps the run's strategy, its plan and the number of parameters of its model.
    pub fn new(strategy: Strategy, plan: Plan, parameters: u64) -> Self {
        Self {
            strategy,
            plan,
            parameters,
        }
    }

    /// The exchange has groups. Otherwise a peer exchanges with the linked peers.
    pub(super) fn has_groups(&self) -> bool {
        self.strategy.exchange().agrees()
    }

    /// Predicts a round among `peers` peers from the measured steps and links. `None` before the first inner step.
    pub(super) fn predict(
        &self,
        mean: &RoundMean,
        links: Links,
        peers: usize,
    ) -> Option<PredictedStatus> {
        let step_s = mean.train_s / mean.inner_steps;
        let step = Duration::try_from_secs_f64(step_s).ok()?;
        if step.is_zero() {
            return None;
        }
        let cluster = Cluster {
            parameters: self.parameters,
            step,
            link: Link {
                up: links.bytes_per_s,
                down: links.bytes_per_s,
                latency: Duration::try_from_secs_f64(links.latency_s).ok()?,
            },
            peers,
            // Only advice uses the target; a prediction of the cost ignores it.
            target: 0.8,
        };
        let cost = Cost::planned(&self.strategy, &self.plan, &cluster);
        Some(PredictedStatus {
            from: Basis {
                step_s,
                latency_s: links.latency_s,
                link_bytes_per_s: links.bytes_per_s,
                peers,
            },
            round: RoundStatus::new(&cost),
        })
    }
}

/// Rounds in the window. A push that is in flight when a round ends counts for the next round, so
/// the means are off by at most one round's bytes divided by this number.
const ROUNDS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mark {
    pub(super) at: Time,
    /// Seconds spent in inner steps since the start.
    pub(super) train_s: f64,
    pub(super) inner_steps: u64,
    /// Encoded bytes sent since the start.
    pub(super) sent: u64,
    /// Encoded bytes received since the start.
    pub(super) received: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RoundMean {
    pub(super) round_s: f64,
    pub(super) train_s: f64,
    pub(super) inner_steps: f64,
    pub(super) sent: f64,
    pub(super) received: f64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct RoundWindow {
    marks: VecDeque<Mark>,
}

impl RoundWindow {
    /// Adds the counters at the start of the first round or at the end of a round.
    pub(super) fn push(&mut self, mark: Mark) {
        self.marks.push_back(mark);
        if self.marks.len() > ROUNDS + 1 {
            self.marks.pop_front();
        }
    }

    /// Means over the window; `None` before the first round has ended.
    pub(super) fn mean(&self) -> Option<RoundMean> {
        let (first, last) = (self.marks.front()?, self.marks.back()?);
        let rounds = self.marks.len() - 1;
        if rounds == 0 {
            return None;
        }
        let each = |whole: f64| whole / rounds as f64;
        let between = |of: fn(&Mark) -> u64| each(of(last).saturating_sub(of(first)) as f64);
        Some(RoundMean {
            round_s: each(last.at.since(first.at).as_secs_f64()),
            train_s: each(last.train_s - first.train_s),
            inner_steps: between(|mark| mark.inner_steps),
            sent: between(|mark| mark.sent),
            received: between(|mark| mark.received),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_protocol::RunId;
    use murmurate_strategies::Layout;

    const PARAMETERS: u64 = 100_000;

    fn forecaster(preset: &str) -> Forecaster {
        let strategy = Strategy::preset(preset).unwrap();
        let layout = Layout::new([("parameters", vec![PARAMETERS])]);
        let plan = strategy.plan(RunId::from_bytes([1; 32]), &layout, 0);
        Forecaster::new(strategy.clone(), plan.unwrap(), PARAMETERS)
    }

    fn mean() -> RoundMean {
        RoundMean {
            round_s: 0.5,
            train_s: 0.4,
            inner_steps: 16.0,
            sent: 0.0,
            received: 0.0,
        }
    }

    const LINKS: Links = Links {
        latency_s: 0.01,
        bytes_per_s: 6e6,
    };

    #[test]
    fn an_all_reduce_is_predicted_from_what_was_measured() {
        let predicted = forecaster("local-sgd").predict(&mean(), LINKS, 4).unwrap();
        assert_eq!((predicted.from.step_s, predicted.from.peers), (0.025, 4));
        // 3/4 of 400 kB each way, twice, at 6 MB/s, plus five latencies, in addition to the
        // training.
        let round = predicted.round;
        assert!((round.bytes_sent / 6e5 - 1.0).abs() < 2e-3, "{round:?}");
        assert!((round.train_s - 0.4).abs() < 1e-9, "{round:?}");
        assert!((round.round_s - 0.55).abs() < 2e-3, "{round:?}");
        assert!((round.utilization - 0.4 / round.round_s).abs() < 1e-9);
    }

    #[test]
    fn nothing_is_predicted_before_anything_was_measured() {
        let untrained = RoundMean {
            train_s: 0.0,
            inner_steps: 0.0,
            ..mean()
        };
        assert_eq!(forecaster("diloco").predict(&untrained, LINKS, 4), None);
        assert_eq!(Links::of(std::iter::empty()), None);
        assert_eq!(Links::of([LinkStatus::default()].iter()), None);
    }

    #[test]
    fn links_are_taken_at_the_median_latency_and_the_highest_rate() {
        let link = |min_rtt_s, delivery| LinkStatus {
            min_rtt_s: Some(min_rtt_s),
            delivery_bytes_per_s: delivery,
            push_bytes_per_s: Some(10),
            ..LinkStatus::default()
        };
        let links = [
            link(0.1, Some(2e6)),
            link(0.04, None),
            link(0.02, Some(1e6)),
        ];
        let expected = Links {
            latency_s: 0.02,
            bytes_per_s: 2e6,
        };
        assert_eq!(Links::of(links.iter()), Some(expected));
    }

    #[test]
    fn the_measured_share_is_that_of_training() {
        let round = RoundStatus::measured(&mean(), Some(7));
        assert!((round.utilization - 0.8).abs() < 1e-9);
        assert_eq!(round.memory_bytes, Some(7.0));
    }

    fn mark(second: u64) -> Mark {
        Mark {
            at: Time::from_nanos(second * 1_000_000_000),
            train_s: 0.25 * second as f64,
            inner_steps: 10 * second,
            sent: 100 * second,
            received: 50 * second,
        }
    }

    #[test]
    fn a_mean_needs_a_round_and_forgets_old_ones() {
        let mut window = RoundWindow::default();
        assert_eq!(window.mean(), None);
        window.push(mark(0));
        assert_eq!(window.mean(), None);
        // Only the first round was slow.
        (100..300).for_each(|second| window.push(mark(second)));
        let expected = RoundMean {
            round_s: 1.0,
            train_s: 0.25,
            inner_steps: 10.0,
            sent: 100.0,
            received: 50.0,
        };
        assert_eq!(window.mean(), Some(expected));
    }
}
