//! Inner optimizers as data, from the `[inner]` table.

use super::optimizer::InnerOptimizer;
use crate::Layout;
use crate::kind::Kind;
use crate::parameter::{Parameter, Range};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::iter::once;

/// One inner optimizer as the configuration knows it.
#[derive(Clone, Copy, Debug)]
pub struct InnerSpec {
    /// Its name in the configuration.
    pub name: &'static str,
    /// Its description, in a line.
    pub summary: &'static str,
    /// Its step, in a line.
    pub equation: &'static str,
    /// The paper.
    pub source: &'static str,
    /// Its parameters, as keys of `[inner]`.
    pub parameters: &'static [Parameter],
    /// Set where it needs whole tensors and their shapes: [`InnerKind::build_for`].
    pub needs_shapes: bool,
    /// Set where a step depends on the number of steps before it.
    pub counts_steps: bool,
    /// Makes it of parameters within their ranges, for the tensors of a layout.
    pub build: fn(&InnerKind, &Layout) -> InnerOptimizer,
}

/// An inner optimizer with its parameters. They are f64 here so that a configuration
/// shows the digits that were written; [`InnerKind::build`] rounds them to f32.
pub type InnerKind = Kind<InnerSpec>;

/// The name of the optimizer among its parameters.
const OPTIMIZER: &str = "optimizer";

/// The parameter that every optimizer has.
pub(super) const LR: &str = "lr";

pub(super) const fn lr(default: f64) -> Parameter {
    Parameter::new(LR, Range::Above, default, "the learning rate")
}

pub(super) const fn momentum(default: f64) -> Parameter {
    let about = "the factor on the momentum in each step";
    Parameter::new("momentum", Range::BelowOne, default, about)
}

pub(super) const fn decay(default: f64) -> Parameter {
    let about = "pull towards zero";
    Parameter::new("weight_decay", Range::NotNegative, default, about)
}

pub(super) const BETAS: Parameter = Parameter::new(
    "betas",
    Range::Pair([0.9, 0.999]),
    0.9,
    "decay of the two moments",
);

pub(super) const EPS: Parameter = Parameter::new(
    "eps",
    Range::Above,
    1e-8,
    "keeps the denominator above zero",
);

/// What peers send of an inner step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sends {
    /// Their gradients, whose mean the optimizer gets.
    #[default]
    Gradients,
    /// Their momenta: the common one after a step with their own gradient. The optimizer gets the mean of these.
    Momenta,
}

/// In the order of [`Sends`].
pub(super) const SENDS: Parameter = Parameter::new(
    "sends",
    Range::Names(&["gradients", "momenta"]),
    0.0,
    "what peers send of an inner step",
);

impl InnerKind {
    /// Set where peers send momenta in place of gradients.
    pub fn sends_momenta(&self) -> bool {
        self.has(SENDS.name) && self.sends() == Sends::Momenta
    }

    /// What peers send of an inner step.
    pub(super) fn sends(&self) -> Sends {
        [Sends::Gradients, Sends::Momenta][self.count(SENDS.name)]
    }

    /// Its learning rate.
    pub fn lr(&self) -> f64 {
        self.number(LR)
    }

    /// The most f32 per parameter that it keeps, whatever its parameters are.
    pub fn state_multiple_max(&self) -> usize {
        // SGD without momentum keeps none.
        let own = if self.has("momentum") {
            self.with("momentum", 0.9)
        } else {
            *self
        };
        own.state_multiple()
    }

    /// f32 per parameter that it keeps.
    pub fn state_multiple(&self) -> usize {
        self.build(0).state_multiple()
    }

    /// Set where it needs whole tensors and their shapes: [`InnerKind::build_for`].
    pub fn needs_shapes(&self) -> bool {
        self.spec().needs_shapes
    }

    /// The optimizer itself, for the tensors of a layout.
    pub fn build_for(&self, layout: &Layout) -> InnerOptimizer {
        (self.spec().build)(self, layout)
    }

    /// The optimizer itself, for `len` parameters; those that need shapes see one vector.
    pub fn build(&self, len: usize) -> InnerOptimizer {
        self.build_for(&Layout::new([("values", vec![len as u64])]))
    }

    /// A parameter in f32, in which the arithmetic is done.
    pub(super) fn single(&self, parameter: &str) -> f32 {
        self.number(parameter) as f32
    }

    /// The decays of two moments in f32.
    pub(super) fn betas(&self) -> [f32; 2] {
        self.pair(BETAS.name).map(|beta| beta as f32)
    }
}

/// As a table of its parameters, with its name under `optimizer`.
impl Serialize for InnerKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = once((OPTIMIZER, self.name().into()));
        serializer.collect_map(name.chain(self.entries()))
    }
}

impl<'de> Deserialize<'de> for InnerKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut table = toml::Table::deserialize(deserializer)?;
        let name = table.remove(OPTIMIZER);
        let name = name.as_ref().and_then(toml::Value::as_str);
        let name = name.ok_or_else(|| D::Error::missing_field(OPTIMIZER))?;
        if !table.contains_key(LR) {
            return Err(D::Error::missing_field(LR));
        }
        Self::from_table(name, &table).map_err(D::Error::custom)
    }
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
    fn run(optimizer: &mut InnerOptimizer, x: &mut [f32], steps: Range<usize>) {
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
    fn every_optimizer_survives_its_own_text() {
        for spec in crate::inner::INNERS {
            let kind = InnerKind::of(spec, &[]).unwrap().with("lr", 0.25);
            let text = toml::to_string(&kind).unwrap();
            assert_eq!(toml::from_str::<InnerKind>(&text).unwrap(), kind, "{text}");
        }
        assert!(toml::from_str::<InnerKind>("optimizer = \"sgd\"").is_err());
        assert!(toml::from_str::<InnerKind>("optimizer = \"sgd\"\nlr = 1\nmu = 1").is_err());
    }

    #[test]
    fn sgd_follows_its_equation() {
        for (momentum, decay) in [(0.0, 0.0), (0.0, 0.1), (0.9, 0.0), (0.9, 0.01)] {
            let kind = InnerKind::sgd(0.05).with("momentum", momentum);
            let kind = kind.with("weight_decay", decay);
            let mut x = start();
            run(&mut kind.build(LEN), &mut x, 0..50);
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
            let betas = [("betas", 0.9), ("betas", 0.99)];
            let others = [("lr", 0.05), ("eps", 1e-6), ("weight_decay", decay)];
            let kind = InnerKind::new("adam-w", &[&betas[..], &others].concat()).unwrap();
            let mut x = start();
            run(&mut kind.build(LEN), &mut x, 0..50);
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
        let kind = InnerKind::adam_w(0.1).with("weight_decay", 0.0);
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
            InnerKind::sgd(0.1).with("momentum", 0.9),
            InnerKind::adam_w(0.01),
        ] {
            let (mut whole, mut x) = (kind.build(LEN), start());
            run(&mut whole, &mut x, 0..7);
            let mut state = MemoryState::default();
            whole.save("trainer.inner", &mut state).unwrap();
            let (mut again, mut y) = (kind.build(LEN), x.clone());
            again.load("trainer.inner", &state).unwrap();
            assert_eq!(again.step_count(), 7);
            run(&mut whole, &mut x, 7..12);
            run(&mut again, &mut y, 7..12);
            assert_eq!(x, y);
            assert_eq!(whole.state(), again.state());
            assert_eq!(whole.state().len(), kind.state_multiple() * LEN);
            if kind.state_multiple() > 0 {
                assert!(kind.build(LEN + 1).load("trainer.inner", &state).is_err());
            }
        }
    }
}
