//! Local corrections: terms that a peer adds to its gradients so that peers with different data
//! reach the common optimum. Each has an entry beside its code, and a line in
//! [`CORRECTIONS`].
//!
//! Each is a [`Correction`], arithmetic on flat slices with its own state. The train lane passes it
//! every gradient of a trainer's inner steps. [`FedProx`] and [`QuasiGlobal`] need only the
//! parameters; [`Scaffold`] and [`Tracker`] (gradient tracking, momentum tracking, BEER, MoTEF) need a
//! [`Companion`], a second vector that travels beside the parameters. Exact diffusion changes no
//! gradient: the exchange between neighbours does it ([`Needs::Moves`]).

mod correction;
mod fed_prox;
mod quasi_global;
mod scaffold;
mod tracker;

pub use correction::{Companion, Correction, CorrectionKind, CorrectionSpec, Needs, Work};
pub use fed_prox::FedProx;
pub use quasi_global::QuasiGlobal;
pub use scaffold::Scaffold;
pub use tracker::Tracker;

use crate::kind::Spec;
use crate::parameter::Parameters;

/// All corrections. Random scenarios are drawn from the list: a new one goes to its end.
pub static CORRECTIONS: &[&CorrectionSpec] = &[
    &correction::NONE,
    &fed_prox::SPEC,
    &quasi_global::SPEC,
    &correction::EXACT_DIFFUSION,
    &tracker::GRADIENTS,
    &tracker::MOMENTA,
    &scaffold::SPEC,
    &tracker::AVERAGES,
];

impl Spec for CorrectionSpec {
    const KEY: &'static str = "inner.correction";

    fn list() -> &'static [&'static Self] {
        CORRECTIONS
    }

    fn keys(&self) -> Parameters {
        Parameters::new("inner", self.name, self.parameters)
    }
}
