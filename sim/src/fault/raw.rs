//! A `[[fault]]` table as written, and its conversion to a valid [`Fault`].

use super::{Effect, Fault, Lie, When};
use crate::scenario::{Checker, ScenarioError};
use core::time::Duration;
use murmurate_protocol::{Change, Directive, Phase, RateFactor, Round, Time};
use murmurate_strategies::compress::CODECS;
use serde::Deserialize;

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Crash,
    Straggler,
    Pause,
    MissingLinks,
    Partition,
    Join,
    Leave,
    Churn,
    Byzantine,
    ClockSkew,
    Directive,
    RandomCrashes,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawPhase {
    Train,
    Exchange,
    Apply,
    Settle,
}

/// Two machines.
type Pair = (usize, usize);

/// A `[[fault]]` table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawFault {
    kind: Kind,
    peer: Option<usize>,
    peers: Option<Vec<usize>>,
    at_s: Option<f64>,
    round: Option<u64>,
    phase: Option<RawPhase>,
    delay_s: Option<f64>,
    restart_after_s: Option<f64>,
    lasts_s: Option<f64>,
    factor: Option<f64>,
    share: Option<f64>,
    mean_s: Option<f64>,
    until_s: Option<f64>,
    down_max: Option<usize>,
    down_s: Option<Vec<f64>>,
    up_s: Option<Vec<f64>>,
    lie: Option<Lie>,
    ahead_s: Option<f64>,
    directive: Option<RawDirective>,
}

/// Reports keys of one table under their full names.
struct Keys<'a, 'b> {
    check: &'a Checker<'b>,
    index: usize,
}

impl Keys<'_, '_> {
    fn name(&self, key: &str) -> String {
        format!("fault[{}].{key}", self.index)
    }

    fn refuse(&self, key: &str, reason: &str) -> ScenarioError {
        self.check.refuse(&self.name(key), reason)
    }

    fn need<T>(&self, key: &str, value: Option<T>) -> Result<T, ScenarioError> {
        value.ok_or_else(|| self.refuse(key, "is missing: this kind of fault needs it"))
    }

    fn seconds(&self, key: &str, value: f64) -> Result<Duration, ScenarioError> {
        self.check.seconds(&self.name(key), value)
    }
}

impl RawFault {
    /// Checks the table for a scenario with this number of machines. `index` is its position in the
    /// file.
    pub(crate) fn validate(
        self,
        check: &Checker<'_>,
        index: usize,
        peers: usize,
    ) -> Result<Vec<Fault>, ScenarioError> {
        let keys = Keys { check, index };
        self.refuse_idle_keys(&keys)?;
        match self.kind {
            Kind::Churn => self.churn(&keys, peers),
            _ => Ok(vec![self.plain(&keys, peers)?]),
        }
    }

    /// Converts a trace of one machine's absences: a crash and a restart for each.
    fn churn(&self, keys: &Keys<'_, '_>, peers: usize) -> Result<Vec<Fault>, ScenarioError> {
        let check = keys.check;
        let peer = check.peer(&keys.name("peer"), keys.need("peer", self.peer)?, peers)?;
        let down = keys.need("down_s", self.down_s.clone())?;
        let up = self.up_s.clone().unwrap_or_default();
        // The last absence may have no end.
        if down.is_empty() || up.len() + 1 < down.len() || up.len() > down.len() {
            let reason = format!("has {} times for {} of `down_s`", up.len(), down.len());
            return Err(keys.refuse("up_s", &reason));
        }
        let mut before = 0.0;
        let mut faults = Vec::with_capacity(down.len());
        for (number, at) in down.iter().enumerate() {
            let back = up.get(number).copied();
            if *at < before || back.is_some_and(|back| back <= *at) {
                return Err(keys.refuse("down_s", "and `up_s` must go on in turn"));
            }
            before = back.unwrap_or(*at);
            let when = When::At(Time::ZERO + keys.seconds("down_s", *at)?);
            let restart_after = back.map(|b| keys.seconds("up_s", b - at)).transpose()?;
            faults.push(Fault {
                when: Some(when),
                peer,
                effect: Effect::Crash { restart_after },
            });
        }
        Ok(faults)
    }

    /// The pairs that cannot reach each other.
    fn pairs(&self, keys: &Keys<'_, '_>, peers: usize) -> Result<Vec<Pair>, ScenarioError> {
        let ends = self.peers.clone().unwrap_or_default();
        match ends[..] {
            [] if self.share.unwrap_or(0.0) > 0.0 => Ok(Vec::new()),
            [a, b] if a != b && a.max(b) < peers => Ok(vec![(a, b)]),
            _ => {
                let reason = "must be two machines; or give a `share` of all pairs";
                Err(keys.refuse("peers", reason))
            }
        }
    }

    fn side(&self, keys: &Keys<'_, '_>, peers: usize) -> Result<Vec<usize>, ScenarioError> {
        let members = keys.need("peers", self.peers.clone())?;
        if members.is_empty() || members.len() >= peers {
            return Err(keys.refuse("peers", "must leave a machine on either side"));
        }
        for member in &members {
            keys.check.peer(&keys.name("peers"), *member, peers)?;
        }
        Ok(members)
    }

    fn plain(self, keys: &Keys<'_, '_>, peers: usize) -> Result<Fault, ScenarioError> {
        let check = keys.check;
        let restart_after = self
            .restart_after_s
            .map(|s| keys.seconds("restart_after_s", s))
            .transpose()?;
        let (mut pairs, mut side, mut peer) = (Vec::new(), Vec::new(), 0);
        match self.kind {
            Kind::MissingLinks => pairs = self.pairs(keys, peers)?,
            Kind::Partition => {
                side = self.side(keys, peers)?;
                peer = side[0];
            }
            Kind::RandomCrashes => {}
            _ => peer = check.peer(&keys.name("peer"), keys.need("peer", self.peer)?, peers)?,
        }
        let when = match self.kind {
            Kind::ClockSkew | Kind::RandomCrashes => None,
            _ => Some(self.when(keys)?),
        };
        let effect = match self.kind {
            Kind::Crash => Effect::Crash { restart_after },
            Kind::Straggler => {
                let factor = keys.need("factor", self.factor)?;
                Effect::Straggler {
                    factor: check.within(&keys.name("factor"), factor, (1.0, 1e6))?,
                    lasts: self.lasts(keys)?,
                }
            }
            Kind::Pause => Effect::Pause {
                lasts: self.lasts(keys)?,
            },
            Kind::MissingLinks => {
                let share = self.share.unwrap_or(0.0);
                let share = check.within(&keys.name("share"), share, (0.0, 0.9))?;
                Effect::MissingLinks { pairs, share }
            }
            Kind::Partition => Effect::Partition {
                peers: side,
                lasts: self.lasts(keys)?,
            },
            Kind::Join => Effect::Join,
            Kind::Leave => Effect::Leave,
            Kind::Directive => {
                let directive = keys.need("directive", self.directive)?;
                let name = keys.name("directive");
                Effect::Directive(directive.numbered(keys.index, check, &name)?)
            }
            Kind::Byzantine => Effect::Byzantine {
                lie: keys.need("lie", self.lie)?,
                lasts: self.lasts(keys)?,
            },
            Kind::ClockSkew => Effect::ClockSkew {
                ahead: keys.seconds("ahead_s", keys.need("ahead_s", self.ahead_s)?)?,
            },
            Kind::RandomCrashes | Kind::Churn => self.random_crashes(keys, restart_after, peers)?,
        };
        Ok(Fault { when, peer, effect })
    }

    fn random_crashes(
        &self,
        keys: &Keys<'_, '_>,
        restart_after: Option<Duration>,
        peers: usize,
    ) -> Result<Effect, ScenarioError> {
        let mean = keys.need("mean_s", self.mean_s)?;
        let until = keys.need("until_s", self.until_s)?;
        keys.check.within(&keys.name("mean_s"), mean, (1e-6, 1e9))?;
        Ok(Effect::RandomCrashes {
            mean: keys.seconds("mean_s", mean)?,
            restart_after,
            until: Time::ZERO + keys.seconds("until_s", until)?,
            down_max: self.down_max.unwrap_or(peers / 2),
        })
    }

    fn lasts(&self, keys: &Keys<'_, '_>) -> Result<Duration, ScenarioError> {
        keys.seconds("lasts_s", keys.need("lasts_s", self.lasts_s)?)
    }

    fn when(&self, keys: &Keys<'_, '_>) -> Result<When, ScenarioError> {
        match (self.at_s, self.round) {
            (Some(_), Some(_)) => Err(keys.refuse("at_s", "and `round` exclude each other")),
            (None, None) => Err(keys.refuse("at_s", "is missing: give `at_s` or `round`")),
            (Some(at), None) if self.phase.is_some() || self.delay_s.is_some() => Err(keys.refuse(
                "at_s",
                &format!("is {at}: `phase` and `delay_s` go with `round`"),
            )),
            (Some(at), None) => Ok(When::At(Time::ZERO + keys.seconds("at_s", at)?)),
            (None, Some(round)) => Ok(When::In {
                round: Round(round),
                phase: match self.phase {
                    None | Some(RawPhase::Train) => Phase::Train,
                    Some(RawPhase::Exchange) => Phase::Exchange,
                    Some(RawPhase::Apply) => Phase::Apply,
                    Some(RawPhase::Settle) => Phase::Settle,
                },
                delay: keys.seconds("delay_s", self.delay_s.unwrap_or(0.0))?,
            }),
        }
    }

    fn refuse_idle_keys(&self, keys: &Keys<'_, '_>) -> Result<(), ScenarioError> {
        use Kind::{
            Byzantine, Churn, ClockSkew, Crash, Directive, Join, Leave, MissingLinks, Partition,
            Pause, RandomCrashes, Straggler,
        };
        let one = [
            Crash, Straggler, Pause, Join, Leave, Churn, Byzantine, ClockSkew, Directive,
        ];
        let timed = [
            Crash,
            Straggler,
            Pause,
            Partition,
            Join,
            Leave,
            Byzantine,
            Directive,
            MissingLinks,
        ];
        let table: [(&str, bool, &[Kind]); 18] = [
            ("directive", self.directive.is_some(), &[Directive]),
            ("down_s", self.down_s.is_some(), &[Churn]),
            ("up_s", self.up_s.is_some(), &[Churn]),
            ("lie", self.lie.is_some(), &[Byzantine]),
            ("ahead_s", self.ahead_s.is_some(), &[ClockSkew]),
            ("peer", self.peer.is_some(), &one),
            ("peers", self.peers.is_some(), &[Partition, MissingLinks]),
            ("share", self.share.is_some(), &[MissingLinks]),
            ("at_s", self.at_s.is_some(), &timed),
            ("round", self.round.is_some(), &timed),
            ("phase", self.phase.is_some(), &timed),
            ("delay_s", self.delay_s.is_some(), &timed),
            (
                "restart_after_s",
                self.restart_after_s.is_some(),
                &[Crash, RandomCrashes],
            ),
            (
                "lasts_s",
                self.lasts_s.is_some(),
                &[Straggler, Pause, Partition, Byzantine],
            ),
            ("factor", self.factor.is_some(), &[Straggler]),
            ("mean_s", self.mean_s.is_some(), &[RandomCrashes]),
            ("until_s", self.until_s.is_some(), &[RandomCrashes]),
            ("down_max", self.down_max.is_some(), &[RandomCrashes]),
        ];
        for (key, given, kinds) in table {
            if given && !kinds.contains(&self.kind) {
                return Err(keys.refuse(key, "means nothing for this kind of fault: remove it"));
            }
        }
        Ok(())
    }
}

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

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDirective {
    change: RawChange,
    from: Option<u64>,
    value: Option<f64>,
    codec: Option<String>,
}

impl RawDirective {
    /// The directive with this number, which the key `name` describes.
    fn numbered(
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
