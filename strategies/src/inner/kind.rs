//! Inner optimizers as data, from the `[inner]` table. The grid checks the ranges.

use super::{AdamW, Freeze, FrozenAdam, InnerOptimizer, Lamb, Muon, Sends, Sgd, Signum};
use crate::Layout;
use serde::{Deserialize, Serialize};

/// An inner optimizer with its parameters. They are f64 here so that a configuration
/// shows the digits that were written; [`InnerKind::build`] rounds them to f32.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "optimizer", rename_all = "kebab-case", deny_unknown_fields)]
pub enum InnerKind {
    /// [`Sgd`].
    Sgd {
        /// Learning rate.
        lr: f64,
        /// Heavy-ball momentum in `[0, 1)`.
        #[serde(default)]
        momentum: f64,
        /// L2 decay, added to the gradient.
        #[serde(default)]
        weight_decay: f64,
    },
    /// [`AdamW`].
    AdamW {
        /// Learning rate.
        lr: f64,
        /// Decay of the two moments, each in `[0, 1)`.
        #[serde(default = "default_betas")]
        betas: [f64; 2],
        /// Keeps the denominator above zero.
        #[serde(default = "default_eps")]
        eps: f64,
        /// Decoupled decay, multiplied by the learning rate.
        #[serde(default = "default_weight_decay")]
        weight_decay: f64,
    },
    /// [`Lamb`].
    Lamb {
        /// Learning rate.
        lr: f64,
        /// Decay of the two moments, each in `[0, 1)`.
        #[serde(default = "default_betas")]
        betas: [f64; 2],
        /// Keeps the denominator above zero.
        #[serde(default = "default_eps")]
        eps: f64,
        /// Decay, part of the direction.
        #[serde(default = "default_weight_decay")]
        weight_decay: f64,
    },
    /// [`Muon`].
    Muon {
        /// Learning rate.
        lr: f64,
        /// Momentum in `[0, 1)`.
        momentum: f64,
        /// Decoupled decay, multiplied by the learning rate.
        #[serde(default)]
        weight_decay: f64,
    },
    /// [`FrozenAdam`] with [`Freeze::After`].
    OneBitAdam {
        /// Learning rate.
        lr: f64,
        /// Decay of the two moments, each in `[0, 1)`.
        #[serde(default = "default_betas")]
        betas: [f64; 2],
        /// Keeps the denominator above zero.
        #[serde(default = "default_eps")]
        eps: f64,
        /// Inner steps in which the second moment is renewed.
        freeze: u64,
        /// What peers send of an inner step.
        sends: Sends,
    },
    /// [`Signum`].
    Signum {
        /// Learning rate.
        lr: f64,
        /// Momentum in `[0, 1)`.
        momentum: f64,
        /// Decoupled decay, multiplied by the learning rate.
        #[serde(default)]
        weight_decay: f64,
    },
    /// [`FrozenAdam`] with [`Freeze::Doubling`].
    ZeroOneAdam {
        /// Learning rate.
        lr: f64,
        /// Decay of the two moments, each in `[0, 1)`.
        #[serde(default = "default_betas")]
        betas: [f64; 2],
        /// Keeps the denominator above zero.
        #[serde(default = "default_eps")]
        eps: f64,
        /// Renewals of the second moment before their distance doubles.
        freeze: u64,
        /// What peers send of an inner step.
        sends: Sends,
    },
}

pub(crate) const fn default_betas() -> [f64; 2] {
    [0.9, 0.999]
}

pub(crate) const fn default_eps() -> f64 {
    1e-8
}

pub(crate) const fn default_weight_decay() -> f64 {
    0.01
}

impl InnerKind {
    /// Plain SGD.
    pub const fn sgd(lr: f64) -> Self {
        Self::Sgd {
            lr,
            momentum: 0.0,
            weight_decay: 0.0,
        }
    }

    /// AdamW with the usual moments, `eps` and decay.
    pub const fn adam_w(lr: f64) -> Self {
        Self::AdamW {
            lr,
            betas: default_betas(),
            eps: default_eps(),
            weight_decay: default_weight_decay(),
        }
    }

    /// Whether peers send momenta in place of gradients.
    pub const fn sends_momenta(&self) -> bool {
        matches!(
            self,
            Self::OneBitAdam {
                sends: Sends::Momenta,
                ..
            } | Self::ZeroOneAdam {
                sends: Sends::Momenta,
                ..
            }
        )
    }

    /// Its name in the configuration.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Sgd { .. } => "sgd",
            Self::AdamW { .. } => "adam-w",
            Self::Lamb { .. } => "lamb",
            Self::Muon { .. } => "muon",
            Self::OneBitAdam { .. } => "one-bit-adam",
            Self::Signum { .. } => "signum",
            Self::ZeroOneAdam { .. } => "zero-one-adam",
        }
    }

    /// Its learning rate.
    pub const fn lr(&self) -> f64 {
        match *self {
            Self::Sgd { lr, .. }
            | Self::AdamW { lr, .. }
            | Self::Lamb { lr, .. }
            | Self::Muon { lr, .. }
            | Self::OneBitAdam { lr, .. }
            | Self::Signum { lr, .. }
            | Self::ZeroOneAdam { lr, .. } => lr,
        }
    }

    /// f32 per parameter that it keeps.
    pub fn state_multiple(&self) -> usize {
        self.build(0).state_multiple()
    }

    /// Whether it needs whole tensors and their shapes: [`InnerKind::build_for`].
    pub const fn needs_shapes(&self) -> bool {
        matches!(self, Self::Lamb { .. } | Self::Muon { .. })
    }

    /// The optimizer itself, for the tensors of a layout.
    pub fn build_for(&self, layout: &Layout) -> Box<dyn InnerOptimizer> {
        match *self {
            Self::Lamb {
                lr,
                betas,
                eps,
                weight_decay,
            } => {
                let (betas, decay) = (betas.map(|beta| beta as f32), weight_decay as f32);
                Box::new(Lamb::new(layout, lr as f32, betas, eps as f32, decay))
            }
            Self::Muon {
                lr,
                momentum,
                weight_decay,
            } => {
                let (momentum, decay) = (momentum as f32, weight_decay as f32);
                Box::new(Muon::new(layout, lr as f32, momentum, decay))
            }
            _ => self.build(layout.len()),
        }
    }

    /// The optimizer itself, for `len` parameters; those that need shapes see one vector.
    pub fn build(&self, len: usize) -> Box<dyn InnerOptimizer> {
        match *self {
            Self::Sgd {
                lr,
                momentum,
                weight_decay,
            } => Box::new(Sgd::new(
                len,
                lr as f32,
                momentum as f32,
                weight_decay as f32,
            )),
            Self::AdamW {
                lr,
                betas,
                eps,
                weight_decay,
            } => {
                let betas = betas.map(|beta| beta as f32);
                Box::new(AdamW::new(
                    len,
                    lr as f32,
                    betas,
                    eps as f32,
                    weight_decay as f32,
                ))
            }
            Self::Lamb { .. } | Self::Muon { .. } => {
                self.build_for(&Layout::new([("values", vec![len as u64])]))
            }
            Self::OneBitAdam {
                lr,
                betas,
                eps,
                freeze,
                sends,
            } => frozen(len, (Freeze::After(freeze), sends), lr, betas, eps),
            Self::Signum {
                lr,
                momentum,
                weight_decay,
            } => {
                let (momentum, decay) = (momentum as f32, weight_decay as f32);
                Box::new(Signum::new(len, lr as f32, momentum, decay))
            }
            Self::ZeroOneAdam {
                lr,
                betas,
                eps,
                freeze,
                sends,
            } => frozen(len, (Freeze::Doubling(freeze), sends), lr, betas, eps),
        }
    }
}

fn frozen(
    len: usize,
    (freeze, sends): (Freeze, Sends),
    lr: f64,
    betas: [f64; 2],
    eps: f64,
) -> Box<dyn InnerOptimizer> {
    let betas = betas.map(|beta| beta as f32);
    let optimizer = FrozenAdam::new(len, freeze, lr as f32, betas, eps as f32);
    Box::new(optimizer.sending(sends))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::MemoryState;
    use std::ops::Range;

    const LEN: usize = 13;

    fn gradient(step: usize, i: usize) -> f32 {
        ((step * 31 + i * 17) % 23) as f32 / 7.0 - 1.5
    }

    fn start() -> Vec<f32> {
        (0..LEN).map(|i| i as f32 / 3.0 - 2.0).collect()
    }

    /// Takes inner steps, each in three pieces out of order.
    fn run(optimizer: &mut dyn InnerOptimizer, x: &mut [f32], steps: Range<usize>) {
        for step in steps {
            let g: Vec<f32> = (0..LEN).map(|i| gradient(step, i)).collect();
            optimizer.begin_step();
            for piece in [5..11, 0..5, 11..LEN] {
                optimizer.apply(piece.clone(), &mut x[piece.clone()], &g[piece]);
            }
        }
    }

    fn assert_close(found: &[f32], expected: &[f64]) {
        for (f, e) in found.iter().zip(expected) {
            // f32 rounding of some ten operations on values below ten, over 50 inner steps.
            assert!((f64::from(*f) - e).abs() < 2e-4, "{f} is not {e}");
        }
    }

    #[test]
    fn sgd_follows_its_equation() {
        for (momentum, decay) in [(0.0, 0.0), (0.0, 0.1), (0.9, 0.0), (0.9, 0.01)] {
            let kind = InnerKind::Sgd {
                lr: 0.05,
                momentum,
                weight_decay: decay,
            };
            let mut x = start();
            run(&mut *kind.build(LEN), &mut x, 0..50);
            let mut expected: Vec<f64> = start().into_iter().map(f64::from).collect();
            let mut v = [0.0f64; LEN];
            for step in 0..50 {
                for i in 0..LEN {
                    let g = f64::from(gradient(step, i)) + decay * expected[i];
                    v[i] = momentum * v[i] + g;
                    expected[i] -= 0.05 * v[i];
                }
            }
            assert_close(&x, &expected);
        }
    }

    #[test]
    fn adam_w_follows_its_equation() {
        for decay in [0.0, 0.1] {
            let kind = InnerKind::AdamW {
                lr: 0.05,
                betas: [0.9, 0.99],
                eps: 1e-6,
                weight_decay: decay,
            };
            let mut x = start();
            run(&mut *kind.build(LEN), &mut x, 0..50);
            let mut expected: Vec<f64> = start().into_iter().map(f64::from).collect();
            let (mut m, mut v) = ([0.0f64; LEN], [0.0f64; LEN]);
            for step in 0..50 {
                for i in 0..LEN {
                    let g = f64::from(gradient(step, i));
                    m[i] = 0.9 * m[i] + 0.1 * g;
                    v[i] = 0.99 * v[i] + 0.01 * g * g;
                    let m_hat = m[i] / (1.0 - 0.9f64.powi(step as i32 + 1));
                    let v_hat = v[i] / (1.0 - 0.99f64.powi(step as i32 + 1));
                    expected[i] -= 0.05 * decay * expected[i];
                    expected[i] -= 0.05 * m_hat / (v_hat.sqrt() + 1e-6);
                }
            }
            assert_close(&x, &expected);
        }
    }

    #[test]
    fn the_first_step_of_adam_moves_by_the_learning_rate() {
        let kind = InnerKind::AdamW {
            lr: 0.1,
            betas: default_betas(),
            eps: 1e-8,
            weight_decay: 0.0,
        };
        let mut optimizer = kind.build(2);
        let mut x = [1.0, 1.0];
        optimizer.begin_step();
        optimizer.apply(0..2, &mut x, &[1e-3, -40.0]);
        assert!(
            (x[0] - 0.9).abs() < 1e-5 && (x[1] - 1.1).abs() < 1e-5,
            "{x:?}"
        );
    }

    #[test]
    fn a_reloaded_optimizer_goes_on_to_the_bit() {
        for kind in [
            InnerKind::sgd(0.1),
            InnerKind::Sgd {
                lr: 0.1,
                momentum: 0.9,
                weight_decay: 0.0,
            },
            InnerKind::adam_w(0.01),
        ] {
            let (mut whole, mut x) = (kind.build(LEN), start());
            run(&mut *whole, &mut x, 0..7);
            let mut state = MemoryState::default();
            whole.save("trainer.inner", &mut state).unwrap();
            let (mut again, mut y) = (kind.build(LEN), x.clone());
            again.load("trainer.inner", &state).unwrap();
            assert_eq!(again.step_count(), 7);
            run(&mut *whole, &mut x, 7..12);
            run(&mut *again, &mut y, 7..12);
            assert_eq!(x, y);
            assert_eq!(whole.state(), again.state());
            assert_eq!(whole.state().len(), kind.state_multiple() * LEN);
            if kind.state_multiple() > 0 {
                assert!(kind.build(LEN + 1).load("trainer.inner", &state).is_err());
            }
        }
    }
}
