//! Troubles of the swarm, on the console: who reads only a daemon's output hears that it trains alone, that
//! others are gone or that its work does not count, and when that is over. Other troubles have lines of their own:
//! rounds in a row without an agreed result, while the model stands still however long the daemons train, and
//! links that go through another daemon because no direct way was found.

use crate::api::{Trouble, TroubleKind};
use crate::net::Path;
use murmurate_protocol::{AgreementPlan, Event, PeerId, Round, SortedMap};
use std::time::{Duration, Instant};

const PRINTED: [TroubleKind; 4] = [
    TroubleKind::Isolated,
    TroubleKind::NoResult,
    TroubleKind::LeftOut,
    TroubleKind::PeersLost,
];

const LOOK_EVERY: Duration = Duration::from_secs(2);

/// How long a trouble lasts before it is printed: links come and go.
const LASTS: Duration = Duration::from_secs(10);

/// How long the same kind is not printed again.
const QUIET: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct Alarm {
    since: Instant,
    printed: Option<(Instant, String)>,
    over: bool,
}

#[derive(Debug, Default)]
pub(super) struct Alarms {
    looked: Option<Instant>,
    alarms: SortedMap<TroubleKind, Alarm>,
}

impl Alarms {
    pub(super) fn are_due(&mut self, now: Instant) -> bool {
        let due = self
            .looked
            .is_none_or(|last| now.duration_since(last) >= LOOK_EVERY);
        if due {
            self.looked = Some(now);
        }
        due
    }

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

/// Rounds in a row without a result after which the operator is told, and then after ten times as many. One void
/// round is no news: a daemon has died.
const FIRST_TOLD: u64 = 5;

/// What can be done about rounds that have no result.
const ADVICE: &str = "exchanges end before all slices have arrived; send less (a codec such as int8), or raise \
                      `strategy.deadlines.ceiling_ms` at all daemons (and `initial_ms`, so that the first \
                      rounds count too)";

/// As [`ADVICE`], where a group sums the contributions of all its members or of none.
const ADVICE_WHOLE: &str = "in each a member's contribution was missing, because it left, was late or failed, and masked \
                            contributions are summed all or none; stop daemons that come and go, give slow ones \
                            fewer inner steps, raise `strategy.deadlines.ceiling_ms` at all daemons, or \
                            `strategy.synchronization.fraction` where it draws too few";

/// Void rounds since the last one with a result.
#[derive(Debug)]
pub(super) struct VoidRounds {
    /// What a result needs.
    terms: AgreementPlan,
    /// Members of the last group.
    group: Option<usize>,
    count: u64,
    last: Option<Round>,
    /// How many in a row are told next.
    told_at: u64,
    /// A round of this life of the daemon had a result.
    any_result: bool,
}

impl VoidRounds {
    /// With the terms of a result.
    pub(super) const fn new(terms: AgreementPlan) -> Self {
        Self {
            terms,
            group: None,
            count: 0,
            last: None,
            told_at: FIRST_TOLD,
            any_result: false,
        }
    }

    /// What to do.
    fn advice(&self) -> String {
        match self.group {
            Some(members) if members < usize::from(self.terms.contributions) => format!(
                "{members} of the daemons take part, and a result needs contributions of {} \
                 (`strategy.aggregation.members` or `liars`): start more daemons{}",
                self.terms.contributions,
                // The fewest whose sum may be opened cannot be lowered.
                if self.terms.whole {
                    ""
                } else {
                    ", or lower that at all of them"
                }
            ),
            _ if self.terms.whole => ADVICE_WHOLE.to_owned(),
            _ => ADVICE.to_owned(),
        }
    }

    /// Why a run that is complete by its number of rounds has failed: none of them had a result.
    pub(super) fn failure(&self) -> Option<String> {
        let advice = self.why().filter(|_| !self.any_result)?;
        let text = "no round had a result, so the model is what it was at the start";
        Some(format!("{text}: {advice}"))
    }

    /// Why the last rounds had no result, where those are several in a row.
    pub(super) fn why(&self) -> Option<String> {
        (self.count >= FIRST_TOLD).then(|| self.advice())
    }

    /// Counts an event. Returns what the operator should know, if there is something.
    pub(super) fn observe(&mut self, event: &Event) -> Option<String> {
        match event {
            Event::Decided { .. } => {
                *self = Self {
                    any_result: true,
                    ..Self::new(self.terms)
                }
            }
            Event::Group { members, .. } => self.group = Some(members.len()),
            // The fragments of a round are void one by one.
            Event::Voided { round, .. } if self.last != Some(*round) => {
                self.last = Some(*round);
                self.count += 1;
                if self.count == self.told_at {
                    self.told_at *= 10;
                    return Some(format!(
                        "the last {} rounds had no result, so the model has not changed: {}",
                        self.count,
                        self.advice()
                    ));
                }
            }
            Event::Finished { rounds, .. } if self.count > 0 => {
                return Some(format!(
                    "the last {} of {rounds} rounds had no result: {}",
                    self.count,
                    self.advice()
                ));
            }
            _ => {}
        }
        None
    }
}

/// The links that were said to go through another daemon. Bounded by the number of links.
#[derive(Debug, Default)]
pub(super) struct Detours(SortedMap<PeerId, Option<PeerId>>);

/// What there is to say of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// It goes through the other daemon, if that is known.
    Through(Option<PeerId>),
    /// It is direct again.
    Direct,
}

impl Detours {
    /// A link has this path now. `in_vain` says whether direct dials were tried and failed.
    pub(super) fn path(&mut self, peer: PeerId, path: Path, in_vain: bool) -> Option<Told> {
        match path {
            Path::Relayed(relay) => {
                let new = in_vain && self.0.get(&peer) != Some(&relay);
                new.then(|| {
                    self.0.insert(peer, relay);
                    Told::Through(relay)
                })
            }
            Path::Direct | Path::Punched => self.0.remove(&peer).map(|_| Told::Direct),
        }
    }

    /// Forgets peers that are not known any more. Another link to one that is, through the same daemon, is
    /// not worth a line.
    pub(super) fn keep(&mut self, known: impl Fn(&PeerId) -> bool) {
        self.0.retain(|peer, _| known(peer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::assert_begins;
    use murmurate_protocol::{Digest, FragmentId};

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

    fn void(round: u64, fragment: u16) -> Event {
        Event::Voided {
            round: Round(round),
            fragment: FragmentId(fragment),
        }
    }

    #[test]
    fn void_rounds_in_a_row_are_told_and_one_is_not() {
        let mut rounds = VoidRounds::new(AgreementPlan::default());
        let told = (0..4).filter_map(|round| rounds.observe(&void(round, 0)));
        assert_eq!(told.count(), 0);
        let text = rounds.observe(&void(4, 0)).unwrap();
        assert_begins(&text, "the last 5 rounds had no result");
        assert!(text.contains("strategy.deadlines.ceiling_ms"), "{text}");
        // Another fragment of the same round.
        assert_eq!(rounds.observe(&void(4, 1)), None);
        let told: Vec<u64> = (5..60)
            .filter(|round| rounds.observe(&void(*round, 0)).is_some())
            .collect();
        assert_eq!(told, [49]);
        let finished = Event::Finished {
            digest: Digest::of(b"the first"),
            rounds: Round(60),
        };
        let text = rounds.observe(&finished).unwrap();
        assert_begins(&text, "the last 60 of 60 rounds had no result");
        assert!(rounds.failure().is_some());
    }

    #[test]
    fn too_few_members_are_named_as_the_reason() {
        let of_three = AgreementPlan {
            contributions: 3,
            ..AgreementPlan::default()
        };
        let mut rounds = VoidRounds::new(of_three);
        let group = |ids: &[u8]| Event::Group {
            round: Round(0),
            members: ids.iter().map(|id| PeerId::from_bytes([*id; 32])).collect(),
        };
        let told =
            |rounds: &mut VoidRounds| (0..5).find_map(|round| rounds.observe(&void(round, 0)));
        rounds.observe(&group(&[1, 2]));
        let text = told(&mut rounds).unwrap();
        assert!(
            text.contains("2 of the daemons take part, and a result needs contributions of 3"),
            "{text}"
        );
        assert!(rounds.failure().unwrap().contains("start more daemons"));
        assert!(rounds.why().unwrap().starts_with("2 of the daemons"));
        let mut rounds = VoidRounds::new(of_three);
        rounds.observe(&group(&[1, 2, 3]));
        assert!(told(&mut rounds).unwrap().contains("send less"));
        let whole = true;
        let mut rounds = VoidRounds::new(AgreementPlan { whole, ..of_three });
        rounds.observe(&group(&[1, 2, 3]));
        assert!(told(&mut rounds).unwrap().contains("all or none"));
    }

    #[test]
    fn a_result_ends_the_row() {
        let mut rounds = VoidRounds::new(AgreementPlan::default());
        (0..4).for_each(|round| {
            rounds.observe(&void(round, 0));
        });
        let decided = Event::Decided {
            round: Round(4),
            fragment: FragmentId(0),
            ballot: 0,
            contributors: Vec::new(),
        };
        assert_eq!(rounds.observe(&decided), None);
        assert_eq!(rounds.observe(&void(5, 0)), None);
        (6..12).for_each(|round| {
            rounds.observe(&void(round, 0));
        });
        assert_eq!(rounds.failure(), None);
    }

    #[test]
    fn a_detour_is_said_once_for_each_daemon_that_carries_it_and_so_is_its_end() {
        let [peer, one, two] = [1, 2, 3].map(|id| PeerId::from_bytes([id; 32]));
        let mut detours = Detours::default();
        let through = |relay| Path::Relayed(Some(relay));
        assert_eq!(detours.path(peer, Path::Direct, false), None);
        assert_eq!(detours.path(peer, through(one), false), None, "not tried");
        let said = |relay| Some(Told::Through(Some(relay)));
        assert_eq!(detours.path(peer, through(one), true), said(one));
        assert_eq!(detours.path(peer, through(one), true), None);
        assert_eq!(detours.path(peer, through(two), true), said(two));
        assert_eq!(detours.path(peer, Path::Punched, true), Some(Told::Direct));
        assert_eq!(detours.path(peer, Path::Direct, true), None);
        assert_eq!(detours.path(peer, through(two), true), said(two));
        detours.keep(|known| *known != peer);
        assert_eq!(detours.path(peer, Path::Direct, true), None);
    }
}
