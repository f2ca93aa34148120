//! The exchange `relay-sum` in the simulator: each kind of fault by itself. The invariants are
//! checked after every event.

use murmurate_sim::{Report, RunOptions, Scenario, ToyTasksOnly, run_scenario};

const TOPOLOGIES: [&str; 3] = ["binary-tree", "ring", "exponential"];

/// Seven machines for some rounds, with different data.
fn run(topology: &str, rounds: u64, more: &str) -> Report {
    let text = format!(
        "seed = 5\npeers = 7\nrounds = {rounds}\nsave_every_s = 0.5\nevaluate_every = 20\n\
         [task]\nkind = \"quadratic\"\ndim = 32\nheterogeneity = 0.3\n\
         [strategy]\npreset = \"relaysgd\"\n[strategy.architecture]\ntopology = \"{topology}\"\n\
         [strategy.deadlines]\nfloor_ms = 100\ninitial_ms = 500\nceiling_ms = 2000\n\
         [compute]\nstep_ms = 20.0\n[limits]\nvirtual_s = 3600.0\nevents = 3_000_000\n{more}"
    );
    let scenario = Scenario::from_toml(&text, topology, topology);
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}\n{text}"));
    let report = run_scenario(&scenario, &ToyTasksOnly, RunOptions::default());
    report.unwrap_or_else(|error| panic!("{topology}: {error}"))
}

/// Whether the mean loss above the optimum, while all are up, is that of the noise alone, without a
/// bias from different data. A peer that began alone is ahead, finishes earlier, and is missing in
/// the last rounds of the others.
fn found(report: &Report) -> bool {
    let all = report.samples.iter().filter(|sample| sample.peers == 7);
    all.filter_map(|sample| sample.loss).any(|loss| loss < 0.01)
}

fn waits_are_bounded(report: &Report) -> bool {
    report.counters.longest_wait_s <= report.counters.longest_wait_allowed_s
}

const QUIET: &str = "[network]\nlatency_ms = 5.0\n";
const LOSSY: &str = "[network]\nlatency_ms = 5.0\njitter_ms = 20.0\nloss = 0.2\nretry_ms = 50.0\n";

#[test]
fn without_faults_all_find_the_common_optimum() {
    for topology in TOPOLOGIES {
        let report = run(topology, 300, QUIET);
        let counters = &report.counters;
        assert_eq!((report.live, counters.rule_breaks), (7, 0), "{report}");
        // Two fragments along six edges in both directions; fewer only before views were complete.
        let all = 300 * 2 * 12;
        assert!(
            counters.pushes > all - 100 && counters.pushes <= all,
            "{report}"
        );
        assert!(found(&report), "{report}");
    }
}

#[test]
fn loss_and_jitter_cost_time_and_nothing_else() {
    for topology in TOPOLOGIES {
        let report = run(topology, 300, LOSSY);
        assert!(report.counters.pushes_lost > 100, "{report}");
        assert_eq!(
            (report.live, report.counters.rule_breaks),
            (7, 0),
            "{report}"
        );
        assert!(found(&report) && waits_are_bounded(&report), "{report}");
    }
}

#[test]
fn a_death_in_any_phase_leaves_six_that_finish() {
    for topology in TOPOLOGIES {
        for phase in ["train", "exchange", "apply"] {
            for delay in ["0.0", "0.003", "0.006", "0.012"] {
                for peer in 0..7 {
                    let fault = format!(
                        "{QUIET}[[fault]]\nkind = \"crash\"\npeer = {peer}\nround = 9\n\
                         phase = \"{phase}\"\ndelay_s = {delay}\n"
                    );
                    let report = run(topology, 40, &fault);
                    assert_eq!(report.live, 6, "{topology} {phase} {delay}: {report}");
                    assert!(waits_are_bounded(&report), "{report}");
                    assert_eq!(report.counters.rule_breaks, 0, "{report}");
                }
            }
        }
    }
}

#[test]
fn a_restarted_peer_takes_part_again() {
    for topology in TOPOLOGIES {
        for peer in 0..7 {
            let fault = format!(
                "{LOSSY}[[fault]]\nkind = \"crash\"\npeer = {peer}\nround = 9\nphase = \"exchange\"\n\
                 delay_s = 0.003\nrestart_after_s = 1.5\n"
            );
            let report = run(topology, 400, &fault);
            assert_eq!(report.live, 7, "{report}");
            assert!(found(&report), "{topology} {peer} {report}");
        }
    }
}

#[test]
fn a_stalled_peer_delays_the_others_by_at_most_a_deadline() {
    for topology in TOPOLOGIES {
        for peer in 0..7 {
            let fault = format!(
                "{QUIET}[[fault]]\nkind = \"straggler\"\npeer = {peer}\nat_s = 0.5\nfactor = 1000.0\n\
                 lasts_s = 60.0\n"
            );
            let report = run(topology, 60, &fault);
            assert_eq!(report.live, 7, "{report}");
            assert!(waits_are_bounded(&report), "{report}");
            // The others finished long before it woke up.
            assert_eq!(report.counters.rule_breaks, 0, "{report}");
        }
    }
}

/// A peer that is one or two rounds ahead waits for the others. They need not wait for it, because
/// its sums have already arrived.
#[test]
fn rounds_that_differ_by_one_or_two_are_caught_up_and_not_waited_for_on_both_ends() {
    for topology in TOPOLOGIES {
        let undisturbed = run(topology, 300, QUIET).virtual_s;
        for peer in 0..7 {
            for slow in [8, 12, 16] {
                let fault = format!(
                    "{QUIET}[[fault]]\nkind = \"straggler\"\npeer = {peer}\nat_s = 1.0\n\
                     factor = {slow}.0\nlasts_s = 0.02\n"
                );
                let report = run(topology, 300, &fault);
                let lost = report.virtual_s - undisturbed;
                assert!(lost < 2.0, "{topology} {peer} {slow}: {lost} s: {report}");
            }
        }
    }
}

#[test]
fn nonsense_is_refused_and_the_others_go_on() {
    for topology in TOPOLOGIES {
        for lie in ["garbage", "truncated", "flipped-bit"] {
            let fault = format!(
                "{QUIET}[[fault]]\nkind = \"byzantine\"\npeer = 2\nround = 5\n\
                 phase = \"train\"\nlie = \"{lie}\"\nlasts_s = 0.5\n"
            );
            let report = run(topology, 60, &fault);
            assert!(report.counters.lies > 0, "{report}");
            assert!(report.live >= 6, "{report}");
        }
    }
}
