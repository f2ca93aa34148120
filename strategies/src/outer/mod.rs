//! Outer optimizers: how the aggregated delta changes the anchor. Each is one file with one `SPEC`, and a line
//! in [`OUTERS`].

mod co2;
mod delayed_nesterov;
mod elastic;
mod fed_opt;
mod kind;
mod nesterov;
mod no_lo_co;
mod slow_mo;
mod staleness;
mod stored;

pub use elastic::elastic;
pub use kind::{Nature, OuterKind, OuterOptimizer, OuterSpec};
pub use staleness::{StalenessWeight, compensate_delay};
pub use stored::{SavedOuter, StatePrecision, StoredOuter};

use crate::kind::Spec;
use crate::parameter::Parameters;

/// All outer optimizers. Random scenarios are drawn from the list: a new one goes to its end.
pub static OUTERS: &[&OuterSpec] = &[
    &kind::AVERAGE,
    &co2::SPEC,
    &delayed_nesterov::SPEC,
    &elastic::SPEC,
    &fed_opt::ADAGRAD,
    &fed_opt::ADAM,
    &fed_opt::YOGI,
    &nesterov::SPEC,
    &no_lo_co::SPEC,
    &slow_mo::SPEC,
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
