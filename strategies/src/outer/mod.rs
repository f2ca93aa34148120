//! Outer optimizers: how the aggregated delta changes the anchor. One file each.

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
pub use kind::OuterKind;
pub use nesterov::Nesterov;
pub use no_lo_co::NoLoCo;
pub use slow_mo::SlowMo;
pub use staleness::{StalenessWeight, compensate_delay};
pub use stored::{SavedOuter, StatePrecision, StoredOuter};

use crate::state::{StateError, StateSink, StateSource};
use std::ops::Range;

/// Turns an aggregated delta into the next anchor. Its state is shared: it is the same on all
/// peers of a run and part of a state transfer.
pub trait OuterOptimizer: Send {
    /// Its name in the configuration.
    fn name(&self) -> &'static str;

    /// f32 per parameter that it keeps.
    fn state_multiple(&self) -> usize;

    /// Puts one fragment's aggregated delta (theta after - theta before) into the anchor:
    /// `range` is where the fragment lies in the flat parameters, `anchor` and `delta` are its
    /// values; `delta` may be overwritten.
    fn apply(&mut self, range: Range<usize>, anchor: &mut [f32], delta: &mut [f32]);

    /// The state, `state_multiple` runs of the whole parameters' length, back to back.
    fn state(&self) -> &[f32];

    /// The state, for a state transfer or a resumed checkpoint to be written into.
    fn state_mut(&mut self) -> &mut [f32];

    /// Begins again, as if no delta had come yet.
    fn reset(&mut self) {
        self.state_mut().fill(0.0);
    }

    /// Writes the state as `outer.state`.
    ///
    /// # Errors
    /// The sink's.
    fn save(&self, sink: &mut dyn StateSink) -> Result<(), StateError> {
        match self.state() {
            [] => Ok(()),
            state => sink.tensor("outer.state", state),
        }
    }

    /// Takes back what [`OuterOptimizer::save`] wrote.
    ///
    /// # Errors
    /// When it is missing or has another length.
    fn load(&mut self, source: &dyn StateSource) -> Result<(), StateError> {
        match self.state_mut() {
            [] => Ok(()),
            state => source.tensor("outer.state", state),
        }
    }
}
