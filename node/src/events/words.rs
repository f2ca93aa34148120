//! Entries in words, for the views that show them to people.

use super::entry::{Entry, Kind};
use serde_json::Value;

/// Seconds of a day.
const DAY_S: u64 = 24 * 3600;

impl Entry {
    /// The kind with its fields, such as `suspected peer=0123abcd`. Ids appear as `name` says.
    pub fn words(&self, name: &dyn Fn(&str) -> String) -> String {
        let mut line = self.kind.name();
        if let Ok(Value::Object(fields)) = serde_json::to_value(&self.kind) {
            for (key, value) in fields.iter().filter(|(key, _)| *key != "kind") {
                line.push_str(&format!(" {key}={}", words(value, name)));
            }
        }
        line
    }
}

impl Kind {
    /// Whether it is a usual step of a round, of which a view for people shows few.
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

    /// Whether something went wrong, at this daemon or at another one.
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
