//! What a promise of privacy costs on a cluster: the noise that it needs, beside the longest delta.

use murmurate_protocol::limits::GROUP_MEMBERS_MAX;
use murmurate_strategies::aggregate::Privacy;
use murmurate_strategies::plan::Cluster;
use serde::Serialize;
use std::fmt;

/// Numbers of rounds that the table has.
const ROUNDS: [u64; 4] = [10, 30, 100, 300];

/// The probability with which the promise may fail, the default of `aggregation.delta`.
const DELTA: f64 = 1e-5;

/// What an epsilon costs with rule `private-mean`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PrivacyCosts {
    /// The budget.
    pub epsilon: f64,
    /// The probability with which the promise may fail.
    pub delta: f64,
    /// The noise that runs of some lengths need.
    pub noise: Vec<NoiseFor>,
    /// Noise over signal where each contribution is private by itself: the norm of the noise in the model, over
    /// the longest way that clipped deltas can go. It is the same for any number of rounds, because noise adds up
    /// by squares and the noise that a budget needs grows with the square root of the rounds.
    pub over_signal: f64,
    /// The same where only means of `members` contributions are private.
    pub over_signal_together: f64,
    /// Peers whose noise protects together there.
    pub members: usize,
}

/// The noise that a number of rounds needs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NoiseFor {
    /// Rounds, each with a contribution of every peer.
    pub rounds: u64,
    /// The least `aggregation.noise` that the budget allows.
    pub noise: f64,
}

impl PrivacyCosts {
    /// The costs of an epsilon above zero on a cluster.
    pub fn new(cluster: &Cluster, epsilon: f64) -> Self {
        let members = cluster.peers.min(GROUP_MEMBERS_MAX);
        let privacy = Privacy {
            clip: 1.0,
            noise: 1.0,
            delta: DELTA,
            budget: epsilon,
            members: 1,
        };
        let noise = ROUNDS.map(|rounds| NoiseFor {
            rounds,
            noise: privacy.noise_for(rounds),
        });
        let most = noise[ROUNDS.len() - 1];
        let values = cluster.parameters as f64 / cluster.peers as f64;
        let over_signal = most.noise * (values / most.rounds as f64).sqrt();
        Self {
            epsilon,
            delta: DELTA,
            noise: noise.to_vec(),
            over_signal,
            over_signal_together: over_signal / (members as f64).sqrt(),
            members,
        }
    }
}

impl fmt::Display for PrivacyCosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let needs: Vec<String> = self
            .noise
            .iter()
            .map(|it| format!("{} for {} rounds", it.noise, it.rounds))
            .collect();
        writeln!(
            f,
            "\nPrivacy: rule = \"private-mean\" with budget = {} and delta = {:e} needs noise = {}.\nThe noise in the \
             model is then {:.2} times as long as the longest way that clipped deltas can go (members = 1), or {:.2} \
             times (members = {}). Fewer parameters and more peers make it less: docs/privacy.md",
            self.epsilon,
            self.delta,
            needs.join(", "),
            self.over_signal,
            self.over_signal_together,
            self.members
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_peers_and_smaller_models_drown_less_in_noise() {
        let of = |params: f64, peers: usize, epsilon: f64| {
            let cluster = Cluster::new(params, 10.0, "1gbit/1ms", peers, 0.8).unwrap();
            PrivacyCosts::new(&cluster, epsilon)
        };
        let (base, tight) = (of(1e6, 32, 8.0), of(1e6, 32, 1.0));
        let (small, many) = (of(1e4, 32, 8.0), of(1e6, 512, 8.0));
        assert!((small.over_signal / base.over_signal - 0.1).abs() < 1e-9);
        assert!((many.over_signal / base.over_signal - 0.25).abs() < 1e-9);
        assert!(tight.over_signal > 4.0 * base.over_signal);
        assert_eq!(many.members, GROUP_MEMBERS_MAX);
        let rounds = base.noise.iter().zip(&tight.noise);
        rounds.for_each(|(base, tight)| assert!(tight.noise > 4.0 * base.noise));
        let (first, last) = (base.noise[0], base.noise[3]);
        let grows = (last.rounds as f64 / first.rounds as f64).sqrt();
        assert!((last.noise / first.noise / grows - 1.0).abs() < 1e-2);
        assert!(base.to_string().contains("members = 32"));
    }
}
