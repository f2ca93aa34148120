//! Every exchange under the same faults: none, loss and jitter, deaths before, during and after
//! each kind of message, a stalled peer, a peer that sends nonsense. The simulator checks its
//! invariants after every event. These tests check the final state of the survivors.

use crate::common::{crash, crash_and_return, lies, loss, run, stall};
use murmurate_sim::Report;

const PEERS: usize = 6;
const ROUNDS: u64 = 16;

/// Architecture tables of exchanges whose peers agree on every round.
const AGREEING: [&str; 5] = [
    "exchange = \"all-reduce\"",
    "exchange = \"gathered\"",
    "exchange = \"parameter-server\"\nowners = 2",
    "exchange = \"parameter-server\"\nowners = 1",
    "exchange = \"parameter-server\"\nowners = 3\nparts = 8",
];

fn text(architecture: &str, network: &str, faults: &str) -> String {
    format!(
        "seed = 2\npeers = {PEERS}\nrounds = {ROUNDS}\n\
         [task]\nkind = \"quadratic\"\ndim = 64\nnoise = 0.0\nheterogeneity = 0.0\n\
         [strategy]\npreset = \"local-sgd\"\n\
         [strategy.architecture]\n{architecture}\n\
         [strategy.deadlines]\nfloor_ms = 500\ninitial_ms = 4000\n\
         [network]\nlatency_ms = 20.0\ndetection_ms = 300.0\nbootstrap = 32\n{network}\n{faults}"
    )
}

/// Checks that `peers` machines are up at the end, hold the same bits, and have learned.
fn agreed(report: &Report, peers: usize, what: &str) {
    // A peer that takes a state over in the last round is not sampled. The simulator waits for
    // equal bits.
    crate::common::agreed(report, peers, ROUNDS, what);
    assert!(loss(report) < 1e-3, "{what}: {report}");
}

#[test]
fn without_faults_all_hold_the_same_bits_in_every_round() {
    for architecture in AGREEING {
        let report = run(&text(architecture, "", ""), None);
        agreed(&report, PEERS, architecture);
        assert_eq!(report.counters.rounds_ended, PEERS as u64 * ROUNDS);
        assert_eq!((report.counters.voided, report.counters.catch_ups), (0, 0));
        assert!(report.samples.iter().all(|s| s.consensus_distance == 0.0));
    }
}

#[test]
fn loss_and_jitter_cost_time_and_leave_the_same_bits() {
    let network = "jitter_ms = 15.0\nloss = 0.03";
    for architecture in AGREEING {
        for seed in 0..3 {
            let report = run(&text(architecture, network, ""), Some(seed));
            agreed(&report, PEERS, architecture);
        }
    }
}

#[test]
fn a_death_before_during_or_after_any_message_leaves_the_others_with_the_same_bits() {
    // Messages of a round with 20 ms one way: ready and propose, contributions, reductions, votes.
    let moments = [
        ("train", 0.05),
        ("exchange", 0.0),
        ("exchange", 0.03),
        ("exchange", 0.05),
        ("exchange", 0.07),
        ("exchange", 0.09),
        ("exchange", 0.11),
        ("apply", 0.0),
    ];
    for architecture in AGREEING {
        for (phase, delay) in moments {
            // Some of these peers are owners.
            for victim in 0..PEERS {
                let fault = crash(victim, 4, phase, delay);
                let report = run(&text(architecture, "", &fault), None);
                agreed(&report, PEERS - 1, &format!("{architecture} {fault}"));
            }
        }
    }
}

#[test]
fn one_that_stalls_is_not_waited_for_and_catches_up() {
    for architecture in AGREEING {
        for victim in 0..PEERS {
            let fault = stall(victim, 1.0, 10000.0);
            let report = run(&text(architecture, "", &fault), None);
            agreed(&report, PEERS, &format!("{architecture} {fault}"));
        }
    }
}

#[test]
fn a_dead_peer_that_comes_back_holds_what_the_others_hold() {
    for architecture in AGREEING {
        let fault = crash_and_return(3, 4, "exchange", 0.05);
        let report = run(&text(architecture, "", &fault), None);
        agreed(&report, PEERS, architecture);
    }
}

#[test]
fn nonsense_is_found_and_left_out() {
    for architecture in AGREEING {
        for lie in ["garbage", "truncated"] {
            let fault = lies(1, 1.0, 0.5, lie);
            let report = run(&text(architecture, "", &fault), None);
            assert!(report.counters.lies > 0, "{fault} {report}");
            agreed(&report, PEERS, &format!("{architecture} {fault}"));
        }
    }
}

/// Pushes and bytes of a run with this number of peers. Contributions are f32 with one byte before
/// the values.
fn traffic(architecture: &str, peers: usize) -> (u64, u64) {
    let text = text(architecture, "", "")
        .replace(&format!("peers = {PEERS}"), &format!("peers = {peers}"))
        .replace(&format!("rounds = {ROUNDS}"), "rounds = 2");
    let report = run(&text, None);
    assert_eq!(report.counters.rounds_ended, 2 * peers as u64);
    (report.counters.pushes, report.counters.bytes_encoded)
}

#[test]
fn pushes_and_bytes_are_those_of_the_formula() {
    let (rounds, values) = (2, 4 * 64);
    for peers in 2..=33u64 {
        let n = peers as usize;
        // n (n - 1) complete contributions.
        let pushes = rounds * peers * (peers - 1);
        assert_eq!(
            traffic("exchange = \"gathered\"", n),
            (pushes, pushes * (1 + values)),
            "{n}"
        );
        for owners in [1u64, 3, 64] {
            let architecture = format!("exchange = \"parameter-server\"\nowners = {owners}");
            // Each of k shards travels from n - 1 peers to its owner, and back.
            let shards = owners.min(peers);
            let pushes = rounds * 2 * shards * (peers - 1);
            let bytes = rounds * 2 * (peers - 1) * (shards + values);
            assert_eq!(traffic(&architecture, n), (pushes, bytes), "{n} {owners}");
        }
    }
}

/// Machines of the sites of a swarm, and the Mbit/s of their lines.
const LINES: [(usize, f64); 3] = [(1, 800.0), (3, 400.0), (12, 200.0)];

/// Seconds in which a round of a parameter server without tensors moves its bytes: with k owners, and
/// fragments of 4 million values in all.
fn moving_s(labels: &str, owners: usize, parts: usize, fragments: usize) -> f64 {
    let mut first = 0;
    let mut sites = String::new();
    for (machines, mbit) in LINES {
        let last = first + machines - 1;
        sites += &format!(
            "[[network.site]]\nname = \"of-{mbit}\"\nfirst = {first}\nlast = {last}\n\
             uplink_mbit = {mbit:.1}\ndownlink_mbit = {mbit:.1}\n"
        );
        first = last + 1;
    }
    let rounds = |rounds: u64| {
        let text = format!(
            "seed = 5\npeers = {first}\nrounds = {rounds}\nevaluate_every = 1000\n\
             [task]\nkind = \"timing\"\nparameters = 4_000_000\n\
             [strategy]\npreset = \"local-sgd\"\n[strategy.compression]\ncodec = \"f32\"\n\
             [strategy.architecture]\nexchange = \"parameter-server\"\n\
             owners = {owners}\nparts = {parts}\n[strategy.overlap]\nfragments = {fragments}\n\
             [strategy.deadlines]\nfloor_ms = 20000\ninitial_ms = 20000\nceiling_ms = 60000\n\
             [network]\nlatency_ms = 0.1\nlabels = \"{labels}\"\nbootstrap = 64\n\
             [compute]\nstep_ms = 0.01\n{sites}"
        );
        run(&text, None).virtual_s
    };
    (rounds(10) - rounds(6)) / 4.0
}

#[test]
fn owners_of_parts_by_their_lines_shorten_a_round_by_what_the_formula_says() {
    // Megabytes, and megabytes per second of the slowest.
    let (all, slowest) = (16.0, 25.0);
    let others = 15.0;
    for (owners, fragments, of_fastest, relative) in [
        // Four owners: 0.4 M at 4 times and 0.2 M at twice the rate of the slowest.
        (4, 1, 0.4, 4.0),
        (4, 3, 0.4, 4.0),
        // One.
        (1, 1, 1.0, 4.0),
    ] {
        // Contributions, then results.
        let formula = 2.0 * others * of_fastest * all / relative / slowest;
        let dealt = moving_s("configured", owners, 60, fragments);
        let unknown = moving_s("none", owners, 60, fragments);
        let shards = moving_s("none", owners, 0, fragments);
        // Without rates the owners are any members, here a slow one among them.
        let equal = 2.0 * others / owners as f64 * all / slowest;
        println!(
            "{owners} owners, {fragments} fragments: {dealt:.2} s by lines ({formula:.2} by the \
             formula), {unknown:.2} s with equal parts, {shards:.2} s with equal shards ({equal:.2})"
        );
        assert!((dealt / formula - 1.0).abs() < 0.03, "{dealt} {formula}");
        assert!((shards / equal - 1.0).abs() < 0.03, "{shards} {equal}");
        assert!((unknown / equal - 1.0).abs() < 0.03, "{unknown} {equal}");
    }
}

#[test]
fn enough_go_on_without_the_slowest_who_takes_their_outcome_over() {
    // One peer is slower: its rounds take 0.4 s, those of the others 0.16 s.
    let slow = "[compute]\nstep_ms = 10.0\nspeeds = [1.0, 1.0, 1.0, 1.0, 1.0, 0.4]\n";
    let all = "exchange = \"parameter-server\"\nowners = 2";
    let waits = run(&text(all, "", slow), None);
    agreed(&waits, PEERS, all);
    let quorum = format!("{slow}[strategy.synchronization]\ninner_steps = 16\nenough = 5\n");
    let goes_on = run(&text(all, "", &quorum), None);
    agreed(&goes_on, PEERS, all);
    assert!(
        goes_on.virtual_s < 0.8 * waits.virtual_s,
        "{goes_on}\n{waits}"
    );
    assert!(goes_on.counters.catch_ups > 0, "{goes_on}");
    // A peer that arrives within the grace is part of the round.
    let patient = format!("{quorum}grace_ms = 400\n");
    let patient = run(&text(all, "", &patient), None);
    agreed(&patient, PEERS, all);
    assert_eq!(patient.counters.catch_ups, 0, "{patient}");
}
