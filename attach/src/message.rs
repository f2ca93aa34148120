//! The messages of a session. They are JSON, because both sides must be easy to debug and the values
//! travel in the memory file.

use crate::terms::{Mode, Shard};
use murmurate_strategies::Said;
use serde::{Deserialize, Serialize};

/// A tensor as the trainer describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorClaim {
    /// Its path in the model.
    pub name: String,
    /// Its shape, outermost first.
    pub shape: Vec<u64>,
    /// Type of the values that travel: `float32`.
    pub dtype: String,
}

/// The first message of a trainer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Version of the messages.
    pub version: u32,
    /// Its tensors in the order of the flat parameters.
    pub tensors: Vec<TensorClaim>,
    /// It can hand over gradients instead of stepping.
    pub gradients: bool,
    /// It can evaluate.
    pub evaluate: bool,
    /// It has state beside the parameters, such as an optimizer's.
    pub state: bool,
    /// SIGUSR1 makes it print its stacks.
    pub faulthandler: bool,
}

/// The daemon's answer to [`Hello`]. Three file descriptors come with it: the memory file with two
/// slots of the parameters, and two files for the optimizer's state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The run's name.
    pub run: String,
    /// The run's seed.
    pub seed: u64,
    /// Which part of the data is this daemon's.
    pub shard: Shard,
    /// The kind of contribution.
    pub mode: Mode,
    /// Number of values of one slot of the memory file.
    pub values: u64,
    /// The slot in use.
    pub current: u8,
    /// The slot to write the parameters to before [`FromTrainer::Ready`]; `None` where the daemon
    /// holds parameters that the trainer will be told to take.
    pub write: Option<u8>,
    /// Bytes of state up to which the trainer hands it over at every cut.
    pub state_at_cut_bytes_max: u64,
}

/// Messages of a trainer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "kebab-case")]
pub enum FromTrainer {
    /// It would like to attach.
    Hello(Hello),
    /// It has mapped the memory and waits for orders.
    Ready,
    /// It has taken an inner step; in mode `gradients` the gradient is in the slot not in use.
    Step {
        /// Samples of the step.
        samples: u64,
        /// Mean loss; `None` where it is not finite.
        loss: Option<f64>,
    },
    /// It has carried out an order to take over parameters or state.
    Done,
    /// Its parameters are in the slot asked for.
    Cut {
        /// Bytes of its state, if that was handed over too.
        state: Option<u64>,
    },
    /// The result of an evaluation.
    Score {
        /// Mean loss on held-out data; `None` where it is not finite.
        loss: Option<f64>,
        /// Share that was classified correctly.
        accuracy: Option<f64>,
        /// Held-out samples.
        samples: u64,
        /// What else it measured, by name; left out where that is nothing.
        #[serde(default, skip_serializing_if = "Said::is_empty")]
        named: Said,
    },
    /// Its state is in the file asked for.
    Saved {
        /// Bytes.
        bytes: u64,
    },
    /// It cannot go on.
    Error {
        /// One line.
        message: String,
        /// Where it happened.
        traceback: String,
    },
}

impl FromTrainer {
    /// Its name on the wire.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Hello(_) => "hello",
            Self::Ready => "ready",
            Self::Step { .. } => "step",
            Self::Done => "done",
            Self::Cut { .. } => "cut",
            Self::Score { .. } => "score",
            Self::Saved { .. } => "saved",
            Self::Error { .. } => "error",
        }
    }
}

/// Messages of the daemon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "kebab-case")]
pub enum ToTrainer {
    /// It is attached.
    Welcome(Welcome),
    /// From now on another part of the data is this daemon's. It is not answered.
    Deal {
        /// The part.
        shard: Shard,
    },
    /// It is not, or not any more.
    Refuse {
        /// Why, and what to do.
        reason: String,
    },
    /// Take the next inner step.
    Go {
        /// The factor on the learning rate that the run's schedule has for it; left out where it is 1.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        rate: f64,
    },
    /// Replace these ranges of the parameters by the values in the slot.
    Install {
        /// The slot in use.
        slot: u8,
        /// Starts and ends in the flat parameters.
        ranges: Vec<(u64, u64)>,
        /// Inner steps of this daemon in the run so far.
        steps: u64,
    },
    /// Write the parameters to a slot; the state too, to the file of this number, if it is small.
    Cut {
        /// The slot not in use.
        slot: u8,
        /// The file not in use.
        state: Option<u8>,
    },
    /// Evaluate.
    Evaluate,
    /// Write the state to a file.
    Save {
        /// The file not in use.
        file: u8,
    },
    /// Take the state back.
    Load {
        /// The file in use.
        file: u8,
        /// Its bytes.
        bytes: u64,
    },
    /// Training is over.
    Stop,
}

const fn one() -> f64 {
    1.0
}

// serde passes a reference.
fn is_one(rate: &f64) -> bool {
    rate.to_bits() == 1.0f64.to_bits()
}
