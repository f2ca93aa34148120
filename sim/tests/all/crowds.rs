//! Swarms of as many peers as one group has room for, and of more: who is in the groups, and what
//! the peers say to each other. Without tensors.

use crate::common::run;
use murmurate_protocol::limits::STRANGER_LINKS_MAX;
use murmurate_sim::Report;

/// What 512 peers of a grid cost, each. These grow with the rows and columns of a peer and not with the
/// swarm, so that ten thousand fit into one machine.
#[test]
fn a_peer_of_a_grid_talks_to_its_row_and_column_only() {
    let (peers, rounds) = (512, 2);
    let report = run(
        &format!(
            "seed = 3\npeers = {peers}\nrounds = {rounds}\nevaluate_every = 1000\n\
             [task]\nkind = \"timing\"\nparameters = 100_000\n\
             [strategy]\npreset = \"diloco\"\n\
             [strategy.agreement]\ngrouping = \"grid\"\nrow = 23\n\
             [network]\nlatency_ms = 5.0\nuplink_mbit = 1000.0\ndownlink_mbit = 1000.0\n"
        ),
        None,
    );
    println!("{report}");
    let counters = &report.counters;
    assert_eq!(counters.voided + counters.catch_ups, 0);
    assert_eq!(counters.rounds_ended, rounds * peers);
    // 22 in the row, 22 in the column, those that sum for the short row, and the links of the founding.
    let each = |count: u64| count / peers;
    assert!(each(counters.links) <= 44 + 4 + 32, "{report}");
    // Signs of life, votes, hellos and the founding.
    let messages = each(counters.messages);
    assert!(messages <= 800, "{messages} messages");
    // Two events for each message and four for each push, at most.
    let events = each(counters.events);
    let most = 2 * messages + 4 * each(counters.pushes) + 200;
    assert!(events <= most, "{events} events of {most}");
    // The roll in pages is 110 bytes a peer, and comes from two others.
    let pages = counters.bytes_by_message["page"] / peers;
    assert!(pages <= 2 * 125 * peers, "{pages} bytes of pages");
}

/// Founding a run links most of 128 peers with each other. What is neither row nor column is closed.
#[test]
fn a_peer_of_a_grid_keeps_the_links_of_its_row_and_column_and_a_few() {
    let report = run(
        "seed = 3\npeers = 128\nrounds = 20\nevaluate_every = 1000\n\
         [task]\nkind = \"timing\"\nparameters = 100_000\n\
         [strategy]\npreset = \"diloco\"\n\
         [strategy.agreement]\ngrouping = \"grid\"\nrow = 8\n\
         [network]\nlatency_ms = 5.0\nuplink_mbit = 1000.0\ndownlink_mbit = 1000.0\n\
         [compute]\nstep_ms = 50.0\n",
        None,
    );
    println!("{report}");
    let counters = &report.counters;
    assert_eq!(counters.voided + counters.catch_ups, 0, "{report}");
    assert_eq!(counters.rounds_ended, 20 * 128, "{report}");
    // Seven in the row, fifteen in the column. Each end keeps eight others.
    let most = counters.links_most;
    assert!(
        most <= 7 + 15 + STRANGER_LINKS_MAX as u64,
        "{most}: {report}"
    );
}

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

/// Control bytes of each peer and round, by message. The difference of a long and a short run leaves out
/// how the swarm starts.
fn control_bytes(few: &Report, many: &Report, peer_rounds: u64) -> u64 {
    for (name, bytes) in &many.counters.bytes_by_message {
        let before = few.counters.bytes_by_message.get(name).copied();
        let each = bytes.saturating_sub(before.unwrap_or(0)) / peer_rounds;
        println!("{name}: {each}");
    }
    let all = many.counters.bytes_control - few.counters.bytes_control;
    println!("all: {}", all / peer_rounds);
    all / peer_rounds
}

#[test]
fn the_control_messages_of_a_full_group_stay_small() {
    let (few, many) = (swarm(64, 4, 50.0), swarm(64, 12, 50.0));
    // 63 votes of 101 bytes, 63 times ready of 66, and one proposal of 2.6 kB for each member make 13 kB. Signs
    // of life and records are the rest.
    assert!(control_bytes(&few, &many, 8 * 64) <= 15_500);
    assert_eq!(many.counters.voided, 0);
}

/// 64 machines in homes: 20 Mbit/s up, 60 ms, 1 % loss, so that each half of an exchange takes as long
/// as the shortest deadline. When one dies, what all hand out is not sent twice, and the repair has the
/// time of both halves: no round is lost. Before, a death cost two or three rounds and sent others into
/// states that they could not catch up with.
#[test]
fn a_death_among_64_homes_costs_no_round() {
    for seed in [3, 8] {
        let report = run(
            &format!(
                "seed = {seed}\npeers = 64\nrounds = 20\nevaluate_every = 1000\n\
                 [task]\nkind = \"timing\"\nparameters = 1_000_000\n\
                 [strategy]\npreset = \"diloco\"\n\
                 [network]\nlatency_ms = 30.0\nuplink_mbit = 20.0\ndownlink_mbit = 100.0\n\
                 detection_ms = 2500.0\npacket_loss = 0.01\n[compute]\nstep_ms = 100.0\n\
                 speeds = [0.5, 0.5, 0.5{}]\n\
                 [[fault]]\nkind = \"random-crashes\"\nmean_s = 93.75\nuntil_s = 80.0\n\
                 restart_after_s = 5.0\ndown_max = 6\n",
                ", 1.0".repeat(61)
            ),
            None,
        );
        println!("{report}");
        assert!(!report.counters.faults.is_empty(), "{report}");
        assert_eq!(report.counters.voided, 0, "seed {seed}: {report}");
    }
}
