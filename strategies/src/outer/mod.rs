//! Outer optimizers: how the aggregated delta changes the anchor. Each has an entry beside its code, and
//! a line in [`OUTERS`].

mod arrivals;
mod co2;
mod delayed_nesterov;
mod fed_opt;
mod kind;
mod momentum;
mod no_lo_co;
mod stored;

pub use arrivals::{StalenessWeight, compensate_delay, elastic};
pub use kind::{Nature, OuterKind, OuterOptimizer, OuterSpec};
pub use stored::{SavedOuter, StatePrecision, StoredOuter};

use crate::kind::Spec;
use crate::parameter::Parameters;

/// All outer optimizers. Random scenarios are drawn from the list: a new one goes to its end.
pub static OUTERS: &[&OuterSpec] = &[
    &kind::AVERAGE,
    &co2::SPEC,
    &delayed_nesterov::SPEC,
    &arrivals::EASGD,
    &fed_opt::ADAGRAD,
    &fed_opt::ADAM,
    &fed_opt::YOGI,
    &momentum::NESTEROV,
    &no_lo_co::SPEC,
    &momentum::SLOW_MO,
];

impl Spec for OuterSpec {
    const KEY: &'static str = "outer.optimizer";

    fn list() -> &'static [&'static Self] {
        OUTERS
    }

    fn keys(&self) -> Parameters {
        Parameters::new("outer", self.name, self.parameters)
    }

    fn unfit(kind: &OuterKind) -> Option<&'static str> {
        (kind.spec().unfit)(kind)
    }
}

impl OuterKind {
    /// The optimizer after which the anchor is the mean.
    pub fn average() -> Self {
        Self::of(&kind::AVERAGE, &[]).expect("it has no parameters")
    }
}
