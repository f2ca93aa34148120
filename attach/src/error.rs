//! Why a trainer cannot be attached.

use std::path::PathBuf;

/// Why a trainer cannot be attached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// The socket cannot be made.
    #[error("the trainer's socket {}: {reason}", path.display())]
    Socket {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        reason: String,
    },
    /// The memory that both sides see cannot be made.
    #[error(
        "the {bytes} bytes that are shared with the trainer cannot be had: {reason}; free memory or train a smaller model"
    )]
    Memory {
        /// How many.
        bytes: u64,
        /// The system's error.
        reason: String,
    },
    /// The training loop ends before it attaches.
    #[error("the trainer ended {times} times before it attached; its last words: {words}")]
    Ended {
        /// How often it was started.
        times: u32,
        /// The last line that it printed.
        words: String,
    },
    /// The operator did not want to wait for a trainer any more.
    #[error("interrupted before a trainer was attached")]
    Interrupted,
    /// The system refused a thread.
    #[error("the system refused a thread: {0}")]
    Thread(#[source] std::io::Error),
}

/// A wrong description of a trainer's tensors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ClaimError {
    /// Another version of the messages.
    #[error(
        "the package speaks version {theirs} of the session, the daemon version {ours}; install the package of this daemon"
    )]
    Version { theirs: u32, ours: u32 },
    /// No tensors.
    #[error("there is no tensor to train")]
    Empty,
    /// Too many tensors or values.
    #[error("the model has {found} {what}, at most {max} are allowed")]
    TooMany {
        what: &'static str,
        found: u64,
        max: u64,
    },
    /// A name that cannot be.
    #[error(
        "tensor {index} is called `{name}`; names must differ and have 1 to 512 printable bytes"
    )]
    Name { index: usize, name: String },
    /// A shape that cannot be.
    #[error("tensor `{name}` has shape {shape:?}: it has no values, or more than can be counted")]
    Shape { name: String, shape: Vec<u64> },
    /// Values of another type.
    #[error("tensor `{name}` is {dtype}, only float32 travels")]
    Dtype { name: String, dtype: String },
    /// Another number of tensors than the run trains.
    #[error(
        "the model has {found} tensors, this daemon trains one of {needed}; the first other one is `{name}`"
    )]
    Count {
        found: usize,
        needed: usize,
        name: String,
    },
    /// Another tensor than the run trains.
    #[error(
        "tensor {index} is `{name}` of shape {shape:?}, this daemon trains `{needed}` of shape {needed_shape:?} there"
    )]
    Other {
        index: usize,
        name: String,
        shape: Vec<u64>,
        needed: String,
        needed_shape: Vec<u64>,
    },
    /// The run exchanges gradients and the trainer cannot hand them over.
    #[error(
        "this run exchanges gradients, and the trainer has an optimizer of its own; attach without it and pass gradients, or take a preset that exchanges deltas"
    )]
    Gradients,
}
