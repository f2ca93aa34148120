//! Members that take no part in rounds: one that observes, and one that relays.

use crate::membership::{closed, invited, line, wait_for};
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

/// A daemon that only relays holds no model. A member that knows only its address finds the others.
#[test]
fn a_relay_brings_members_together() {
    let turn = turn();
    let base = tempfile::tempdir().unwrap();
    let [owner, relay, third] = ["owner", "relay", "third"].map(|name| base.path().join(name));
    let mut first = Daemon::start(&turn, &closed(), &owner, &[]);
    first.listening();
    wait_for("the addresses are noted", || {
        owner.join("addresses").exists()
    });
    let invite = line(&["invite", "--role", "relay"], &owner);
    let mut second = invited(&turn, 1, &relay, &invite);
    second.notes("this daemon relays");
    let address = second.wait_for("listening", |line| match line {
        murmurate_node::progress::Line::Listening { addresses, .. } => {
            addresses.iter().find(|a| a.contains("quic-v1")).cloned()
        }
        _ => None,
    });
    let invite = line(&["invite", "--address", &address], &owner);
    let mut new = invited(&turn, 2, &third, &invite);
    new.listening();
    // Both train in one group, so the newcomer takes over the round of the first.
    let at = first.reaches(0).round;
    let progress = new.wait_for("a round with the other", |line| match line {
        murmurate_node::progress::Line::Progress(progress)
            if progress.round > at && progress.peers == 1 =>
        {
            Some(progress.clone())
        }
        _ => None,
    });
    assert!(progress.inner_steps > 0 || progress.round > at);
    let report = second.interrupt();
    let report = report.polite();
    assert_eq!((report.rounds, report.digest.as_ref()), (0, None));
    assert!(report.bytes_sent.wire > 0);
    assert!(!relay.join("checkpoint.json").exists());
    new.interrupt().polite();
    first.interrupt().polite();
}
