//! Which lanes of the Executor perform an order.

use crate::{Order, StepBudget};

/// One of the Executor's two lanes. Each performs its orders one after another; the lanes run
/// beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Owns the trainer.
    Train,
    /// Owns anchor, codecs and outer optimizer.
    Mix,
}

/// The lanes that an order passes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The mix lane performs the order.
    Mix,
    /// The mix lane lends its buffer to the train lane, which performs the order.
    MixThenTrain,
    /// The train lane writes its half of a checkpoint; the mix lane adds its own and commits both.
    TrainThenMix,
}

impl Route {
    /// The last lane of the route: it ends the order and answers it.
    pub const fn last(self) -> Lane {
        match self {
            Self::MixThenTrain => Lane::Train,
            Self::Mix | Self::TrainThenMix => Lane::Mix,
        }
    }
}

impl Order {
    /// The lanes that it passes through.
    pub const fn route(&self) -> Route {
        match self {
            Self::Train { .. } | Self::Evaluate { .. } | Self::Measure { .. } => {
                Route::MixThenTrain
            }
            Self::Save { .. } => Route::TrainThenMix,
            _ => Route::Mix,
        }
    }

    /// Returns `true` for a round's first forward pass alone, which may wait for fragments of the round before.
    pub const fn begins_forward(&self) -> bool {
        matches!(
            self,
            Self::Train {
                budget: StepBudget::Steps(0),
                cut: false,
                ..
            }
        )
    }
}
