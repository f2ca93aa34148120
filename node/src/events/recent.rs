//! The last entries in memory, for pages that follow them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// Entries in memory.
pub const RECENT_MAX: usize = 1024;

/// An entry: its number, and its line of JSON.
pub type Line = (u64, Arc<str>);

/// The last entries as lines of JSON, shared between the daemon and its HTTP server.
#[derive(Clone, Debug)]
pub struct Recent {
    lines: Arc<Mutex<VecDeque<Line>>>,
    newest: Arc<watch::Sender<u64>>,
}

impl Default for Recent {
    fn default() -> Self {
        Self {
            lines: Arc::default(),
            newest: Arc::new(watch::Sender::new(0)),
        }
    }
}

impl Recent {
    /// Adds an entry.
    pub(super) fn push(&self, seq: u64, line: &str) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push_back((seq, line.into()));
        if lines.len() > RECENT_MAX {
            lines.pop_front();
        }
        drop(lines);
        self.newest.send_replace(seq);
    }

    /// The entries after number `seq` that are still here, oldest first, this many at most.
    pub fn after(&self, seq: u64, most: usize) -> Vec<Line> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let newer = lines.iter().filter(|(number, _)| *number > seq);
        newer.take(most).cloned().collect()
    }

    /// The number of the newest entry, and its changes.
    pub fn newest(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }
}
