//! Members that take no part in rounds: one that observes, and one that relays.

use crate::membership::{closed, invited, line, wait_for};
use murmurate_node::progress::Line;
use murmurate_tests::{Daemon, Settings, quiet_turn, turn};
use serde_json::Value;

/// Rounds of a run that an observer follows: it has time to start meanwhile.
const ROUNDS: u64 = 25;

/// Three daemons train, a fourth one follows them. It ends with their bits, and no round waits for it.
#[test]
fn an_observer_follows_a_run_of_three() {
    let turn = quiet_turn();
    let base = tempfile::tempdir().unwrap();
    let dirs = ["owner", "second", "third", "observer"].map(|name| base.path().join(name));
    let settings = Settings {
        rounds: ROUNDS,
        start_with: 3,
        start_wait_s: 30.0,
        ..closed()
    };
    let mut owner = Daemon::start(&turn, &settings, &dirs[0], &[]);
    owner.listening();
    wait_for("the addresses are noted", || {
        dirs[0].join("addresses").exists()
    });
    let invite = line(&["invite", "--uses", "2"], &dirs[0]);
    let trainer = |at: usize| {
        let settings = settings.shard(at as u32);
        Daemon::start_with(&turn, &settings, &dirs[at], &[], &["--invite", &invite])
    };
    let (second, third) = (trainer(1), trainer(2));
    let watch = line(&["invite", "--role", "observe"], &dirs[0]);
    owner.reaches(1);
    let mut observer = Daemon::start_with(&turn, &settings, &dirs[3], &[], &["--invite", &watch]);
    observer.notes("this daemon observes");
    let observed = observer.end();
    let observed = observed.polite();
    let trained = [owner, second, third].map(Daemon::end);
    for ended in &trained {
        let report = ended.polite();
        assert_eq!(
            (report.rounds, report.no_result.voids),
            (ROUNDS, 0),
            "{report:?}"
        );
        assert_eq!((&report.digest, report.misbehaved), (&observed.digest, 0));
    }
    assert!(observed.digest.is_some());
    assert_eq!((observed.rounds, observed.inner_steps), (ROUNDS, 0));
    assert!(observed.catch_ups > 0 && observed.test_loss.is_some());
    // The checkpoint that it wrote is of that state.
    let text = std::fs::read_to_string(dirs[3].join("checkpoint.json")).unwrap();
    let manifest: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(manifest["digest"].as_str(), observed.digest.as_deref());
    assert_eq!(manifest["round"], ROUNDS);
}

/// A daemon that only relays holds no model. It meets a member of which the one that it joined tells it, and a
/// newcomer that knows only the relay finds that member after the first one has left.
#[test]
fn a_relay_brings_members_together() {
    let turn = turn();
    let base = tempfile::tempdir().unwrap();
    let dirs = ["owner", "relay", "third", "fourth"].map(|name| base.path().join(name));
    let mut first = Daemon::start(&turn, &closed(), &dirs[0], &[]);
    first.listening();
    wait_for("the addresses are noted", || {
        dirs[0].join("addresses").exists()
    });
    let invite = line(&["invite", "--role", "relay"], &dirs[0]);
    let mut relay = invited(&turn, 1, &dirs[1], &invite);
    relay.notes("this daemon relays");
    let address = relay.wait_for("listening", |line| match line {
        Line::Listening { addresses, .. } => {
            addresses.iter().find(|a| a.contains("quic-v1")).cloned()
        }
        _ => None,
    });
    let invite = line(&["invite"], &dirs[0]);
    let mut third = invited(&turn, 2, &dirs[2], &invite);
    trains_with_one(&mut third);
    relay.notes("daemons linked: 2");
    first.interrupt().polite();
    let invite = line(&["invite", "--address", &address], &dirs[0]);
    let mut fourth = invited(&turn, 3, &dirs[3], &invite);
    trains_with_one(&mut fourth);
    let report = relay.interrupt();
    let report = report.polite();
    assert_eq!((report.rounds, report.digest.as_ref()), (0, None));
    assert!(report.bytes_sent.wire > 0);
    assert!(!dirs[1].join("checkpoint.json").exists());
    fourth.interrupt().polite();
    third.interrupt().polite();
}

/// A newcomer takes over the round of the other, and ends one with it.
fn trains_with_one(daemon: &mut Daemon) {
    daemon.wait_for("a round with the other", |line| match line {
        Line::Progress(progress) => (progress.round > 0 && progress.peers == 1).then_some(()),
        _ => None,
    });
}
