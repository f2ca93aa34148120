//! What is wrong with the swarm, on the console: who reads only a daemon's output hears that it trains alone, that
//! others are gone or that its work does not count, and when that is over. Other troubles have lines of their own.

use crate::api::{Trouble, TroubleKind};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The troubles that are printed.
const PRINTED: [TroubleKind; 4] = [
    TroubleKind::Isolated,
    TroubleKind::NoResult,
    TroubleKind::LeftOut,
    TroubleKind::PeersLost,
];

/// Pause between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// How long a trouble lasts before it is printed: links come and go.
const LASTS: Duration = Duration::from_secs(10);

/// How long the same kind is not printed again.
const QUIET: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct Alarm {
    since: Instant,
    /// When it was printed, and as what.
    printed: Option<(Instant, String)>,
    over: bool,
}

/// The troubles of a daemon, as far as they were printed.
#[derive(Debug, Default)]
pub(super) struct Alarms {
    looked: Option<Instant>,
    alarms: BTreeMap<TroubleKind, Alarm>,
}

impl Alarms {
    /// Whether it is time for a look.
    pub(super) fn are_due(&mut self, now: Instant) -> bool {
        let due = self
            .looked
            .is_none_or(|last| now.duration_since(last) >= LOOK_EVERY);
        if due {
            self.looked = Some(now);
        }
        due
    }

    /// The lines to print now.
    pub(super) fn lines(&mut self, now: Instant, troubles: &[Trouble]) -> Vec<String> {
        let mut lines = Vec::new();
        for trouble in troubles.iter().filter(|it| PRINTED.contains(&it.kind)) {
            let alarm = self.alarms.entry(trouble.kind).or_insert_with(|| Alarm {
                since: now,
                printed: None,
                over: false,
            });
            if std::mem::take(&mut alarm.over) {
                alarm.since = now;
            }
            let printed = alarm.printed.as_ref();
            let quiet = printed
                .is_some_and(|(at, text)| *text == trouble.text || now.duration_since(*at) < QUIET);
            if now.duration_since(alarm.since) >= LASTS && !quiet {
                lines.push(format!("{} {}", trouble.text, trouble.action));
                alarm.printed = Some((now, trouble.text.clone()));
            }
        }
        let there = |kind: &TroubleKind| troubles.iter().any(|it| it.kind == *kind);
        for (kind, alarm) in &mut self.alarms {
            if alarm.over || there(kind) {
                continue;
            }
            alarm.over = true;
            if let Some((_, text)) = alarm.printed.take() {
                lines.push(format!("That is over: {text}"));
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trouble(kind: TroubleKind, text: &str) -> Trouble {
        Trouble {
            kind,
            since_unix_s: None,
            peers: Vec::new(),
            text: text.to_owned(),
            action: "Mend it.".to_owned(),
        }
    }

    #[test]
    fn what_lasts_is_printed_once_and_when_it_is_over() {
        let start = Instant::now();
        let mut alarms = Alarms::default();
        let alone = [trouble(TroubleKind::Isolated, "It trains alone.")];
        assert!(alarms.are_due(start) && !alarms.are_due(start));
        assert!(alarms.lines(start, &alone).is_empty(), "it may pass");
        let now = start + LASTS;
        assert_eq!(alarms.lines(now, &alone), ["It trains alone. Mend it."]);
        assert!(alarms.lines(now + 2 * QUIET, &alone).is_empty());
        assert_eq!(
            alarms.lines(now + 2 * QUIET, &[]),
            ["That is over: It trains alone."]
        );
        assert!(alarms.lines(now + 3 * QUIET, &[]).is_empty());
        // It begins again.
        let again = now + 4 * QUIET;
        assert!(alarms.lines(again, &alone).is_empty());
        assert_eq!(alarms.lines(again + LASTS, &alone).len(), 1);
    }

    #[test]
    fn others_have_lines_of_their_own_and_changes_wait() {
        let start = Instant::now();
        let mut alarms = Alarms::default();
        let lost = |names: &str| {
            [
                trouble(TroubleKind::PeersLost, names),
                trouble(TroubleKind::Unsaved, "No."),
            ]
        };
        alarms.lines(start, &lost("A"));
        let now = start + LASTS;
        assert_eq!(alarms.lines(now, &lost("A")), ["A Mend it."]);
        assert!(alarms.lines(now + QUIET / 2, &lost("A and B")).is_empty());
        assert_eq!(
            alarms.lines(now + QUIET, &lost("A and B")),
            ["A and B Mend it."]
        );
    }
}
