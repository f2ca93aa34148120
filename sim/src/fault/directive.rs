//! The owner directs something at one machine. As in the daemon, machines tell those that they are linked with
//! what is new, compare all that they know when a link comes up, and keep it over crashes.

use crate::due::Due;
use crate::error::SimError;
use crate::scenario::{Checker, ScenarioError};
use crate::swarm::Swarm;
use murmurate_protocol::{Change, Directive, Input, RateFactor, Round};
use murmurate_strategies::compress::CODECS;
use serde::Deserialize;

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum RawChange {
    Pause,
    Resume,
    Rounds,
    InnerSteps,
    LearningRate,
    Codec,
}

/// The `directive` of a fault as written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawDirective {
    change: RawChange,
    from: Option<u64>,
    value: Option<f64>,
    codec: Option<String>,
}

impl RawDirective {
    /// The directive with this number, which the key `name` describes.
    pub(super) fn numbered(
        self,
        number: usize,
        check: &Checker<'_>,
        name: &str,
    ) -> Result<Directive, ScenarioError> {
        let value = || {
            let given = self.value.filter(|value| *value >= 0.0);
            given.ok_or_else(|| check.refuse(name, "needs a `value` of at least zero"))
        };
        let change = match self.change {
            RawChange::Pause => Change::Pause,
            RawChange::Resume => Change::Resume,
            RawChange::Rounds => Change::Rounds(value()? as u64),
            RawChange::InnerSteps => Change::InnerSteps(value()? as u32),
            RawChange::LearningRate => Change::LearningRate(
                RateFactor::new(value()?)
                    .ok_or_else(|| check.refuse(name, "needs a `value` from 0.000001 to 1000"))?,
            ),
            RawChange::Codec => Change::Codec(match self.codec.as_deref() {
                None => None,
                Some(name) => {
                    let found = CODECS.iter().find(|spec| spec.name == name);
                    let unknown = || {
                        check.refuse(
                            name,
                            "needs a `codec` that exists, or none for that of the strategy",
                        )
                    };
                    Some(found.ok_or_else(unknown)?.tag)
                }
            }),
        };
        Ok(Directive {
            number: number as u32 + 1,
            at_s: 0,
            from: Round(self.from.unwrap_or(0)),
            change,
        })
    }
}

impl Swarm<'_> {
    /// A machine hears of directives. It tells the others what was new.
    pub(crate) fn hear_directives(
        &mut self,
        index: usize,
        directives: Vec<Directive>,
    ) -> Result<(), SimError> {
        let new = self.slots[index].directives.merge(directives);
        if new.is_empty() || self.slots[index].host.is_none() {
            return Ok(());
        }
        let linked: Vec<usize> = self.net.linked(index).collect();
        for other in linked {
            self.send_directives(index, other, new.clone());
        }
        self.tell_directives(index)
    }

    /// Two machines compare what they know when their link comes up.
    pub(crate) fn compare_directives(&mut self, index: usize, other: usize) {
        let known: Vec<Directive> = self.slots[index].directives.iter().copied().collect();
        self.send_directives(index, other, known);
    }

    /// Tells the machine's own peer what it knows.
    pub(crate) fn tell_directives(&mut self, index: usize) -> Result<(), SimError> {
        let known: Vec<Directive> = self.slots[index].directives.iter().copied().collect();
        match known.is_empty() {
            true => Ok(()),
            false => self.feed(index, Input::Directives(known)),
        }
    }

    fn send_directives(&mut self, index: usize, other: usize, directives: Vec<Directive>) {
        if directives.is_empty() || !self.net.reachable(index, other) {
            return;
        }
        let due = Due::Directives {
            host: other as u32,
            directives,
        };
        self.queue
            .push(self.now + self.net.latency(index, other), due);
    }
}
