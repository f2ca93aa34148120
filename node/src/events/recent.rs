//! The last entries in memory, for pages that follow them. Each kind has a place of its own, so that what
//! happens in every round does not push out what happens seldom.

use super::entry::Kind;
use std::collections::{HashMap, VecDeque};
use std::mem::{Discriminant, discriminant};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// Entries of each kind in memory.
pub const OF_KIND_MAX: usize = 256;

/// An entry: its number, and its line of JSON.
pub type Line = (u64, Arc<str>);

/// The last entries as lines of JSON, shared between the daemon and its HTTP server.
#[derive(Clone, Debug)]
pub struct Recent {
    lines: Arc<Mutex<HashMap<Discriminant<Kind>, VecDeque<Line>>>>,
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
    pub(super) fn push(&self, seq: u64, kind: &Kind, line: &str) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let alike = lines.entry(discriminant(kind)).or_default();
        alike.push_back((seq, line.into()));
        if alike.len() > OF_KIND_MAX {
            alike.pop_front();
        }
        drop(lines);
        self.newest.send_replace(seq);
    }

    /// The entries after number `seq` that are still here, oldest first, this many at most.
    pub fn after(&self, seq: u64, most: usize) -> Vec<Line> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let newer = lines.values().flat_map(|alike| {
            let newest_first = alike.iter().rev();
            newest_first.take_while(|(number, _)| *number > seq)
        });
        let mut newer: Vec<Line> = newer.cloned().collect();
        newer.sort_unstable_by_key(|(number, _)| *number);
        newer.truncate(most);
        newer
    }

    /// The number of the newest entry, and its changes.
    pub fn newest(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }
}
