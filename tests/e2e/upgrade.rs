//! A run whose daemons are replaced one by one by those of the next release.

use murmurate_tests::{Daemon, Settings, Turn, status, turn, wait_until};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// How long a wait may take on a busy machine.
const WAIT: Duration = Duration::from_secs(90);

/// What the release before spoke. A daemon that speaks no more than that says, byte by byte, what that release
/// said after the gate.
const BEFORE: [u8; 2] = [7, 7];

/// One daemon of the run.
struct Member {
    daemon: Daemon,
    peer: String,
    address: String,
    http: String,
    upgraded: bool,
}

fn start(
    turn: &Turn,
    dir: &Path,
    index: u32,
    (upgraded, start_with): (bool, u32),
    join: Option<&str>,
) -> Member {
    let settings = Settings {
        inner_steps: Some(24),
        save_every_s: 1.0,
        start_with,
        index,
        wire_versions: (!upgraded).then_some(BEFORE),
        ..Settings::default()
    };
    let home = dir.join(format!("node-{index}"));
    let known: Vec<&str> = join.into_iter().collect();
    let mut daemon = Daemon::start(turn, &settings, &home, &known);
    let (peer, address, http) = daemon.listening();
    Member {
        daemon,
        peer,
        address,
        http,
        upgraded,
    }
}

/// Waits until all train in one group with the same bits, in a round after `round`, and each pair of them uses
/// the newest version that both speak. Returns the round.
fn together(members: &[Member], round: u64) -> u64 {
    let releases: BTreeMap<&str, bool> = members
        .iter()
        .map(|member| (member.peer.as_str(), member.upgraded))
        .collect();
    let right = |member: &Member, status: &Value| {
        let peers = status["peers"].as_object().unwrap();
        let of = |peer: &str| peers.get(peer)?["link"]["wire_version"].as_u64();
        let others = releases.iter().filter(|(peer, _)| **peer != member.peer);
        others.into_iter().all(|(peer, upgraded)| {
            let expected = if *upgraded && member.upgraded { 8 } else { 7 };
            of(peer) == Some(expected)
        })
    };
    wait_until("one group of all, in the right versions", WAIT, || {
        let seen: Vec<Value> = members.iter().map(|member| status(&member.http)).collect();
        let whole = |s: &Value| s["group"]["members"].as_array().map_or(0, Vec::len);
        let first = &seen[0];
        let same = seen
            .iter()
            .all(|s| s["digest_round"] == first["digest_round"] && s["digest"] == first["digest"]);
        let done = first["digest_round"].as_u64().filter(|now| *now > round)?;
        let all = seen.iter().all(|s| whole(s) == members.len());
        let spoken = members
            .iter()
            .zip(&seen)
            .all(|(member, s)| right(member, s));
        (same && all && spoken).then_some(done)
    })
}

#[test]
fn a_run_goes_on_while_its_daemons_are_upgraded_one_by_one() {
    let turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let mut members: Vec<Member> = Vec::new();
    for index in 0..4 {
        let join = members.first().map(|member| member.address.clone());
        members.push(start(&turn, dir.path(), index, (false, 4), join.as_deref()));
    }
    let mut round = together(&members, 0);
    println!("four daemons of the old release: round {round}");
    for index in 0..4_usize {
        let other = members[(index + 1) % 4].address.clone();
        let old = members.remove(index);
        let stopped = old.daemon.interrupt().polite().rounds;
        // The others train on without it.
        round = together(&members, stopped.max(round));
        let new = start(&turn, dir.path(), index as u32, (true, 1), Some(&other));
        assert_eq!(new.peer, old.peer, "it is the same daemon");
        members.insert(index, new);
        round = together(&members, round);
        println!("{} of four daemons upgraded: round {round}", index + 1);
    }
    assert!(members.iter().all(|member| member.upgraded));
    for member in members {
        let ended = member.daemon.interrupt();
        let report = ended.polite();
        assert!(report.rounds >= round, "{report:?}");
        let refused = ended
            .notes
            .iter()
            .find(|note| note.contains("does not fit"));
        assert_eq!(refused, None);
    }
}
