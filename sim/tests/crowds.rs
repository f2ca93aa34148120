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
             [network]\nlatency_ms = 5.0\nuplink_mbit = 1000.0\ndownlink_mbit = 1000.0\n\
             [compute]\nstep_ms = {step_ms:.1}\n"
        ),
        None,
    );
    println!("{report}");
    println!("{:?}", report.counters.bytes_by_message);
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

/// The difference of a long and a short run leaves out how the swarm starts.
#[test]
fn the_control_messages_of_a_full_group_stay_small() {
    let (few, many) = (swarm(64, 4, 50.0), swarm(64, 12, 50.0));
    let names = many.counters.bytes_by_message.keys();
    let each = |name: &&str| {
        let of = |report: &Report| report.counters.bytes_by_message.get(*name).copied();
        (of(&many).unwrap_or(0) as f64 - of(&few).unwrap_or(0) as f64) / (8.0 * 64.0)
    };
    for name in names {
        println!("{name}: {:.0}", each(name));
    }
    let all = many.counters.bytes_control - few.counters.bytes_control;
    let all = all / (8 * 64);
    println!("all {all}");
    // 63 votes of 101 bytes, 63 ready of 66, and one proposal of 2.6 kB for each member make 13 kB.
    assert!(all <= 15_000, "{all} bytes for each peer and round");
    assert_eq!(many.counters.voided, 0);
}
