//! Daemons that do not fit a run, and starts that cannot work. Each ends with one line that names the
//! file or flag and what to do, and an exit code other than 0. Nothing is overwritten.
//!
//! `command/tests/all/cli.rs` tests bad input that needs no second process.

use murmurate_tests::{Daemon, Settings, turn};
use murmurate_tests::{assert_begins, assert_has};
use std::net::{TcpListener, UdpSocket};

/// Starts a daemon with changed settings that joins a daemon with the usual ones. It must be
/// refused and end.
fn refused(change: impl FnOnce(&mut Settings)) -> String {
    let turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings {
        start_wait_s: 5.0,
        ..Settings::default()
    };
    let mut first = Daemon::start(&turn, &settings, &dir.path().join("first"), &[]);
    let (_, address, _) = first.listening();
    first.reaches(1);
    let mut other = settings.shard(1);
    change(&mut other);
    let second = Daemon::start(&turn, &other, &dir.path().join("second"), &[&address]);
    let line = second.end().failed_with(4).to_owned();
    // The other daemon is not affected.
    first.interrupt().polite();
    line
}

/// A daemon of another run is refused with the reason.
#[test]
fn another_run_is_refused() {
    let line = refused(|s| s.name = "another".to_owned());
    assert_has(
        &line,
        "the daemon to join: it belongs to another run. To join it",
    );
}

/// A daemon with another model is refused with the reason.
#[test]
fn another_model_is_refused() {
    let line = refused(|s| s.task = "hidden = 64".to_owned());
    assert_has(
        &line,
        "it trains another model, because `task.hidden` is not the same in both",
    );
}

#[test]
fn another_plan_is_refused() {
    let line = refused(|s| s.preset = "local-sgd".to_owned());
    assert_has(
        &line,
        "it follows another plan, because `strategy.preset`, `strategy.",
    );
}

/// With another seed it would start from other parameters and deal other data.
#[test]
fn another_seed_is_refused() {
    let line = refused(|s| s.seed = 7);
    assert_has(
        &line,
        "it follows another plan, because `run.seed` is not the same in both",
    );
}

/// A daemon of the release before has no word for its settings, so the refusal names none.
#[test]
fn another_seed_is_refused_by_a_daemon_of_the_release_before() {
    let line = refused(|s| {
        s.seed = 7;
        s.wire_versions = Some([7, 7]);
    });
    assert!(line.contains("(compare seed, rounds"), "{line}");
}

/// No daemon answers at the address to join.
#[test]
fn an_address_without_an_answer_is_named() {
    let turn = turn();
    let dir = tempfile::tempdir().unwrap();
    // A bound socket that never answers, so that no other process can take the port.
    let deaf = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = format!(
        "/ip4/127.0.0.1/udp/{}/quic-v1",
        deaf.local_addr().unwrap().port()
    );
    let settings = Settings {
        start_wait_s: 2.0,
        ..Settings::default()
    };
    let daemon = Daemon::start(&turn, &settings, &dir.path().join("a"), &[&address]);
    let line = daemon.end().failed_with(5).to_owned();
    assert_begins(&line, "no daemon of the run could be reached");
    assert_has(&line, &address);
    assert_has(&line, "check the address");
}

/// Both ports are in use. With one free port the daemon starts and says which port is not.
#[test]
fn a_busy_port_is_named() {
    let turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let ports = [
        udp.local_addr().unwrap().port(),
        tcp.local_addr().unwrap().port(),
    ];
    let settings = Settings {
        ports,
        ..Settings::default()
    };
    let daemon = Daemon::start(&turn, &settings, &dir.path().join("a"), &[]);
    let line = daemon.end().failed().to_owned();
    assert!(
        ports.iter().any(|p| line.contains(&p.to_string())),
        "{line}"
    );
    // One of them is enough: with another daemon's port it would get that one's connections.
    for ports in [[0, ports[1]], [ports[0], 0]] {
        let settings = Settings {
            ports,
            ..Settings::default()
        };
        let ended = Daemon::start(&turn, &settings, &dir.path().join("b"), &[]).end();
        let taken = format!("port {} of", ports[0].max(ports[1]));
        let line = ended.failed();
        assert!(line.contains(&taken) && line.contains("in use"), "{line}");
    }
}

/// Two daemons cannot share a directory.
#[test]
fn a_second_daemon_in_the_same_directory_is_refused() {
    let turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("a");
    let mut first = Daemon::start(&turn, &Settings::default(), &home, &[]);
    first.listening();
    let second = Daemon::start(&turn, &Settings::default(), &home, &[]);
    let line = second.end().failed().to_owned();
    let holder = format!("is in use by process {}", first.id());
    assert_has(&line, &holder);
    assert_has(&line, "give another --dir");
    first.interrupt().polite();
}
