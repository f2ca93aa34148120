//! The traces: a span for each round, and in it one for each phase and each wait.

use crate::instruments::Values;
use opentelemetry::trace::{SpanBuilder, Status, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use std::time::{Duration, SystemTime};

/// Phases that belong to a round. In others the daemon is between rounds, or before the first one.
const OF_ROUNDS: [&str; 4] = ["train", "exchange", "apply", "settle"];

/// End of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired {
    /// The awaited thing has come.
    No,
    /// Its deadline has passed.
    Yes,
}

#[derive(Debug)]
pub(crate) struct Spans {
    tracer: SdkTracer,
    round: Option<(u64, Context)>,
    phase: Option<Context>,
}

impl Spans {
    pub(crate) fn new(provider: &SdkTracerProvider) -> Self {
        Self {
            tracer: provider.tracer("murmurate"),
            round: None,
            phase: None,
        }
    }

    /// Enters a phase, and with the first one of a round the round.
    pub(crate) fn phase(&mut self, at: SystemTime, round: u64, phase: &str) {
        end(self.phase.take(), at);
        let in_round = OF_ROUNDS.contains(&phase);
        let same = in_round && self.round.as_ref().is_some_and(|(open, _)| *open == round);
        if !same {
            let over = self.round.take();
            end(over.map(|(_, span)| span), at);
        }
        let number = KeyValue::new("murmurate.round", i64::try_from(round).unwrap_or(i64::MAX));
        if in_round && self.round.is_none() {
            let span = self.tracer.span_builder("round");
            let span = span.with_start_time(at).with_attributes([number.clone()]);
            self.round = Some((round, self.begin(span)));
        }
        let span = self.tracer.span_builder(phase.to_owned());
        let span = span.with_start_time(at).with_attributes([number]);
        self.phase = Some(self.begin(span));
    }

    /// A wait that ends now is a span of its own.
    pub(crate) fn waited(&self, at: SystemTime, what: &str, waited: Duration, expired: Expired) {
        let began = at.checked_sub(waited).unwrap_or(at);
        let span = self.tracer.span_builder(format!("wait for {what}"));
        let context = self.begin(span.with_start_time(began));
        if expired == Expired::Yes {
            context
                .span()
                .set_status(Status::error("its deadline has passed"));
        }
        end(Some(context), at);
    }

    /// Notes the values of a round that has ended in its span.
    pub(crate) fn measured(&self, values: &Values) {
        let Some((_, round)) = &self.round else {
            return;
        };
        let known = [
            ("murmurate.loss", values.loss),
            ("murmurate.test.loss", values.test_loss),
            ("murmurate.test.accuracy", values.test_accuracy),
        ];
        for (key, value) in known {
            if let Some(value) = value.filter(|value| value.is_finite()) {
                round.span().set_attribute(KeyValue::new(key, value));
            }
        }
    }

    pub(crate) fn end(&mut self, at: SystemTime) {
        end(self.phase.take(), at);
        let round = self.round.take();
        end(round.map(|(_, span)| span), at);
    }

    /// Begins a span, in that of the round if there is one.
    fn begin(&self, span: SpanBuilder) -> Context {
        let none = Context::new();
        let parent = self.round.as_ref().map_or(&none, |(_, round)| round);
        let span = self.tracer.build_with_context(span, parent);
        parent.with_span(span)
    }
}

fn end(span: Option<Context>, at: SystemTime) {
    if let Some(context) = span {
        context.span().end_with_timestamp(at);
    }
}
