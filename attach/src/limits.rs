//! Every bound of a session with its reason.

use std::time::Duration;

/// Version of the messages. Package and daemon must have the same.
pub(crate) const VERSION: u32 = 1;

/// Bytes of the first message: it names every tensor, and models have some thousands of them.
pub(crate) const HELLO_BYTES_MAX: usize = 4 << 20;

/// Bytes of every other message of a trainer. The largest is an error with its traceback.
pub(crate) const FRAME_BYTES_MAX: usize = 64 << 10;

/// Tensors of a model, far above any known one.
pub(crate) const TENSORS_MAX: usize = 100_000;

/// Bytes of a tensor's name.
pub(crate) const NAME_BYTES_MAX: usize = 512;

/// Dimensions of a tensor; PyTorch allows 64.
pub(crate) const DIMENSIONS_MAX: usize = 64;

/// Values of all tensors: their bytes, twice, must fit a file offset with room to spare.
pub(crate) const VALUES_MAX: u64 = 1 << 40;

/// Samples of one inner step. Sums of them over a run stay far below 2^64.
pub(crate) const SAMPLES_MAX: u64 = 1 << 32;

/// Bytes of the optimizer's state beside 16 for each parameter (four f32 moments).
pub(crate) const STATE_BYTES_BASE: u64 = 64 << 20;

/// Bytes of the optimizer's state for each parameter.
pub(crate) const STATE_BYTES_PER_VALUE: u64 = 16;

/// Rounds in a row that change no parameter after which the loop is told so: a schedule may begin at a rate of
/// zero, and a scaler of gradients skips its first steps.
pub(crate) const UNCHANGED_TOLD: u32 = 3;

/// Rounds in a row that change no parameter after which the run ends.
pub(crate) const UNCHANGED_MAX: u32 = 20;

/// An optimizer's state up to this size is kept at every cut, a larger one with every checkpoint.
pub(crate) const STATE_AT_CUT_BYTES_MAX: u64 = 32 << 20;

/// Characters of a trainer's words that are shown.
pub(crate) const WORDS_MAX: usize = 16 << 10;

/// How often a wait looks at what could end it.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// How long a new connection may take to describe its tensors.
pub(crate) const HELLO_WAIT: Duration = Duration::from_secs(10);

/// How long an island waits, after one rank has attached, for those that were started with it: they import
/// their framework and build their model meanwhile. It then goes on without them.
pub(crate) const RANK_WAIT: Duration = Duration::from_secs(30);

/// How long the trainer may take to copy its parameters: hundreds of GB at the speed of a disk.
pub(crate) const COPY_WAIT: Duration = Duration::from_secs(600);

/// How long an evaluation may take.
pub(crate) const EVALUATE_WAIT: Duration = Duration::from_secs(3600);

/// How long a trainer may take to end its inner step once the daemon leaves.
pub(crate) const LEAVE_WAIT: Duration = Duration::from_secs(10);

/// Threads that copy at once; more do not make memory faster.
pub(crate) const COPY_THREADS_MAX: usize = 4;

/// Values that are edited in the memory file at a time, and the least for a thread that copies.
pub(crate) const VALUES_AT_A_TIME: usize = 1 << 18;
