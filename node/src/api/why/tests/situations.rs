//! Situations of a daemon, and what each view says of them: `/status`, `why`, the page and `top` (both show
//! the swarm), and `/metrics`. `doctor` and the exit code follow from the troubles of `/status`.

use super::*;
use crate::api::observer::Observer;
use crate::api::swarm::Swarm;
use crate::api::{Altered as Lost, MetricsFormat, TransferStatus, TroubleKind, metrics_text};
use crate::goal::Target;
use crate::store::Progress;
use Step::*;
use TroubleKind as Kind;
use murmurate_protocol::limits::BRANCH_BASES;
use murmurate_protocol::wire::Reason;
use murmurate_protocol::{AgreementPlan, Base, Branch};
use murmurate_trust::{Flaw, Refusal};

/// The time at which all views are asked.
const NOW_S: u64 = 10_000;

const DAVE: PeerId = PeerId::from_bytes([0xda; 32]);

const ALL: &[PeerId] = &[ME, BOB, CAROL];

/// A daemon to which something happens.
#[derive(Clone, Copy)]
enum From {
    /// It has not begun, and founded its run.
    Nothing,
    /// It has not begun, and others let it in.
    Invite,
    /// It is in round 9 with Bob and Carol.
    Round9,
    /// The same in a run that survives a liar.
    Signing,
    /// It was in round 9 of such a run with Bob, Carol and Dave, and was started again.
    SigningBefore,
}

/// Something that happens to it.
#[derive(Clone, Copy)]
enum Step {
    In(u64, Phase),
    Up(PeerId),
    Down(PeerId),
    LeftInOrder(PeerId),
    Dismissed(PeerId),
    /// It waits for these since this number of seconds.
    Waits(Wait, &'static [PeerId], u64),
    /// These contribute to the rounds up to this one, from the last one on.
    Rounds(u64, &'static [PeerId]),
    Void(u64),
    RefusedBy(Refusal),
    OtherPlan,
    Silent(PeerId),
    IdleUntil(u64),
    Lied,
    WorkFails,
    SaveFails,
    Saved(u64),
    Paused,
    Merging,
    /// Another daemon with this identity is heard, or no longer.
    Elsewhere(bool),
    /// Carol's loss of this round, which this daemon trained, is this far from this daemon's own.
    TrainsLike(u64, f64),
    /// A file was lost, which matters until this round, or as long as the daemon runs.
    Altered(Option<u64>),
    /// Nothing happens until shortly before the end.
    Later,
}

struct Told {
    observer: Observer,
    now_s: u64,
    round: u64,
}

impl Told {
    fn new(from: From) -> Self {
        let mut about = About {
            peer: ME.to_hex(),
            agrees: true,
            expects_others: matches!(from, From::Invite),
            ..About::default()
        };
        if let From::Signing | From::SigningBefore = from {
            about.agreement = AgreementPlan {
                liars: 1,
                ..AgreementPlan::default()
            };
        }
        let mut told = Self {
            observer: Observer::new(about, Progress::default()),
            now_s: 1000,
            round: 0,
        };
        if let From::SigningBefore = from {
            told.now_s = NOW_S - 5;
            told.step(In(9, Phase::Join));
            for peer in [BOB, CAROL, DAVE] {
                told.observer.took_part(at(told.now_s * 1000), peer);
            }
        }
        if let From::Round9 | From::Signing = from {
            for step in [Up(BOB), Up(CAROL), Rounds(9, ALL), In(9, Phase::Train)] {
                told.step(step);
            }
        }
        told
    }

    fn tell(&mut self, events: &[Event]) {
        for event in events {
            self.observer.observe(at(self.now_s * 1000), event);
        }
    }

    fn rounds(&mut self, until: u64, contributors: &'static [PeerId]) {
        while self.round < until {
            self.step(In(self.round, Phase::Train));
            self.tell(&super::round(self.round, ALL, contributors));
            self.round += 1;
        }
    }

    fn void(&mut self, until: u64) {
        while self.round < until {
            self.step(In(self.round, Phase::Train));
            let mut events = super::round(self.round, ALL, &[]);
            let (round, fragment) = (Round(self.round), FragmentId(0));
            events[3] = Event::Voided { round, fragment };
            self.tell(&events);
            self.round += 1;
        }
    }

    /// A part of a state that is waited for has come.
    fn waits(&mut self, wait: Wait, peers: &[PeerId], waited_s: u64) {
        let waiting = Waiting {
            wait,
            fragment: FragmentId(0),
            peers: peers.to_vec(),
            since: at((NOW_S - waited_s) * 1000),
            deadline: at((NOW_S + 2) * 1000),
        };
        self.observer.set_waiting(at(NOW_S * 1000), &[waiting]);
        let (round, bytes, of_bytes) = (self.round, 3_000_000, 13_000_000);
        let transfer = TransferStatus {
            round,
            bytes,
            of_bytes,
        };
        let transfer = (wait == Wait::State).then_some(transfer);
        self.observer.set_rounds(&[], transfer);
    }

    fn step(&mut self, step: Step) {
        self.now_s += 1;
        let now = at(self.now_s * 1000);
        let round = Round(self.round);
        match step {
            In(number, phase) => {
                self.round = number;
                let round = Round(number);
                self.tell(&[Event::Phase { round, phase }]);
            }
            Up(peer) => self.tell(&[Event::PeerUp(peer)]),
            Down(peer) => self.tell(&[Event::PeerDown(peer)]),
            LeftInOrder(peer) => {
                self.step(Down(peer));
                self.observer.not_missed(peer);
            }
            Dismissed(peer) => self.observer.dismissed(peer),
            Waits(wait, peers, waited_s) => self.waits(wait, peers, waited_s),
            Rounds(until, contributors) => self.rounds(until, contributors),
            Void(until) => self.void(until),
            RefusedBy(refusal) => self.observer.refused_by(now, BOB, refusal),
            SaveFails => self.observer.save_failed(),
            Paused => {
                self.step(In(self.round, Phase::Paused));
                let control = ControlStatus {
                    paused: true,
                    paused_from: Some(self.round),
                    ..ControlStatus::default()
                };
                self.observer.set_control(control, 0);
            }
            Later => self.now_s = NOW_S - 5,
            Elsewhere(heard) => self.observer.elsewhere(now, heard),
            TrainsLike(number, off) => {
                let loss = 0.5 + number as f64;
                self.tell(&[trained(number, loss)]);
                let seen = says(CAROL, number, loss + off);
                self.observer.look_for_equals(&[seen]);
            }
            Altered(until) => {
                let altered = Lost::for_good("a/votes was gone", "Find out why.");
                self.observer.altered(Lost { until, ..altered });
            }
            event => self.tell(&[told(event, round)]),
        }
        if let Merging = step {
            let anchor = Digest::of(b"before the split");
            let base = Some(Base {
                round: Round(5),
                anchor,
            });
            let branch = Branch {
                bases: [base; BRANCH_BASES],
                members: 1,
                weight: 5.0,
            };
            self.observer.set_branch(Some((branch, 1)), true);
        }
    }
}

fn trained(round: u64, loss: f64) -> Event {
    let summary = TrainSummary {
        steps: 8,
        loss,
        ..TrainSummary::default()
    };
    let round = Round(round);
    Event::Trained { round, summary }
}

/// What a daemon that has trained a round says of itself.
fn says(peer: PeerId, round: u64, loss: f64) -> SeenVitals {
    let vitals = Vitals {
        sequence: round,
        unix_ms: 0,
        version: "1.0.0".to_owned(),
        loss: Vitals::loss(loss),
        ..crate::tests::vitals(peer, round, Phase::Exchange)
    };
    let age = Duration::ZERO;
    SeenVitals { vitals, age }
}

/// Steps that are one event.
fn told(step: Step, round: Round) -> Event {
    match step {
        OtherPlan => Event::RefusedBy {
            peer: BOB,
            reason: Reason::OtherPlan,
        },
        Silent(peer) => Event::Suspected { peer, round },
        IdleUntil(until) => Event::Absent {
            peer: BOB,
            until: Round(until),
        },
        Lied => Event::Lied {
            peer: CAROL,
            proven: false,
            round,
            what: "it sent two different values".to_owned(),
        },
        WorkFails => Event::WorkFailed {
            what: "training failed: the disk is gone".to_owned(),
        },
        Saved(round) => Event::Saved {
            round: Round(round),
        },
        _ => Event::BranchesMet {
            round,
            base: Round(5),
            weight: 5.0,
        },
    }
}

/// The beginning, the events, and the expectations: the state, the troubles, a part of the answer of `why`, and
/// `true` if that answer asks to act.
type Situation = (
    From,
    &'static [Step],
    &'static str,
    &'static [Kind],
    &'static str,
    bool,
);

const TRAINS: &str = "and waits for no other";
const GOES_ON: &str = "Rounds go on without daemon b0b0b0b0";
const THROWN_OUT: &str = "its membership was revoked";
const ENDED: Refusal = Refusal::Flaw(Flaw::Expired { ago_s: 5 });

/// Before the first round, and between rounds.
#[rustfmt::skip]
const OF_PHASES: &[Situation] = &[
    (From::Nothing, &[], "starting", &[], "has not begun", false),
    (From::Invite, &[In(0, Phase::Join)], "starting", &[], "looks for others", false),
    (From::Invite, &[In(0, Phase::Join), Waits(Wait::Peers, &[], 30)], "starting", &[], "a run begins when enough", true),
    (From::Invite, &[In(0, Phase::Join), OtherPlan], "starting", &[], "refused this daemon", true),
    (From::Round9, &[In(9, Phase::Join), Waits(Wait::State, &[BOB], 1)], "starting", &[], "3.0 MB of 13.0 MB have come", false),
    (From::Nothing, &[In(3, Phase::Train)], "alone", &[], "others can join at any time", false),
    (From::Invite, &[In(3, Phase::Train)], "isolated", &[Kind::Isolated], "has reached no other daemon", true),
    (From::Round9, &[], "training", &[], TRAINS, false),
    (From::Round9, &[In(9, Phase::Exchange)], "training", &[], "exchanges what it trained", false),
    (From::Round9, &[In(9, Phase::Settle)], "training", &[], "evaluates the model", false),
    (From::Round9, &[Paused], "paused", &[], "paused by the owner since round 9", true),
    (From::Round9, &[Merging], "merging", &[], "split in round 5; its sides are being merged", false),
    (From::Round9, &[In(9, Phase::Finished)], "finished", &[], "rounds are complete", false),
    (From::Round9, &[In(9, Phase::Leaving)], "leaving", &[], "leaves", false),
];

/// A round waits.
#[rustfmt::skip]
const OF_WAITS: &[Situation] = &[
    (From::Round9, &[Waits(Wait::Group, &[CAROL], 1)], "training", &[], "it has not ended its training of the round", false),
    (From::Round9, &[Waits(Wait::Group, &[CAROL], 60)], "training", &[], "then the round goes on with 2 of 3", true),
    (From::Round9, &[Waits(Wait::Group, &[BOB, CAROL], 60)], "training", &[], "1 of 3 are too few for a result, which needs 2", true),
    (From::Round9, &[Waits(Wait::Group, &[], 1)], "training", &[], "the daemons that are ready agree on who is in it", false),
    (From::Signing, &[Later, Down(BOB), Down(CAROL), Waits(Wait::Group, &[], 5)], "isolated", &[Kind::Isolated], "1 of 3 are too few", true),
    (From::Signing, &[Later, Down(BOB), Waits(Wait::Group, &[], 5)], "training", &[Kind::PeersLost], "then the round goes on with 2 of 3", true),
    (From::SigningBefore, &[Waits(Wait::Peers, &[], 30)], "starting", &[], "begins if enough are here", true),
    (From::SigningBefore, &[Up(BOB), In(9, Phase::Train), Waits(Wait::Group, &[], 5)], "training", &[Kind::PeersLost], "2 of 4 are here, and a result needs 3", true),
    (From::SigningBefore, &[Up(BOB), Up(CAROL), Up(DAVE), In(9, Phase::Train)], "training", &[], TRAINS, false),
];

/// Others are gone, or do nothing.
#[rustfmt::skip]
const OF_OTHERS: &[Situation] = &[
    (From::Round9, &[Down(BOB)], "training", &[Kind::PeersLost], GOES_ON, true),
    (From::Round9, &[Down(BOB), Rounds(300, &[ME, CAROL]), Waits(Wait::Group, &[CAROL], 1)], "training", &[Kind::PeersLost], GOES_ON, true),
    (From::Round9, &[Down(BOB), Up(BOB)], "training", &[], TRAINS, false),
    (From::Round9, &[Down(BOB), Dismissed(BOB)], "training", &[], TRAINS, false),
    (From::Round9, &[LeftInOrder(BOB)], "training", &[], TRAINS, false),
    (From::Round9, &[LeftInOrder(BOB), LeftInOrder(CAROL)], "alone", &[], "others can join at any time", false),
    (From::Round9, &[Down(BOB), Down(CAROL)], "isolated", &[Kind::Isolated], "What it trains reaches no other daemon", true),
    (From::Round9, &[Down(BOB), Down(CAROL), Rounds(300, &[ME])], "isolated", &[Kind::Isolated], "This daemon is cut off", true),
    (From::Round9, &[Down(BOB), Down(CAROL), In(9, Phase::Finished)], "isolated", &[Kind::Isolated], "This daemon is cut off", true),
    (From::Round9, &[Down(BOB), Down(CAROL), Up(CAROL)], "training", &[Kind::PeersLost], GOES_ON, true),
    (From::Round9, &[Paused, Silent(BOB), IdleUntil(20)], "paused", &[], "paused by the owner", true),
    (From::Round9, &[Paused, Down(BOB)], "paused", &[Kind::PeersLost], "paused by the owner", true),
    (From::Round9, &[Down(BOB), In(9, Phase::Finished)], "finished", &[Kind::PeersLost], GOES_ON, true),
    (From::Round9, &[Silent(BOB)], "training", &[Kind::PeersSilent], "missed its last deadline", true),
    (From::Round9, &[Silent(BOB), Silent(CAROL)], "training", &[Kind::PeersSilent], "Rounds have no result without daemon", true),
    (From::Round9, &[Silent(BOB), Rounds(10, ALL)], "training", &[], "", false),
    (From::Round9, &[IdleUntil(20)], "training", &[Kind::PeersIdle], "contributed nothing for long", true),
    (From::Round9, &[IdleUntil(20), In(20, Phase::Train)], "training", &[], TRAINS, false),
    (From::Round9, &[TrainsLike(9, 0.0)], "training", &[], TRAINS, false),
    (From::Round9, &[TrainsLike(9, 0.0), TrainsLike(10, 0.0)], "training", &[Kind::PeersEqual], "Daemon cacacaca trains the same data", true),
    (From::Round9, &[TrainsLike(9, 0.0), TrainsLike(10, 0.0), TrainsLike(11, 1e-6)], "training", &[], TRAINS, false),
    (From::Round9, &[Lied], "training", &[Kind::PeersLied], "cacacaca lied", true),
    (From::Round9, &[Lied, Dismissed(CAROL)], "training", &[], TRAINS, false),
];

/// This daemon is out, or its work is of no use.
#[rustfmt::skip]
const OF_ITSELF: &[Situation] = &[
    (From::Round9, &[RefusedBy(Refusal::Revoked), LeftInOrder(BOB), LeftInOrder(CAROL)], "revoked", &[Kind::Revoked], THROWN_OUT, true),
    (From::Round9, &[RefusedBy(Refusal::Revoked), Down(BOB), Down(CAROL)], "revoked", &[Kind::Revoked], THROWN_OUT, true),
    (From::Round9, &[RefusedBy(Refusal::Revoked), In(9, Phase::Finished)], "revoked", &[Kind::Revoked], "is of no use to the run", true),
    (From::Round9, &[RefusedBy(Refusal::Revoked), Up(BOB)], "training", &[], TRAINS, false),
    (From::Round9, &[RefusedBy(ENDED)], "expired", &[Kind::Expired], "its certificate has ended", true),
    (From::Round9, &[RefusedBy(Refusal::Banned)], "banned", &[Kind::Banned], "because it lied", true),
    (From::Round9, &[RefusedBy(Refusal::Full)], "refused", &[Kind::Refused], "is not accepted", true),
    (From::Round9, &[Void(14)], "no_result", &[Kind::NoResult], "The last 5 rounds had no result", true),
    (From::Round9, &[Void(13)], "training", &[], "", false),
    (From::Round9, &[Void(30), Rounds(31, ALL)], "training", &[], "", false),
    (From::Round9, &[Rounds(14, &[BOB, CAROL])], "left_out", &[Kind::LeftOut], "without what this daemon trained", true),
    (From::Round9, &[WorkFails], "failing", &[Kind::Failing], "training failed: the disk is gone", true),
    (From::Round9, &[WorkFails, Rounds(10, ALL), In(10, Phase::Train)], "failing", &[Kind::Failing], "failed in round 9", true),
    (From::Round9, &[WorkFails, Rounds(11, ALL), In(11, Phase::Train)], "training", &[], TRAINS, false),
    (From::Round9, &[Saved(8), SaveFails], "unsaved", &[Kind::Unsaved], "that of round 8 is intact", true),
    (From::Round9, &[SaveFails, Saved(9)], "training", &[], TRAINS, false),
    (From::Round9, &[Elsewhere(true)], "elsewhere", &[Kind::Elsewhere], "This identity runs elsewhere", true),
    (From::Round9, &[Elsewhere(true), Down(BOB), Down(CAROL)], "elsewhere", &[Kind::Elsewhere], "This identity runs elsewhere", true),
    (From::Round9, &[Elsewhere(true), Elsewhere(false)], "training", &[], TRAINS, false),
    (From::Round9, &[Altered(None), In(90, Phase::Train)], "training", &[Kind::Altered], "a/votes was gone", true),
    (From::Round9, &[Altered(Some(10)), In(10, Phase::Train)], "training", &[Kind::Altered], "a/votes was gone", true),
    (From::Round9, &[Altered(Some(10)), In(11, Phase::Train)], "training", &[], TRAINS, false),
];

fn check((from, steps, state, troubles, says, todo): &Situation) {
    let mut told = Told::new(*from);
    steps.iter().for_each(|step| told.step(*step));
    let mut observer = told.observer;
    let status = observer.status(at(NOW_S * 1000));
    let kinds: Vec<Kind> = status.troubles.iter().map(|trouble| trouble.kind).collect();
    let name = format!("{state}: {says}");
    assert_eq!(
        (status.state.as_str(), &kinds[..]),
        (*state, *troubles),
        "{name}"
    );
    let facts = Facts {
        status: &status,
        insight: &observer.insight,
        claims: &observer.claims,
        about: &observer.about,
        now: NOW_S as f64,
    };
    let answer = why(&facts, &Question::default());
    assert!(
        answer.sentences.join(" ").contains(says),
        "{name}: {answer:?}"
    );
    assert_eq!(answer.asks_to_act(), *todo, "{name}: {answer:?}");
    leads_with_what_is_grave(&facts, &name);
    let swarm = Swarm::new(&facts, Target::default());
    assert_eq!(
        (&swarm.verdict, &swarm.daemon.state),
        (&answer, &status.state),
        "{name}"
    );
    assert_eq!(swarm.troubles, status.troubles, "{name}");
    let metrics = metrics_text(&status, MetricsFormat::OpenMetrics);
    let phase = format!("murmurate_phase{{phase=\"{}\"}} 1", status.phase);
    let of_kind = |kind: Kind| {
        let here = i32::from(kinds.contains(&kind));
        format!("murmurate_trouble{{kind=\"{}\"}} {here}", kind.word())
    };
    for line in Kind::ALL.map(of_kind).iter().chain([&phase]) {
        assert!(
            metrics.lines().any(|found| found == line),
            "{name}: no {line}"
        );
    }
}

/// Every answer begins with the grave troubles, and asks to act while there is a trouble.
fn leads_with_what_is_grave(facts: &Facts<'_>, name: &str) {
    let status = facts.status;
    let grave = status
        .troubles
        .iter()
        .filter(|trouble| trouble.kind.is_grave());
    let lead: Vec<&String> = grave.map(|trouble| &trouble.text).collect();
    for what in [
        Topic::Round,
        Topic::Contribution,
        Topic::Slow,
        Topic::Accuracy,
    ] {
        let question = Question {
            what,
            ..Question::default()
        };
        let answer = why(facts, &question);
        let said = answer.sentences.iter().zip(&lead);
        assert!(
            said.clone().all(|(said, lead)| said == *lead),
            "{name}: {answer:?}"
        );
        assert!(
            status.troubles.is_empty() || answer.asks_to_act(),
            "{name}: {answer:?}"
        );
        assert!(
            answer.sentences.iter().all(|s| s.ends_with('.')),
            "{name}: {answer:?}"
        );
    }
}

#[test]
fn every_view_says_the_same_of_each_situation() {
    let all = [OF_PHASES, OF_WAITS, OF_OTHERS, OF_ITSELF].concat();
    assert_eq!(all.len(), 68);
    all.iter().for_each(check);
}

#[test]
fn all_that_are_gone_are_named_for_a_day() {
    let [dave, eve] = [[0xda; 32], [0xee; 32]].map(PeerId::from_bytes);
    let mut told = Told::new(From::Round9);
    for step in [Up(dave), Up(eve), Down(dave), Down(eve)] {
        told.step(step);
    }
    let gone = (told.now_s - 1) as f64;
    let status = told.observer.status(at(NOW_S * 1000));
    let [trouble] = &status.troubles[..] else {
        panic!("{:?}", status.troubles);
    };
    for name in ["dadadada", "eeeeeeee"] {
        assert!(trouble.text.contains(name), "{trouble:?}");
    }
    let since = trouble.since_unix_s.unwrap();
    assert!((since - gone).abs() < 1e-6, "{since} {gone}");
    let later = told.observer.status(at((NOW_S + 90_000) * 1000));
    assert_eq!(later.troubles, []);
}
