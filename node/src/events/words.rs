//! Entries in words, for the views that show them to people, and what daemons are called in them.

use super::entry::{Entry, Kind};
use murmurate_protocol::SortedMap;
use serde_json::Value;
use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds of a day.
const DAY_S: u64 = 24 * 3600;

impl Kind {
    /// Its name with its fields, such as `suspected peer=0123abcd`. Ids appear as `name` says.
    pub fn words(&self, name: &dyn Fn(&str) -> String) -> String {
        let mut line = self.name().to_owned();
        if let Ok(Value::Object(fields)) = serde_json::to_value(self) {
            for (key, value) in fields.iter().filter(|(key, _)| *key != "kind") {
                line.push_str(&format!(" {key}={}", words(value, name)));
            }
        }
        line
    }

    /// A usual step of a round: a view for people shows few of these.
    pub const fn is_step(&self) -> bool {
        matches!(
            self,
            Self::Phase { .. }
                | Self::Trained { .. }
                | Self::Group { .. }
                | Self::Seated { .. }
                | Self::Decided { .. }
                | Self::Mixed { .. }
                | Self::RoundEnded { .. }
                | Self::Evaluated { .. }
                | Self::Saved
                | Self::Waited { .. }
        )
    }

    /// Something went wrong, at this daemon or at another one.
    pub const fn is_trouble(&self) -> bool {
        matches!(
            self,
            Self::PeerDown { .. }
                | Self::Suspected { .. }
                | Self::Refused { .. }
                | Self::RefusedBy { .. }
                | Self::Differs { .. }
                | Self::Voided { .. }
                | Self::Alone { .. }
                | Self::Waiting { .. }
                | Self::Misbehaved { .. }
                | Self::Lied { .. }
                | Self::Absent { .. }
                | Self::WorkFailed { .. }
                | Self::JoinFailed { .. }
                | Self::ClockOff { .. }
                | Self::BranchSaved { .. }
                | Self::SameData { .. }
                | Self::Elsewhere
                | Self::Altered { .. }
                | Self::Lost { .. }
        )
    }
}

/// A value for people: ids as `name` says, numbers with few digits.
fn words(value: &Value, name: &dyn Fn(&str) -> String) -> String {
    match value {
        Value::String(text) if text.len() == 64 => name(text),
        Value::String(text) if text.contains(' ') => format!("{text:?}"),
        Value::String(text) => text.clone(),
        Value::Array(all) => {
            let all: Vec<String> = all.iter().map(|value| words(value, name)).collect();
            all.join(",")
        }
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(number) => format!("{number:.3}"),
            None => number.to_string(),
        },
        other => other.to_string(),
    }
}

/// The Unix time by this machine's clock, seconds.
pub fn unix_s() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs_f64()
}

/// A Unix time as date and time of day, UTC.
///
/// **Source:** Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
pub fn utc(unix_s: f64) -> String {
    let millis = (unix_s * 1000.0).max(0.0) as u64;
    let (seconds, millis) = (millis / 1000, millis % 1000);
    let (days, of_day) = (seconds / DAY_S + 719_468, seconds % DAY_S);
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{millis:03}")
}

/// The names of daemons by id.
#[derive(Clone, Debug, Default)]
pub struct Names {
    by_id: SortedMap<String, String>,
    /// Number of daemons with each name.
    count: SortedMap<String, usize>,
}

impl Names {
    /// The names that are in these entries.
    pub fn of(entries: &[Entry]) -> Self {
        let mut by_id = SortedMap::new();
        for entry in entries {
            match &entry.kind {
                Kind::Started {
                    name: Some(name), ..
                } => by_id.insert(entry.daemon.clone(), name.clone()),
                Kind::Named { peer, name } => by_id.insert(peer.clone(), name.clone()),
                _ => None,
            };
        }
        by_id.into_iter().collect()
    }

    /// Display name of a daemon. The beginning of the id follows a name that several daemons have.
    pub fn call(&self, id: &str) -> String {
        match self.by_id.get(id) {
            None => begin(id),
            Some(name) if self.count.get(name) == Some(&1) => name.clone(),
            Some(name) => format!("{name} {}", begin(id)),
        }
    }
}

impl FromIterator<(String, String)> for Names {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(named: I) -> Self {
        let by_id: SortedMap<String, String> = named.into_iter().collect();
        let mut count = SortedMap::new();
        for name in by_id.values() {
            *count.entry(name.clone()).or_default() += 1;
        }
        Self { by_id, count }
    }
}

fn begin(id: &str) -> String {
    id.chars().take(8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::VERSION;

    #[test]
    fn times_are_dates() {
        assert_eq!(utc(0.0), "1970-01-01 00:00:00.000");
        assert_eq!(utc(951_782_400.5), "2000-02-29 00:00:00.500");
        assert_eq!(utc(1_767_225_599.999), "2025-12-31 23:59:59.999");
    }

    #[test]
    fn a_step_is_no_trouble() {
        let peer = || "ab".repeat(32);
        let lost = Kind::PeerDown { peer: peer() };
        assert!(lost.is_trouble() && !lost.is_step());
        assert!(Kind::Saved.is_step() && !Kind::Saved.is_trouble());
        let up = Kind::PeerUp { peer: peer() };
        assert!(!up.is_step() && !up.is_trouble());
    }

    #[test]
    fn a_daemon_is_called_as_it_calls_itself() {
        let (a, b, c, d) = (
            "a".repeat(64),
            "b".repeat(64),
            "c".repeat(64),
            "d".repeat(64),
        );
        let entry = |kind| Entry {
            v: VERSION,
            seq: 1,
            time: 1.0,
            daemon: a.clone(),
            round: 0,
            kind,
        };
        let named = |peer: &String, name: &str| {
            entry(Kind::Named {
                peer: peer.clone(),
                name: name.to_owned(),
            })
        };
        let started = entry(Kind::Started {
            version: "1".to_owned(),
            run: "r".to_owned(),
            name: Some("gpu-1".to_owned()),
        });
        let names = Names::of(&[started, named(&b, "old"), named(&b, "x"), named(&c, "x")]);
        let called = [&a, &b, &c, &d].map(|id| names.call(id));
        assert_eq!(called, ["gpu-1", "x bbbbbbbb", "x cccccccc", "dddddddd"]);
    }
}
