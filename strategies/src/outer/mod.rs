//! Outer optimizers: how the aggregated delta changes the anchor. Each is one file with one `SPEC`, and a line
//! in [`OUTERS`].

mod average;
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

pub use average::Average;
pub use co2::Co2;
pub use delayed_nesterov::DelayedNesterov;
pub use elastic::elastic;
pub use fed_opt::{FedOpt, SecondMoment};
pub use kind::{Nature, OuterKind, OuterOptimizer, OuterSpec};
pub use nesterov::Nesterov;
pub use no_lo_co::NoLoCo;
pub use slow_mo::SlowMo;
pub use staleness::{StalenessWeight, compensate_delay};
pub use stored::{SavedOuter, StatePrecision, StoredOuter};

use crate::kind::Spec;
use crate::parameter::Parameters;

/// All outer optimizers. Random scenarios are drawn from the list: a new one goes to its end.
pub static OUTERS: &[&OuterSpec] = &[
    &average::SPEC,
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
        Parameters {
            table: "outer",
            method: self.name,
            list: self.parameters,
        }
    }

    fn unfit(kind: &OuterKind) -> Option<&'static str> {
        (kind.spec().unfit)(kind)
    }
}

impl OuterKind {
    /// The optimizer after which the anchor is the mean.
    pub fn average() -> Self {
        Self::of(&average::SPEC, &[]).expect("it has no parameters")
    }
}
