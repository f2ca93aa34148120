//! Whether and when this daemon tells the others how it is.

use crate::config::DaemonConfig;
use murmurate_protocol::vitals::DaemonName;
use std::time::{Duration, Instant};

/// Time between two summaries.
const EVERY: Duration = Duration::from_secs(5);

/// What the daemon's operator lets it say, and when it did so last.
#[derive(Debug)]
pub(super) struct Voice {
    pub(super) name: Option<DaemonName>,
    speaks: bool,
    spoke: Option<Instant>,
}

impl Voice {
    pub(super) fn new(config: &DaemonConfig) -> Self {
        Self {
            name: config.name.clone(),
            speaks: config.share_vitals,
            spoke: None,
        }
    }

    /// Whether it is time to speak again.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let due = self
            .spoke
            .is_none_or(|spoke| now.duration_since(spoke) >= EVERY);
        if self.speaks && due {
            self.spoke = Some(now);
        }
        self.speaks && due
    }
}
