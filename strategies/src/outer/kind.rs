//! Outer optimizers as data, from the `[outer]` table. The grid checks the ranges.

use super::{
    Average, Co2, DelayedNesterov, FedOpt, Nesterov, NoLoCo, OuterOptimizer, SecondMoment, SlowMo,
};
use crate::correct::Companion;
use serde::{Deserialize, Serialize};

/// An outer optimizer with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "optimizer", rename_all = "kebab-case", deny_unknown_fields)]
pub enum OuterKind {
    /// [`Average`].
    Average,
    /// [`Co2`].
    Co2 {
        /// Learning rate.
        lr: f64,
        /// Momentum in `[0, 1)`.
        momentum: f64,
        /// Strength of the penalty of the staleness gap.
        penalty: f64,
        /// The largest momentum of a value.
        clip: f64,
    },
    /// [`DelayedNesterov`].
    DelayedNesterov {
        /// Learning rate.
        lr: f64,
        /// Momentum in `[0, 1)`.
        momentum: f64,
        /// Arrivals for which momentum is applied once.
        every: u32,
        /// How much of it is spread over the arrivals between.
        spread: f64,
    },
    /// Elastic averaging: the Executor's rule of arrivals at a center.
    Easgd {
        /// How much of the distance between center and parameters goes each way.
        alpha: f64,
    },
    /// [`FedOpt`] with [`SecondMoment::Adagrad`].
    FedAdagrad {
        /// Learning rate.
        lr: f64,
        /// Decay of the first moment in `[0, 1)`; Adagrad has no second.
        momentum: f64,
        /// How adaptive: smaller is more.
        eps: f64,
    },
    /// [`FedOpt`] with [`SecondMoment::Adam`].
    FedAdam {
        /// Learning rate.
        lr: f64,
        /// Decay of the two moments, each in `[0, 1)`.
        betas: [f64; 2],
        /// How adaptive: smaller is more.
        eps: f64,
    },
    /// [`FedOpt`] with [`SecondMoment::Yogi`].
    FedYogi {
        /// Learning rate.
        lr: f64,
        /// Decay of the two moments, each in `[0, 1)`.
        betas: [f64; 2],
        /// How adaptive: smaller is more.
        eps: f64,
    },
    /// [`Nesterov`].
    Nesterov {
        /// Learning rate.
        lr: f64,
        /// Momentum in `[0, 1)`.
        momentum: f64,
    },
    /// [`NoLoCo`].
    NoLoCo {
        /// Learning rate of the mean delta.
        lr: f64,
        /// Momentum in `[0, 1)`.
        momentum: f64,
        /// How far towards the mean anchor.
        pull: f64,
    },
    /// [`SlowMo`].
    SlowMo {
        /// Learning rate.
        lr: f64,
        /// Momentum in `[0, 1)`.
        momentum: f64,
    },
}

impl OuterKind {
    /// Whether it takes what arrives at a center one by one, and counts arrivals as they come:
    /// peers that agree on one mean would count differently after a restart.
    pub const fn is_for_arrivals(&self) -> bool {
        matches!(self, Self::Easgd { .. } | Self::DelayedNesterov { .. })
    }

    /// Whether its answer to a sum of deltas is the sum of its answers to them.
    pub const fn is_linear(&self) -> bool {
        matches!(
            self,
            Self::Average | Self::Nesterov { .. } | Self::SlowMo { .. }
        )
    }

    /// Whether its state is one momentum that forgets by a factor below one in every step.
    pub const fn is_momentum(&self) -> bool {
        matches!(self, Self::Nesterov { .. } | Self::SlowMo { .. })
    }

    /// Its name in the configuration.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Average => "average",
            Self::Co2 { .. } => "co2",
            Self::DelayedNesterov { .. } => "delayed-nesterov",
            Self::Easgd { .. } => "easgd",
            Self::FedAdagrad { .. } => "fed-adagrad",
            Self::FedAdam { .. } => "fed-adam",
            Self::FedYogi { .. } => "fed-yogi",
            Self::Nesterov { .. } => "nesterov",
            Self::NoLoCo { .. } => "no-lo-co",
            Self::SlowMo { .. } => "slow-mo",
        }
    }

    /// What it needs beside the parameters.
    pub const fn companion(&self) -> Companion {
        match *self {
            Self::NoLoCo { lr, pull, .. } => Companion::Anchors {
                lr: lr as f32,
                pull: pull as f32,
            },
            _ => Companion::None,
        }
    }

    /// f32 per parameter that it keeps.
    pub fn state_multiple(&self) -> usize {
        self.build(0).state_multiple()
    }

    /// The optimizer itself, for `len` parameters.
    pub fn build(&self, len: usize) -> Box<dyn OuterOptimizer> {
        let adaptive = |rule, lr: f64, betas: [f64; 2], eps: f64| {
            let betas = betas.map(|beta| beta as f32);
            Box::new(FedOpt::new(len, rule, lr as f32, betas, eps as f32))
        };
        match *self {
            Self::Average | Self::Easgd { .. } => Box::new(Average),
            Self::Co2 {
                lr,
                momentum,
                penalty,
                clip,
            } => {
                let (lr, momentum) = (lr as f32, momentum as f32);
                Box::new(Co2::new(len, lr, momentum, penalty, clip as f32))
            }
            Self::DelayedNesterov {
                lr,
                momentum,
                every,
                spread,
            } => Box::new(DelayedNesterov::new(
                len,
                lr as f32,
                momentum as f32,
                every,
                spread as f32,
            )),
            Self::FedAdagrad { lr, momentum, eps } => {
                adaptive(SecondMoment::Adagrad, lr, [momentum, 0.0], eps)
            }
            Self::FedAdam { lr, betas, eps } => adaptive(SecondMoment::Adam, lr, betas, eps),
            Self::FedYogi { lr, betas, eps } => adaptive(SecondMoment::Yogi, lr, betas, eps),
            Self::Nesterov { lr, momentum } => {
                Box::new(Nesterov::new(len, lr as f32, momentum as f32))
            }
            Self::NoLoCo { lr, momentum, pull } => {
                Box::new(NoLoCo::new(len, momentum as f32, lr as f32, pull as f32))
            }
            Self::SlowMo { lr, momentum } => Box::new(SlowMo::new(len, lr as f32, momentum as f32)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::MemoryState;

    const LEN: usize = 11;

    fn delta(round: usize) -> Vec<f32> {
        (0..LEN)
            .map(|i| ((round * 13 + i * 7) % 19) as f32 / 9.0 - 1.0)
            .collect()
    }

    /// Applies rounds in two fragments.
    fn run(kind: OuterKind, rounds: usize) -> (Vec<f32>, Box<dyn OuterOptimizer>) {
        let mut outer = kind.build(LEN);
        let mut anchor = vec![0.5; LEN];
        for round in 0..rounds {
            let mut delta = delta(round);
            for fragment in [4..LEN, 0..4] {
                let part = fragment.clone();
                outer.apply(fragment, &mut anchor[part.clone()], &mut delta[part]);
            }
        }
        (anchor, outer)
    }

    #[test]
    fn nesterov_follows_its_equation() {
        let (anchor, _) = run(
            OuterKind::Nesterov {
                lr: 0.7,
                momentum: 0.9,
            },
            30,
        );
        let (mut expected, mut m) = ([0.5f64; LEN], [0.0f64; LEN]);
        for round in 0..30 {
            for (i, d) in delta(round).into_iter().enumerate() {
                m[i] = 0.9 * m[i] - f64::from(d);
                expected[i] -= 0.7 * (0.9 * m[i] - f64::from(d));
            }
        }
        for (a, e) in anchor.iter().zip(expected) {
            // f32 rounding over 30 rounds of values below ten.
            assert!((f64::from(*a) - e).abs() < 1e-4, "{a} is not {e}");
        }
    }

    #[test]
    fn nesterov_without_momentum_at_rate_one_is_the_average() {
        let (average, _) = run(OuterKind::Average, 20);
        let (nesterov, _) = run(
            OuterKind::Nesterov {
                lr: 1.0,
                momentum: 0.0,
            },
            20,
        );
        assert_eq!(average, nesterov);
        let sum = |i: usize| (0..20).map(|round| f64::from(delta(round)[i])).sum::<f64>();
        for (i, a) in average.iter().enumerate() {
            assert!((f64::from(*a) - 0.5 - sum(i)).abs() < 1e-4);
        }
    }

    #[test]
    fn state_survives_saving_and_loading() {
        for kind in [
            OuterKind::Average,
            OuterKind::Nesterov {
                lr: 0.7,
                momentum: 0.9,
            },
        ] {
            let (_, outer) = run(kind, 5);
            assert_eq!(outer.state().len(), kind.state_multiple() * LEN);
            let mut state = MemoryState::default();
            outer.save(&mut state).unwrap();
            let mut again = kind.build(LEN);
            again.load(&state).unwrap();
            assert_eq!(again.state(), outer.state());
        }
    }
}
