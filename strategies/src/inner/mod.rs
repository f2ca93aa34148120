//! Inner optimizers on flat slices: used by trainers within a round, and by the Executor for
//! methods that exchange gradients. Each has an entry beside its code, and a line in
//! [`INNERS`].

mod adam;
mod kind;
mod lamb;
mod muon;
mod optimizer;
mod rate;
mod rule;
mod sgd;

pub use kind::{InnerKind, InnerSpec, Sends};
pub use muon::orthogonal;
pub use optimizer::InnerOptimizer;
pub use rate::{Rate, RateError, RateSchedule, RateShape};
pub use rule::StepRule;
pub use rule::fits;

use crate::kind::Spec;
use crate::parameter::Parameters;
use kind::LR;

/// All inner optimizers. Random scenarios are drawn from the list: a new one goes to its end.
pub static INNERS: &[&InnerSpec] = &[
    &adam::ADAM_W,
    &lamb::SPEC,
    &muon::SPEC,
    &adam::ONE_BIT,
    &sgd::SPEC,
    &sgd::SIGNUM,
    &adam::ZERO_ONE,
];

impl Spec for InnerSpec {
    const KEY: &'static str = "inner.optimizer";

    fn list() -> &'static [&'static Self] {
        INNERS
    }

    fn keys(&self) -> Parameters {
        Parameters::new("inner", self.name, self.parameters)
    }
}

impl InnerKind {
    /// Plain SGD.
    ///
    /// # Panics
    /// If the rate is not above zero.
    pub fn sgd(lr: f64) -> Self {
        Self::of(&sgd::SPEC, &[(LR, lr)]).expect("the rate is above zero")
    }

    /// AdamW with the usual moments, `eps` and decay.
    ///
    /// # Panics
    /// If the rate is not above zero.
    pub fn adam_w(lr: f64) -> Self {
        Self::of(&adam::ADAM_W, &[(LR, lr)]).expect("the rate is above zero")
    }

    /// Set where a step is the learning rate times the gradient.
    pub fn is_plain_sgd(&self) -> bool {
        self.name() == sgd::SPEC.name && self.number("momentum") == 0.0
    }
}
