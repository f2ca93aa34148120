//! A build that exports nothing.

use crate::api::{Figures, Status};
use murmurate_protocol::Event;

/// The address of a collector; there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collector {}

/// Refuses the address of a collector.
///
/// # Errors
/// Always, with what to do.
pub(crate) fn collector(_url: &str) -> Result<Collector, String> {
    Err(
        "this program cannot export: build it with `cargo build --release --features otlp`, or leave the \
         key out"
            .to_owned(),
    )
}

/// Exports what a daemon does; there is none.
#[derive(Debug)]
pub(crate) enum Telemetry {}

impl Telemetry {
    pub(crate) fn start(collector: &Collector, _status: &Status) -> Result<Self, String> {
        match *collector {}
    }

    pub(crate) fn observe(&mut self, _event: &Event, _figures: impl FnOnce() -> Figures) {
        match *self {}
    }

    pub(crate) fn news(&self) -> Option<String> {
        match *self {}
    }

    pub(crate) fn finish(self) {
        match self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_refused_with_the_command_that_helps() {
        let line = collector("http://127.0.0.1:4318").unwrap_err();
        assert!(line.contains("--features otlp"), "{line}");
    }
}
