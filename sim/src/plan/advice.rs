//! Advice on a preset on a cluster: the verdict, the reason, and changes that would help.
//!
//! The advice considers, in this order: the ratio of computing to exchanged bytes; rarer exchanges,
//! as far as they are known to cost little quality; smaller exchanges on the slowest link; and
//! fewer peers if all of that is not enough.

use murmurate_protocol::{Contribution, StepBudget};
use murmurate_strategies::grid::registry::CODECS;
use murmurate_strategies::grid::{Strategy, StrategyError};
use murmurate_strategies::plan::{Cluster, Cost};
use serde::Serialize;

/// Inner steps of a round up to which DiLoCo loses little quality (Douillard et al. 2023, arXiv
/// 2311.08105: 2.9 % perplexity between 50 and 1000).
const INNER_STEPS_MAX: f64 = 500.0;

/// Advice on a preset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Verdict {
    /// Exchanges nothing; the baseline of the others.
    Yardstick,
    /// Advised as it is.
    Advised,
    /// Advised with the changes in the reason.
    AdvisedWith,
    /// Advised with fewer peers, because all together are slower.
    FewerPeers,
    /// Not advised on this cluster.
    NotAdvised,
}

/// A verdict with its reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// The verdict.
    pub verdict: Verdict,
    /// The reason, in one line.
    pub reason: String,
    /// Configuration to apply to the preset, if changes are advised.
    pub changes: Option<String>,
    /// The cost with these changes.
    pub changed: Option<Cost>,
    /// The number of peers with the most inner steps per second, if that is not all of them.
    pub fewer_peers: Option<usize>,
}

impl Advice {
    /// Advises on a strategy with this cost.
    ///
    /// # Errors
    /// If a changed strategy cannot be planned.
    pub fn of(strategy: &Strategy, cost: &Cost, cluster: &Cluster) -> Result<Self, StrategyError> {
        let plain = |verdict, reason: String| Self {
            verdict,
            reason,
            changes: None,
            changed: None,
            fewer_peers: None,
        };
        if !strategy.exchange().facts().exchanges {
            let reason = "peers learn nothing from each other: the baseline of utilization";
            return Ok(plain(Verdict::Yardstick, reason.to_owned()));
        }
        if cluster.peers == 1 {
            let reason = "a single peer has no other to exchange with: use `none`";
            return Ok(plain(Verdict::NotAdvised, reason.to_owned()));
        }
        let waits = deadline_note(strategy, cost);
        let idle = format!(
            "{} of {} a round go into the exchange",
            seconds(cost.idle_s()),
            seconds(cost.round_s)
        );
        let overload = format!(
            "each round sends what the link carries in {}, and lasts {}",
            seconds(carried_s(cost, cluster)),
            seconds(cost.round_s)
        );
        let carried = is_carried(cost, cluster);
        let problem = if carried { &idle } else { &overload };
        if reaches(cost, cluster) {
            return Ok(plain(Verdict::Advised, format!("only {idle}{waits}")));
        }
        if let Some((changes, cost)) = changed(strategy, cost, cluster)? {
            let reason = format!(
                "as it is, {problem}; with {} it trains {:.0} % of the time{}",
                changes.words,
                100.0 * cost.utilization,
                deadline_note(strategy, &cost)
            );
            return Ok(Self {
                verdict: Verdict::AdvisedWith,
                reason,
                changes: Some(changes.toml),
                changed: Some(cost),
                fewer_peers: None,
            });
        }
        let fewer = fewer_peers(strategy, cost, cluster)?;
        let intensity = format!(
            "one inner step computes for {} what takes {} to exchange",
            seconds(cluster.step.as_secs_f64()),
            seconds(cluster.exchange_seconds_f32())
        );
        let fewer_peers = |peers, words: &str| Self {
            fewer_peers: Some(peers),
            ..plain(Verdict::FewerPeers, format!("{intensity}: {words}"))
        };
        Ok(match fewer {
            Some(1) => fewer_peers(1, "one peer alone takes more inner steps a second"),
            Some(peers) => fewer_peers(
                peers,
                &format!("{peers} peers take more inner steps a second than all"),
            ),
            None if carried => plain(Verdict::NotAdvised, format!("{intensity}: {idle}{waits}")),
            None => plain(Verdict::NotAdvised, overload),
        })
    }
}

/// Seconds that the link takes for the bytes of a round.
fn carried_s(cost: &Cost, cluster: &Cluster) -> f64 {
    let (up, down) = (cluster.link.up, cluster.link.down);
    (cost.bytes_up / up).max(cost.bytes_down / down)
}

/// Set if the link carries the bytes of a round while the round lasts. A peer that pushes without
/// waiting can make more.
fn is_carried(cost: &Cost, cluster: &Cluster) -> bool {
    // The times of some exchanges are these bytes over this rate: the same number, but for rounding.
    carried_s(cost, cluster) <= cost.round_s * (1.0 + 1e-9)
}

/// Set if a strategy of this cost trains enough, and sends no more than the link carries.
fn reaches(cost: &Cost, cluster: &Cluster) -> bool {
    cost.utilization >= cluster.target && is_carried(cost, cluster)
}

/// The `deadlines.ceiling_ms` that the exchange needs, if the strategy's own is too low. A push ends at
/// its deadline, so a slower one never arrives.
pub(super) fn ceiling_ms(strategy: &Strategy, cost: &Cost) -> Option<u64> {
    let ceiling = strategy.deadlines().ceiling.as_secs_f64();
    (cost.exchange_s > ceiling).then(|| (1.5 * cost.exchange_s * 1e3).ceil() as u64)
}

fn deadline_note(strategy: &Strategy, cost: &Cost) -> String {
    ceiling_ms(strategy, cost).map_or_else(String::new, |ms| {
        format!("; needs deadlines.ceiling_ms of {ms} or more")
    })
}

/// Keys to apply to a preset.
struct Changes {
    toml: String,
    words: String,
}

/// The smallest change that reaches the target: first rarer exchanges, then each codec in the order
/// of the registry, with exchanges as rare as that codec needs.
fn changed(
    strategy: &Strategy,
    cost: &Cost,
    cluster: &Cluster,
) -> Result<Option<(Changes, Cost)>, StrategyError> {
    for codec in [None]
        .into_iter()
        .chain(CODECS.iter().map(|c| Some(c.name)))
    {
        if codec == Some(strategy.codec_kind().name()) {
            continue;
        }
        let coded = codec.map_or_else(String::new, |name| {
            format!("[compression]\ncodec = \"{name}\"\n")
        });
        let Some(smaller) = variant(strategy, &coded, cluster)? else {
            continue;
        };
        // A codec that does not reduce the bytes does not help.
        if codec.is_some() && smaller.bytes_up >= cost.bytes_up {
            continue;
        }
        let named = codec.map(|name| format!("codec {name}"));
        if codec.is_some() && reaches(&smaller, cluster) {
            let words = named.unwrap_or_default();
            return Ok(Some((Changes { toml: coded, words }, smaller)));
        }
        let (rarer, StepBudget::Steps(_)) = (can_be_rarer(strategy), strategy.budget()) else {
            continue;
        };
        // u = H t / (H t + idle) >= target, solved for H.
        let step = cluster.step.as_secs_f64();
        let needed = smaller.idle_s() * cluster.target / (1.0 - cluster.target) / step;
        let steps = needed.max(carried_s(&smaller, cluster) / step).ceil();
        let steps = steps.max(smaller.inner_steps);
        if !rarer || steps > INNER_STEPS_MAX {
            continue;
        }
        let toml = format!("[synchronization]\ninner_steps = {steps}\n{coded}");
        if let Some(found) = variant(strategy, &toml, cluster)?
            && reaches(&found, cluster)
        {
            let words = [Some(format!("{steps} inner steps a round")), named];
            let words = words
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(" and ");
            return Ok(Some((Changes { toml, words }, found)));
        }
    }
    Ok(None)
}

/// A gradient belongs to one inner step.
fn can_be_rarer(strategy: &Strategy) -> bool {
    strategy.contribution() != Contribution::Gradient
}

/// The cost of a preset with changes; `None` if the grid or the plan refuses them. The plan refuses
/// codecs whose state for every member exceeds the limit of a state.
fn variant(
    strategy: &Strategy,
    changes: &str,
    cluster: &Cluster,
) -> Result<Option<Cost>, StrategyError> {
    match Strategy::parse(changes, Some(strategy.name())) {
        Ok(strategy) => match Cost::of(&strategy, cluster) {
            Err(StrategyError::Plan(_)) => Ok(None),
            cost => cost.map(Some),
        },
        Err(_) => Ok(None),
    }
}

/// The number of peers with the most inner steps per second, if that is not all. Tries halves of
/// all.
fn fewer_peers(
    strategy: &Strategy,
    cost: &Cost,
    cluster: &Cluster,
) -> Result<Option<usize>, StrategyError> {
    let mut best = (cost.throughput(cluster.peers), None);
    let mut peers = cluster.peers / 2;
    while peers > 0 {
        let throughput = Cost::of(strategy, &cluster.with_peers(peers))?.throughput(peers);
        if throughput > best.0 {
            best = (throughput, Some(peers));
        }
        peers /= 2;
    }
    Ok(best.1)
}

/// Formats a time.
pub(super) fn seconds(value: f64) -> String {
    match value {
        v if v >= 120.0 => format!("{:.1} min", v / 60.0),
        v if v >= 1.0 => format!("{v:.1} s"),
        v if v >= 1e-3 => format!("{:.1} ms", v * 1e3),
        v => format!("{:.1} us", v * 1e6),
    }
}

/// The kind of model, as far as it changes which presets suit it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Learns {
    /// Nothing is known of it.
    #[default]
    Anything,
    /// A language model: a preset of one of the families `*-lm`.
    Language,
}

/// One preset.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PresetPlan {
    /// Its name.
    pub preset: &'static str,
    /// Summary.
    pub summary: &'static str,
    /// Cost of one round.
    #[serde(flatten)]
    pub cost: Cost,
    /// The advice.
    #[serde(flatten)]
    pub advice: Advice,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(preset: &str, link: &str, peers: usize) -> Advice {
        let cluster = Cluster::new(1.3e9, 400.0, link, peers, 0.8).unwrap();
        let strategy = Strategy::preset(preset).unwrap();
        let cost = Cost::of(&strategy, &cluster).unwrap();
        Advice::of(&strategy, &cost, &cluster).unwrap()
    }

    #[test]
    fn on_a_slow_link_bsp_is_told_to_stay_alone() {
        let advice = advice("bsp", "100mbit/40ms", 16);
        assert_eq!(
            (advice.verdict, advice.fewer_peers),
            (Verdict::FewerPeers, Some(1))
        );
    }

    #[test]
    fn on_a_fast_link_local_steps_need_no_codec() {
        let advice = advice("diloco", "100gbit/10us", 16);
        assert_eq!(advice.verdict, Verdict::AdvisedWith, "{advice:?}");
        let changes = advice.changes.unwrap();
        assert!(
            changes.contains("inner_steps") && !changes.contains("codec"),
            "{changes}"
        );
    }

    #[test]
    fn changes_can_be_laid_over_the_preset_and_reach_the_target() {
        let cluster = Cluster::new(1.3e9, 400.0, "1gbit/30ms", 16, 0.8).unwrap();
        let advice = advice("local-sgd", "1gbit/30ms", 16);
        let changes = advice.changes.expect("a change helps");
        let strategy = Strategy::parse(&changes, Some("local-sgd")).unwrap();
        let cost = Cost::of(&strategy, &cluster).unwrap();
        assert!(cost.utilization >= 0.8, "{changes}: {cost:?}");
    }

    #[test]
    fn the_yardstick_is_never_advised() {
        assert_eq!(
            advice("none", "100gbit/10us", 4).verdict,
            Verdict::Yardstick
        );
        assert_eq!(
            advice("diloco", "100gbit/10us", 1).verdict,
            Verdict::NotAdvised
        );
    }
}
