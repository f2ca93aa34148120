//! Aggregation rule `private-mean`: differential privacy of what a peer's data does to its contributions. A
//! contribution is clipped and noised where the round's delta is made, before error feedback and codec, so all that
//! is sent of it, and all that follows from it, is private as well.
//!
//! The promise is for the data of a peer as a whole: an observer cannot tell a run from one in which this peer's
//! deltas are zero, up to (epsilon, delta). A contribution of norm C at most with noise of deviation z C is a
//! Gaussian mechanism, and k of them together are one with mu = sqrt(k) / z (Dong, Roth and Su, "Gaussian
//! differential privacy", JRSS B 2022, corollary 3.3), whose (epsilon, delta) is exact (Balle and Wang, ICML
//! 2018, theorem 8). Who takes part in a round is public, so no sampling amplifies this.

use super::kind::{AggregationKind, AggregationSpec, MEMBERS, Nature};
use crate::parameter::{Number, Parameter, Range};
use core::f64::consts::{PI, SQRT_2};
use murmurate_protocol::WorkError;
use murmurate_protocol::limits::GROUP_MEMBERS_MAX;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use rand_distr::{Distribution, StandardNormal};

pub(super) const SPEC: AggregationSpec = AggregationSpec {
    name: "private-mean",
    summary: "the mean of clipped deltas with Gaussian noise, which hides what each peer's data does",
    equation: "v = (1/n) sum_k (x_k min(1, C / |x_k|) + N(0, (z C)^2 / max(1, m - 1))), C clip, z noise, m members",
    source: "McMahan et al., ICLR 2018; Balle and Wang, ICML 2018",
    parameters: &[CLIP, NOISE, DELTA, BUDGET, WITH],
    nature: Nature::Private,
    // Weights are equal, so the mean by weights is the plain one.
    ..AggregationSpec::of(|_| None)
};

const CLIP: Parameter = Parameter::required(
    "clip",
    &Range::Above,
    "give the largest norm of a delta, such as 1.0: longer ones are shortened",
    "the largest norm of a delta, such as 1.0: longer ones are shortened",
);

const NOISE: Parameter = Parameter::required(
    "noise",
    &Range::NotNegative,
    "give the noise's deviation in multiples of `clip`, such as 1.0; 0 only clips",
    "the noise's deviation in multiples of `clip`, such as 1.0; 0 only clips",
);

const DELTA: Parameter = Parameter::new(
    "delta",
    Range::Between,
    1e-5,
    "the probability with which the promise may fail: well below 1 / peers",
);

const BUDGET: Parameter = Parameter::new(
    "budget",
    Range::NotNegative,
    0.0,
    "the largest epsilon: a daemon leaves before a contribution that would pass it; 0 has no bound",
);

const WITH: Parameter = Parameter::new(
    MEMBERS,
    Range::Count(Number::Size, 1, GROUP_MEMBERS_MAX as u64),
    1.0,
    "members whose noise protects together: above 1 (from 3 on) contributions are masked, and only their sum is seen",
);

/// The promise of a run about every peer's data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Privacy {
    /// Largest L2 norm of a delta.
    pub clip: f64,
    /// Deviation of the noise in multiples of the clip, in the sum of `members` contributions.
    pub noise: f64,
    /// Probability with which the promise may fail.
    pub delta: f64,
    /// Largest epsilon; zero has no bound.
    pub budget: f64,
    /// Members whose noise protects together.
    pub members: usize,
}

impl AggregationKind {
    /// The promise about every peer's data, if it makes one.
    pub fn privacy(&self) -> Option<Privacy> {
        (self.nature() == Nature::Private).then(|| Privacy {
            clip: self.number(CLIP.name),
            noise: self.number(NOISE.name),
            delta: self.number(DELTA.name),
            budget: self.number(BUDGET.name),
            members: self.count(MEMBERS),
        })
    }
}

impl Privacy {
    /// What a contribution adds to the sum of `1 / noise^2`, by which contributions of all runs add up; infinite
    /// without noise.
    pub fn cost(&self) -> f64 {
        1.0 / (self.noise * self.noise)
    }

    /// The epsilon of contributions that cost this much, rounded up; infinite without noise.
    pub fn epsilon(&self, spent: f64) -> f64 {
        let mu = spent.sqrt();
        if mu == 0.0 {
            return 0.0;
        }
        if !mu.is_finite() {
            return f64::INFINITY;
        }
        // By the tail bound of the privacy loss, which is normal: P(loss > high) <= delta.
        let mut high = 0.5 * mu * mu + mu * (-2.0 * self.delta.ln()).sqrt();
        let mut low = 0.0;
        if failing(mu, low) <= self.delta {
            return 0.0;
        }
        loop {
            let middle = 0.5 * (low + high);
            if middle <= low || middle >= high {
                return high;
            }
            if failing(mu, middle) <= self.delta {
                high = middle;
            } else {
                low = middle;
            }
        }
    }

    /// The further contributions that the budget allows after those that cost this much; `None` where it has no
    /// bound.
    pub fn allowed(&self, spent: f64) -> Option<u64> {
        if self.budget <= 0.0 {
            return None;
        }
        let exceeds = |more: u64| self.epsilon(spent + more as f64 * self.cost()) > self.budget;
        Some(least(CONTRIBUTIONS_MAX, exceeds) - 1)
    }

    /// The least noise, to a thousandth, with which the budget allows this many contributions.
    pub fn noise_for(&self, contributions: u64) -> f64 {
        let noise = |thousandths: u64| thousandths as f64 / 1e3;
        let fits = |thousandths: u64| {
            let with = Self {
                noise: noise(thousandths),
                ..*self
            };
            with.epsilon(contributions as f64 * with.cost()) <= self.budget
        };
        noise(least(NOISE_MAX, fits))
    }

    /// The deviation of the noise that each contribution gets.
    pub fn deviation(&self) -> f64 {
        // In a sum, each member knows its own noise.
        let others = self.members.saturating_sub(1).max(1);
        self.noise * self.clip / (others as f64).sqrt()
    }
}

/// More contributions than a run has.
const CONTRIBUTIONS_MAX: u64 = 1 << 40;

/// The most noise that is looked for, in thousandths.
const NOISE_MAX: u64 = 1 << 40;

/// The least number above zero, up to `most`, from which on `fits` holds.
fn least(most: u64, fits: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (1, most);
    while low < high {
        let middle = u64::midpoint(low, high);
        if fits(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// The least delta with which a Gaussian mechanism of this mu keeps epsilon:
/// `Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)`.
fn failing(mu: f64, epsilon: f64) -> f64 {
    // Both terms by erfcx, because e^epsilon may overflow where its product does not.
    let near = (epsilon / mu - 0.5 * mu) / SQRT_2;
    let far = (epsilon / mu + 0.5 * mu) / SQRT_2;
    let weight = (-near * near).exp();
    let first = if near < 0.0 {
        libm::erfc(near)
    } else {
        weight * erfcx(near)
    };
    0.5 * (first - weight * erfcx(far))
}

/// `e^(x^2) erfc(x)` for x at or above zero.
fn erfcx(x: f64) -> f64 {
    /// Below it neither factor leaves the range of f64.
    const DIRECT: f64 = 25.0;
    if x < DIRECT {
        return (x * x).exp() * libm::erfc(x);
    }
    let inverse = 1.0 / (x * x);
    let series = 1.0 - 0.5 * inverse * (1.0 - 1.5 * inverse * (1.0 - 2.5 * inverse));
    series / (x * PI.sqrt())
}

/// Clips and noises deltas.
pub(crate) struct Noised {
    clip: f64,
    deviation: f64,
    rng: ChaCha20Rng,
}

impl Noised {
    /// The key must be secret: who knows it can take the noise out.
    pub(crate) fn new(privacy: &Privacy, key: [u8; 32]) -> Self {
        Self {
            clip: privacy.clip,
            deviation: privacy.deviation(),
            rng: ChaCha20Rng::from_seed(key),
        }
    }

    /// The error of a private delta that is absurd beside the parameters, with the noise as its likely cause.
    pub(crate) fn blamed(&self, error: WorkError) -> WorkError {
        WorkError::Training {
            reason: format!(
                "{error} (here the noise of rule `private-mean`, whose deviation is {:.1e}, is the likely cause: \
                 lower `strategy.aggregation.clip` or `noise`, or raise `members`, at all daemons)",
                self.deviation
            ),
        }
    }

    /// Makes a delta private in place. With one value that is not finite none is, and all are refused where they are
    /// encoded.
    pub(crate) fn apply(&mut self, delta: &mut [f32]) {
        let squares = delta.iter().map(|v| f64::from(*v) * f64::from(*v));
        let norm = squares.sum::<f64>().sqrt();
        if !norm.is_finite() {
            // It has no length to clip: so that no shard of it leaves.
            return delta.fill(f32::NAN);
        }
        let scale = if norm > self.clip {
            self.clip / norm
        } else {
            1.0
        };
        for value in delta {
            let noise: f64 = StandardNormal.sample(&mut self.rng);
            *value = (scale * f64::from(*value) + self.deviation * noise) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn privacy(noise: f64, delta: f64, budget: f64) -> Privacy {
        Privacy {
            clip: 2.0,
            noise,
            delta,
            budget,
            members: 1,
        }
    }

    fn after(privacy: &Privacy, contributions: u64) -> f64 {
        match contributions {
            0 => privacy.epsilon(0.0),
            count => privacy.epsilon(count as f64 * privacy.cost()),
        }
    }

    /// By `dp-accounting` 0.6.0 (PyPI): `pld.from_gaussian_mechanism(noise).self_compose(k)`, discretized in steps of
    /// 1e-4 or 1e-5. Its accountant by Renyi divergences has bounds that are 7 to 8 % higher.
    #[test]
    fn epsilon_is_that_of_a_privacy_loss_distribution() {
        for (noise, contributions, delta, wanted) in [
            (1.0, 1, 1e-5, 4.377_178),
            (1.1, 10, 1e-5, 15.782_720),
            (4.0, 100, 1e-5, 13.206_712),
            (10.0, 71, 1e-6, 4.025_570),
            (0.5, 3, 1e-4, 18.207_269),
            (50.0, 1000, 1e-5, 2.594_385),
        ] {
            let found = after(&privacy(noise, delta, 0.0), contributions);
            let off = found / wanted - 1.0;
            assert!(
                off.abs() < 1e-3,
                "{noise} {contributions}: {found} for {wanted}"
            );
        }
    }

    #[test]
    fn a_budget_allows_what_stays_within_it_and_no_more() {
        for (noise, budget) in [(1.0, 0.5), (4.0, 8.0), (30.0, 2.0), (1e-3, 1.0)] {
            let privacy = privacy(noise, 1e-5, budget);
            let allowed = privacy.allowed(0.0).unwrap();
            assert!(after(&privacy, allowed) <= budget, "{noise}");
            assert!(after(&privacy, allowed + 1) > budget, "{noise}");
            let half = (allowed / 2) as f64 * privacy.cost();
            assert_eq!(privacy.allowed(half), Some(allowed - allowed / 2));
        }
        assert_eq!(privacy(1.0, 1e-5, 0.0).allowed(0.0), None);
        assert_eq!(privacy(0.0, 1e-5, 8.0).allowed(0.0), Some(0));
        let asked = privacy(1.0, 1e-5, 8.0);
        let noise = asked.noise_for(100);
        assert!(Privacy { noise, ..asked }.allowed(0.0).unwrap() >= 100);
        let less = noise - 1e-3;
        let least = Privacy {
            noise: less,
            ..asked
        };
        assert!(least.allowed(0.0).unwrap() < 100);
    }

    #[test]
    fn epsilon_grows_with_contributions_and_falls_with_noise() {
        let mut before = 0.0;
        for k in [1, 2, 10, 1000, 1_000_000, 1_000_000_000] {
            let epsilon = after(&privacy(2.0, 1e-5, 0.0), k);
            assert!(epsilon > before && epsilon.is_finite(), "{k}: {epsilon}");
            before = epsilon;
        }
        assert_eq!(after(&privacy(1e9, 1e-5, 0.0), 1), 0.0);
        assert_eq!(after(&privacy(0.0, 1e-5, 0.0), 1), f64::INFINITY);
        assert_eq!(after(&privacy(1.0, 1e-5, 0.0), 0), 0.0);
    }

    #[test]
    fn erfcx_has_no_step_where_its_formula_changes() {
        let (below, above) = (erfcx(25.0 - 1e-9), erfcx(25.0 + 1e-9));
        assert!((below / above - 1.0).abs() < 1e-9, "{below} {above}");
        assert!((erfcx(0.0) - 1.0).abs() < 1e-15);
    }

    #[test]
    fn a_long_delta_is_clipped_and_a_short_one_is_not() {
        let mut only_clips = Noised::new(&privacy(0.0, 1e-5, 0.0), [1; 32]);
        let mut delta = vec![3.0, -4.0];
        only_clips.apply(&mut delta);
        assert_eq!(delta, [1.2, -1.6]);
        let mut delta = vec![0.3, -0.4];
        only_clips.apply(&mut delta);
        assert_eq!(delta, [0.3, -0.4]);
        let mut broken = vec![f32::INFINITY, 1.0];
        only_clips.apply(&mut broken);
        assert!(broken.iter().all(|v| v.is_nan()), "no shard of it leaves");
        let mut broken = vec![f32::NAN, 100.0];
        only_clips.apply(&mut broken);
        assert!(broken.iter().all(|v| v.is_nan()));
    }

    #[test]
    fn noise_that_drowns_the_parameters_is_named_as_the_cause() {
        let mut noised = Noised::new(&privacy(200.0, 1e-5, 0.0), [3; 32]);
        let mut delta = vec![0.01; 5000];
        noised.apply(&mut delta);
        let error = crate::aggregate::quarantine_change(&delta, &[0.05; 5000]).unwrap_err();
        let reason = error.to_string();
        let blamed = noised.blamed(WorkError::Training { reason }).to_string();
        assert!(blamed.contains("deviation is 4.0e2"), "{blamed}");
        assert!(
            blamed.contains("lower `strategy.aggregation.clip` or `noise`"),
            "{blamed}"
        );
    }

    #[test]
    fn noise_has_its_deviation_and_never_comes_twice() {
        let privacy = Privacy {
            members: 4,
            ..privacy(3.0, 1e-5, 0.0)
        };
        let mut noised = Noised::new(&privacy, [7; 32]);
        let mut drawn = vec![0.0_f32; 200_000];
        noised.apply(&mut drawn);
        let n = drawn.len() as f64;
        let mean = drawn.iter().map(|v| f64::from(*v)).sum::<f64>() / n;
        let variance = drawn.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / n;
        assert!(mean.abs() < 0.03, "{mean}");
        // 3 * 2 / sqrt(4 - 1)
        assert!((variance.sqrt() - 3.464).abs() < 0.03, "{variance}");
        let mut again = vec![0.0_f32; 200_000];
        noised.apply(&mut again);
        let equal = drawn.iter().zip(&again).filter(|(a, b)| a == b);
        assert!(equal.count() < 10);
    }
}
