//! A newcomer that is killed while it fetches the swarm's state, and started again.

use murmurate_tests::{Daemon, Settings, status, success, turn, wait_until};
use rustix::process::Signal;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// How long a wait may take on a busy machine.
const WAIT: Duration = Duration::from_secs(90);

/// What the newcomer has fetched when it is killed, of 13 MB.
const KEPT: u64 = 6 << 20;

/// Bytes of a fetched state that lie on the disk. The file has its full length from the start, with holes
/// where chunks are missing.
fn fetched(home: &Path) -> u64 {
    let file = home.join("incoming.state").metadata();
    file.map_or(0, |file| file.blocks() * 512)
}

#[test]
fn a_newcomer_that_was_killed_in_a_transfer_fetches_only_the_rest() {
    let turn = turn();
    let dir = tempfile::tempdir().unwrap();
    // 1.6 million parameters: the anchor and the outer momentum are a state of 13 MB. The donor has done all
    // rounds, so that nothing but the state travels.
    let settings = Settings {
        task: "hidden = 2048".to_owned(),
        rounds: 2,
        inner_steps: Some(2),
        stay: true,
        ..Settings::default()
    };
    let homes = ["donor", "newcomer"].map(|name| dir.path().join(name));
    let mut donor = Daemon::start(&turn, &settings, &homes[0], &[]);
    let (_, address, _) = donor.listening();
    donor.reaches(2);
    let limit = ["limit", homes[0].to_str().unwrap(), "--max-rate", "2 MB/s"];
    success(dir.path(), &limit);

    let start = || Daemon::start(&turn, &settings.shard(1), &homes[1], &[&address]);
    let first = start();
    wait_until("half of the state", WAIT, || {
        (fetched(&homes[1]) >= KEPT).then_some(())
    });
    first.signal(Signal::KILL);
    drop(first);

    let mut second = start();
    let (.., http) = second.listening();
    let mut whole = 0;
    let loaded = wait_until("the end of the run", WAIT, || {
        let status = status(&http);
        whole = status["transfer"]["of_bytes"].as_u64().unwrap_or(whole);
        (status["phase"] == "finished").then_some(status)
    });
    assert_eq!(loaded["catch_ups"], 1, "{loaded}");
    let received = loaded["bytes_received"]["wire"].as_u64().unwrap();
    println!("{received} of {whole} bytes after the restart");
    assert!(whole > 2 * KEPT, "the state has {whole} bytes");
    // 2 MiB for chunks that were under way, headers and what the swarm says meanwhile.
    assert!(
        received < whole - KEPT + (2 << 20),
        "{received} of {whole} bytes were fetched again"
    );
}
