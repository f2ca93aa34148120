//! Swarms of as many peers as one group has room for, and of more: who is in the groups, and what
//! the peers say to each other. Without tensors.

mod common;

use common::run;
use murmurate_sim::Report;

/// A swarm without faults on a fast network.
fn swarm(peers: usize, rounds: u64, step_ms: f64) -> Report {
    let report = run(
        &format!(
            "seed = 3\npeers = {peers}\nrounds = {rounds}\nevaluate_every = 1000\n\
             [task]\nkind = \"timing\"\nparameters = 1_000_000\n\
             [strategy]\npreset = \"diloco\"\n\
             [strategy.agreement]\ngrouping = \"flat\"\n\
             [network]\nlatency_ms = 5.0\nuplink_mbit = 1000.0\ndownlink_mbit = 1000.0\n\
             [compute]\nstep_ms = {step_ms:.1}\n"
        ),
        None,
    );
    println!("{report}");
    report
}

/// A peer that was left out takes over the result while the others train, so training is made long
/// enough for that.
#[test]
fn more_peers_than_a_group_has_room_for_take_turns() {
    let (peers, rounds) = (96, 12);
    let report = swarm(peers, rounds, 500.0);
    // In the order of peer ids.
    let places: Vec<u64> = report.counters.places.values().copied().collect();
    println!("{places:?}");
    assert_eq!(places.len(), peers, "every peer was in a group");
    assert_eq!(
        report.counters.voided, 0,
        "the proposer is always in its group"
    );
    assert_eq!(
        places.iter().sum::<u64>(),
        64 * rounds,
        "every group is full"
    );
    // Each peer has a place with a chance of two in three: 256 for a third of the peers, with a
    // standard deviation of 9.
    for third in places.chunks(peers / 3) {
        let held = third.iter().sum::<u64>();
        assert!((220..=292).contains(&held), "{held} places of 768");
    }
    // A standard deviation of 1.6 around 8, for 96 peers.
    assert!(places.iter().all(|held| *held >= 3), "{places:?}");
}
