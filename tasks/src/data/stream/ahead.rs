//! Reads and encodes the passages of the next leg on a thread of their own, so that training does not
//! wait for them.

use crate::data::encoder::Encoder;
use crate::data::error::DataError;
use crate::data::source::Passage;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

/// The tokens of some passages, now or soon.
#[derive(Debug)]
pub(super) struct Ahead {
    passages: Vec<u32>,
    stop: Arc<AtomicBool>,
    /// `None` once it has been waited for, or if the system gave no thread.
    thread: Option<JoinHandle<Result<Vec<u32>, DataError>>>,
}

impl Ahead {
    /// Begins to read.
    pub(super) fn of(encoder: &Arc<Encoder>, all: &Arc<[Passage]>, passages: &[u32]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let work = {
            let (encoder, all) = (Arc::clone(encoder), Arc::clone(all));
            let (stop, passages) = (Arc::clone(&stop), passages.to_vec());
            move || encoder.encode_until(passages.iter().map(|&p| &all[p as usize]), &stop)
        };
        Self {
            passages: passages.to_vec(),
            stop,
            thread: Builder::new().name("text".to_owned()).spawn(work).ok(),
        }
    }

    /// The passages that it reads.
    pub(super) fn passages(&self) -> &[u32] {
        &self.passages
    }

    /// Waits for the tokens; `None` if there was no thread to read them.
    pub(super) fn wait(mut self) -> Option<Result<Vec<u32>, DataError>> {
        let joined = self.thread.take()?.join();
        Some(joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }
}

/// A reader that is no longer wanted ends after its passage.
impl Drop for Ahead {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
