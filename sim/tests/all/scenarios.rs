//! The scenarios in the repository and what each of them guarantees.

use crate::common::{last, learned, play, shipped as scenario};
use murmurate_sim::{Report, Scenario};

fn run(scenario: &Scenario) -> Report {
    play(scenario, None)
}

#[test]
fn eight_peers_agree_and_learn() {
    let report = run(&scenario("all-reduce-8"));
    assert_eq!((report.live, report.counters.rounds_ended), (8, 160));
    assert!(
        report
            .samples
            .iter()
            .all(|s| s.consensus_distance == 0.0 && s.peers == 8)
    );
    learned(&report, "eight peers");
    assert!(
        report.counters.bytes_encoded * 3 < report.counters.bytes_payload,
        "int8: {report}"
    );
}

#[test]
fn three_deaths_in_three_phases_leave_five_that_hold_the_same_bits() {
    let base = scenario("all-reduce-crash");
    for seed in 0..8 {
        let report = play(&base, Some(seed));
        assert_eq!(report.live, 5, "seed {seed}: {report}");
        let last = last(&report);
        assert_eq!((last.round, last.peers), (20, 5), "seed {seed}: {report}");
        assert_eq!(last.consensus_distance, 0.0, "seed {seed}: {report}");
        let waited = report.counters.longest_wait_s;
        assert!(
            waited <= report.counters.longest_wait_allowed_s,
            "seed {seed}: {report}"
        );
    }
}

/// The invariant about sums is checked after every order of every peer.
#[test]
fn masked_sums_are_whole_while_peers_crash_return_pause_and_lose_links() {
    let base = scenario("secure");
    for seed in 0..24 {
        let report = play(&base, Some(seed));
        assert_eq!(report.live, 7, "seed {seed}: {report}");
        let last = last(&report);
        assert_eq!(
            (last.round, last.consensus_distance),
            (24, 0.0),
            "seed {seed}: {report}"
        );
        assert!(last.loss < Some(4.0), "seed {seed}: {report}");
        assert!(
            report.counters.voided > 0,
            "a crash between two shards: seed {seed}: {report}"
        );
        assert_eq!(report.counters.failures, [""; 0], "seed {seed}");
    }
}

#[test]
fn a_straggler_takes_fewer_inner_steps_and_delays_no_other() {
    let base = scenario("straggler");
    let slow = run(&base);
    let mut undisturbed = base.clone();
    undisturbed.faults.clear();
    let even = run(&undisturbed);
    assert!(slow.counters.inner_steps < even.counters.inner_steps);
    // Three seconds at a twentieth of its speed affect at most 15 rounds of 0.2 s. Each is longer
    // by the one inner step that even the slowest machine takes: 20 x 20 ms.
    assert!(
        slow.virtual_s < even.virtual_s + 15.0 * 0.4,
        "{slow}\n{even}"
    );
    assert!(
        slow.samples.last().expect("samples").loss < Some(0.3),
        "{slow}"
    );
}

#[test]
fn a_late_joiner_catches_up_and_trains_on() {
    let report = run(&scenario("late-join"));
    let last = last(&report);
    assert_eq!((last.peers, last.consensus_distance), (4, 0.0), "{report}");
    assert!(
        report.counters.catch_ups > 0 && report.counters.bytes_fetched > 0,
        "{report}"
    );
    // All four trained at least the last fourteen rounds.
    assert!(report.counters.rounds_ended >= 3 * 30 + 14, "{report}");
}

#[test]
fn a_restarted_peer_goes_on_from_its_checkpoint_and_holds_the_same_bits() {
    let report = run(&scenario("restart"));
    let last = last(&report);
    assert_eq!((last.peers, last.consensus_distance), (4, 0.0), "{report}");
    let what: Vec<_> = report
        .counters
        .faults
        .iter()
        .map(|fault| fault.what)
        .collect();
    assert_eq!(what, ["crash", "restart"]);
}

/// A scenario with another preset and a schedule of the learning rate.
fn scheduled(name: &str, preset: &str) -> Scenario {
    let mut scenario = scenario(name);
    let strategy = format!(
        "preset = \"{preset}\"\n[inner]\noptimizer = \"sgd\"\nlr = 0.1\n\
         schedule = \"cosine\"\nwarmup_rounds = 4\nfinal_rate = 0.0\n\
         [deadlines]\nfloor_ms = 200\ninitial_ms = 1000\n"
    );
    scenario.strategy = strategy.parse().expect("a table");
    scenario
}

#[test]
fn a_schedule_is_the_same_for_peers_that_restart_or_come_late() {
    for name in ["restart", "late-join"] {
        for preset in ["local-sgd", "bsp"] {
            let report = run(&scheduled(name, preset));
            let last = last(&report);
            // With gradients every peer steps by itself: equal bits need equal rates.
            assert_eq!(
                (last.peers, last.consensus_distance),
                (4, 0.0),
                "{name} {preset}: {report}"
            );
            learned(&report, &format!("{name} {preset}"));
        }
    }
}

#[test]
fn gossip_survives_heavy_loss() {
    let report = run(&scenario("lossy-gossip"));
    assert_eq!(report.live, 20);
    assert!(report.counters.pushes_lost > 100, "{report}");
    // From 4.6 at the start to near the common optimum, at every peer that evaluates at the end.
    let last = last(&report);
    assert!(last.loss < Some(1.0), "{report}");
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_seed_another() {
    for name in ["all-reduce-crash", "restart", "late-join", "straggler"] {
        let base = scenario(name);
        let trace = |seed| play(&base, Some(seed)).trace;
        assert_eq!(trace(11), trace(11), "{name}");
        assert_ne!(trace(11), trace(12), "{name}");
    }
}

#[test]
fn a_slice_of_the_large_swarm_is_deterministic_and_finishes() {
    let mut small = scenario("gossip-1000");
    (small.peers, small.rounds, small.evaluate_every) = (300, 10, 10);
    let (a, b) = (run(&small), run(&small));
    assert_eq!(a.trace, b.trace);
    assert_eq!(a.live, 300, "{a}");
}
