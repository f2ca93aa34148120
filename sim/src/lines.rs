//! Writes inputs and outputs of peers as JSON lines, on request.

use murmurate_protocol::{Input, Output, Time};
use std::fmt::Debug;
use std::io::{Error, Write};

/// A line for every input and output.
pub(crate) struct Lines<'a> {
    to: Option<Box<dyn Write + 'a>>,
    failed: Option<Error>,
}

impl<'a> Lines<'a> {
    /// Writes lines to `out`; writes nothing without it.
    pub(crate) fn new(to: Option<Box<dyn Write + 'a>>) -> Self {
        Self { to, failed: None }
    }

    pub(crate) fn input(&mut self, at: Time, peer: usize, input: &Input) {
        self.line(at, peer, "in", input);
    }

    pub(crate) fn output(&mut self, at: Time, peer: usize, output: &Output) {
        self.line(at, peer, "out", output);
    }

    fn line(&mut self, at: Time, peer: usize, way: &str, what: &dyn Debug) {
        let Some(to) = self.to.as_mut() else {
            return;
        };
        let at = at.as_nanos();
        let what = serde_json::Value::from(format!("{what:?}"));
        let written = writeln!(to, "{{\"at_ns\":{at},\"peer\":{peer},\"{way}\":{what}}}");
        self.failed = self.failed.take().or(written.err());
    }

    /// Flushes the output and returns the first error of writing.
    pub(crate) fn end(&mut self) -> Option<Error> {
        let flushed = self.to.as_mut().map(|to| to.flush());
        let failed = self.failed.take();
        failed.or(flushed.and_then(Result::err))
    }
}
