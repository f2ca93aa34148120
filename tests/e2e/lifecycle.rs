//! Daemons that start, die, come back and leave. Each is started by itself, as on many machines.

use murmurate_node::progress::Line;
use murmurate_tests::{Daemon, Settings, Turn, quiet_turn, status, turn, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a swarm may take to agree again.
const AGREE_WAIT: Duration = Duration::from_secs(60);

/// Daemons that start a fresh run together.
struct Flock {
    settings: Settings,
    dir: tempfile::TempDir,
    daemons: Vec<Daemon>,
    addresses: Vec<String>,
    https: Vec<String>,
    peers: Vec<String>,
}

impl Flock {
    /// Starts `count` daemons that wait for each other.
    fn start(turn: &Turn, count: u32, settings: Settings) -> Self {
        let settings = Settings {
            start_with: count,
            ..settings
        };
        let mut flock = Self {
            settings,
            dir: tempfile::tempdir().unwrap(),
            daemons: Vec::new(),
            addresses: Vec::new(),
            https: Vec::new(),
            peers: Vec::new(),
        };
        for _ in 0..count {
            flock.add(turn);
        }
        flock
    }

    fn home(&self, index: usize) -> PathBuf {
        self.dir.path().join(format!("node-{index}"))
    }

    /// Starts one more, which joins the first.
    fn add(&mut self, turn: &Turn) {
        let index = self.daemons.len();
        let settings = self.settings.shard(index as u32 % 4);
        let join: Vec<&str> = self
            .addresses
            .first()
            .map(String::as_str)
            .into_iter()
            .collect();
        let mut daemon = Daemon::start(turn, &settings, &self.home(index), &join);
        let (peer, address, http) = daemon.listening();
        self.daemons.push(daemon);
        self.addresses.push(address);
        self.https.push(http);
        self.peers.push(peer);
    }

    /// Starts daemon `index` again, in its directory.
    fn again(&mut self, turn: &Turn, index: usize) {
        let settings = Settings {
            start_with: 1,
            ..self.settings.shard(index as u32)
        };
        let join = self.addresses[0].clone();
        let mut daemon = Daemon::start(turn, &settings, &self.home(index), &[&join]);
        daemon.notes("resuming from the checkpoint of round");
        let (peer, _, http) = daemon.listening();
        assert_eq!(
            peer, self.peers[index],
            "the same directory is the same peer"
        );
        self.daemons[index] = daemon;
        self.https[index] = http;
    }

    fn round(&self, index: usize) -> u64 {
        status(&self.https[index])["round"].as_u64().unwrap()
    }

    /// Waits until these daemons show the same digest of the same round, `round` or later, and
    /// were all members of the group that made it.
    fn agree(&self, indices: &[usize], round: u64) {
        let what = format!("{indices:?} agree after round {round}");
        wait_until(&what, AGREE_WAIT, || {
            let seen: Vec<Value> = indices.iter().map(|i| status(&self.https[*i])).collect();
            let first = &seen[0];
            let together = |s: &Value| {
                s["digest"].is_string()
                    && s["digest"] == first["digest"]
                    && s["digest_round"] == first["digest_round"]
                    && s["digest_round"].as_u64() >= Some(round)
                    && s["group"]["members"].as_array().map_or(0, Vec::len) >= indices.len()
            };
            seen.iter().all(together).then_some(())
        });
    }
}

/// Rounds of about a tenth of a second, without end.
fn unhurried() -> Settings {
    Settings {
        inner_steps: Some(24),
        save_every_s: 0.5,
        ..Settings::default()
    }
}

fn saved_round(http: &str) -> Option<u64> {
    status(http)["saved_round"].as_u64()
}

/// A daemon that starts again in the same directory resumes from its checkpoint as the same peer.
#[test]
fn a_killed_daemon_comes_back_as_the_same_peer() {
    let turn = turn();
    let mut flock = Flock::start(&turn, 3, unhurried());
    wait_until("a checkpoint", AGREE_WAIT, || {
        saved_round(&flock.https[2]).filter(|r| *r >= 2)
    });
    flock.daemons[2].signal(Signal::KILL);
    let gone_at = flock.round(0);
    flock.daemons[0].reaches(gone_at + 4);
    flock.again(&turn, 2);
    let back_at = flock.round(0);
    flock.agree(&[0, 1, 2], back_at);
    for daemon in flock.daemons {
        daemon.interrupt().polite();
    }
}

/// The first daemon of a run restarts without an address and uses those that it stored.
#[test]
fn a_killed_founder_finds_the_others_without_an_address() {
    let turn = turn();
    let mut flock = Flock::start(&turn, 3, unhurried());
    let kept = flock.home(0).join("peers.json");
    wait_until("the others' addresses and a checkpoint", AGREE_WAIT, || {
        let text = std::fs::read_to_string(&kept).unwrap_or_default();
        let all = flock.peers[1..].iter().all(|peer| text.contains(peer));
        saved_round(&flock.https[0]).filter(|r| *r >= 2 && all)
    });
    flock.daemons[0].signal(Signal::KILL);
    let gone_at = flock.round(1);
    flock.daemons[1].reaches(gone_at + 4);
    let settings = Settings {
        start_with: 1,
        ..flock.settings.shard(0)
    };
    let mut founder = Daemon::start(&turn, &settings, &flock.home(0), &[]);
    let (peer, _, http) = founder.listening();
    assert_eq!(peer, flock.peers[0]);
    flock.daemons[0] = founder;
    flock.https[0] = http;
    let back_at = flock.round(1);
    flock.agree(&[0, 1, 2], back_at);
    for daemon in flock.daemons {
        daemon.interrupt().polite();
    }
}

/// Two daemons join while a third dies.
#[test]
fn two_join_while_a_third_dies() {
    let turn = turn();
    let mut flock = Flock::start(&turn, 3, unhurried());
    flock.daemons[0].reaches(3);
    flock.settings.start_with = 1;
    flock.add(&turn);
    flock.daemons[2].signal(Signal::KILL);
    flock.add(&turn);
    let round = flock.round(0);
    flock.agree(&[0, 1, 3, 4], round + 2);
    for newcomer in [3, 4] {
        let catch_ups = status(&flock.https[newcomer])["catch_ups"].as_u64();
        assert!(catch_ups > Some(0), "daemon {newcomer} took the state over");
    }
}

/// Ctrl+C writes a checkpoint with the progress and tells the peers.
#[test]
fn ctrl_c_leaves_politely_and_the_others_go_on() {
    let turn = quiet_turn();
    let settings = Settings {
        save_every_s: 0.0,
        ..unhurried()
    };
    let mut flock = Flock::start(&turn, 3, settings);
    flock.daemons[2].reaches(3);
    let leaver = flock.daemons.remove(2);
    let ended = leaver.interrupt();
    let report = ended.polite();
    assert!(report.inner_steps > 0 && report.rounds >= 3, "{report:?}");
    let manifest = std::fs::read_to_string(flock.home(2).join("checkpoint.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert!(manifest["round"].as_u64() >= Some(3), "{manifest}");
    assert_eq!(manifest["progress"]["inner_steps"], report.inner_steps);
    let left_at = flock.round(0);
    flock.agree(&[0, 1], left_at + 3);
    // Its peers were told, so none of them waited for it until a deadline.
    assert_eq!(status(&flock.https[0])["expired_waits"], 0);
}

/// A second Ctrl+C exits at once.
#[test]
fn a_second_ctrl_c_does_not_wait_for_the_inner_step() {
    let turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("slow");
    // An inner step of seconds, so that the second signal comes before the first is done.
    let settings = Settings {
        task: "hidden = 4096\nbatch = 2048".to_owned(),
        ..Settings::default()
    };
    let mut daemon = Daemon::start(&turn, &settings, &home, &[]);
    daemon.wait_for("training", |line| match line {
        Line::Progress(progress) => (progress.phase == "train").then_some(()),
        _ => None,
    });
    daemon.signal(Signal::INT);
    daemon.notes("Ctrl+C again: at once");
    let line = daemon.interrupt().failed_with(130).to_owned();
    assert_eq!(
        line,
        "interrupted before the checkpoint was written; the previous one is intact"
    );
    assert!(!Path::new(&home.join("checkpoint.json")).exists());
}

/// A complete run goes on in the same directories with a larger number of rounds.
#[test]
fn a_complete_run_is_extended() {
    let turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let home = |name: &str| dir.path().join(name);
    let run = |rounds| {
        let settings = Settings {
            rounds,
            start_with: 2,
            ..Settings::default()
        };
        let mut first = Daemon::start(&turn, &settings, &home("a"), &[]);
        let (_, address, _) = first.listening();
        let second = Daemon::start(&turn, &settings.shard(1), &home("b"), &[&address]);
        let (first, second) = (first.end(), second.end());
        let (a, b) = (first.polite().clone(), second.polite().clone());
        assert_eq!(a.digest, b.digest);
        assert_eq!((a.rounds, b.rounds), (rounds, rounds), "{a:?} {b:?}");
        a
    };
    let before = run(4);
    let after = run(7);
    assert_eq!(after.inner_steps, before.inner_steps / 4 * 7);

    // Any other difference in the plan is refused, also with more rounds.
    let other = Settings {
        rounds: 9,
        preset: "local-sgd".to_owned(),
        ..Settings::default()
    };
    let ended = Daemon::start(&turn, &other, &home("a"), &[]).end();
    assert!(ended.failed().contains("another plan"), "{ended:?}");
}

/// A run that was to begin with more daemons says who is missing, and does not begin without them.
#[test]
fn a_run_waits_for_all_that_it_starts_with() {
    let turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings {
        rounds: 2,
        start_with: 2,
        start_wait_s: 1.0,
        ..Settings::default()
    };
    let mut first = Daemon::start(&turn, &settings, &dir.path().join("a"), &[]);
    let (_, address, http) = first.listening();
    let line = first.notes("waited 1 s for other daemons");
    assert!(line.contains("1 of 2 are here, 1 missing"), "{line}");
    first.notes("waited");
    assert_eq!(status(&http)["inner_steps"], 0, "no lonely training");
    let settings = settings.shard(1);
    let second = Daemon::start(&turn, &settings, &dir.path().join("b"), &[&address]);
    let (first, second) = (first.end(), second.end());
    assert_eq!(first.polite().digest, second.polite().digest);
}
