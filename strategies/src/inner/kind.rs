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
