//! The exchange `differences` in the simulator: each kind of fault by itself. The invariants are
//! checked after every event.

use murmurate_sim::{Report, RunOptions, Scenario, ToyTasksOnly, run_scenario};

const PRESETS: [&str; 2] = ["dcd-psgd", "ecd-psgd"];

/// Six machines for some rounds.
fn run(preset: &str, rounds: u64, more: &str) -> Report {
    let text = format!(
        "seed = 5\npeers = 6\nrounds = {rounds}\nsave_every_s = 0.5\nevaluate_every = {rounds}\n\
         [task]\nkind = \"quadratic\"\ndim = 32\nheterogeneity = 0.3\n\
         [strategy]\npreset = \"{preset}\"\n[strategy.overlap]\nfragments = 2\n\
         [strategy.deadlines]\nfloor_ms = 100\ninitial_ms = 500\nceiling_ms = 2000\n\
         [compute]\nstep_ms = 20.0\n[limits]\nvirtual_s = 3600.0\nevents = 3_000_000\n{more}"
    );
    let scenario = Scenario::from_toml(&text, preset, preset);
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}\n{text}"));
    let report = run_scenario(&scenario, &ToyTasksOnly, RunOptions::default());
    report.unwrap_or_else(|error| panic!("{preset}: {error}"))
}

/// Whether the mean loss above the optimum is that of gossip on different data. Alone a peer stays
/// above 0.5.
fn found(report: &Report) -> bool {
    let last = report.samples.last().expect("samples");
    last.loss.expect("a loss") < 0.1
}

fn waits_are_bounded(report: &Report) -> bool {
    report.counters.longest_wait_s <= report.counters.longest_wait_allowed_s
}

const QUIET: &str = "[network]\nlatency_ms = 5.0\n";
const LOSSY: &str = "[network]\nlatency_ms = 5.0\njitter_ms = 20.0\nloss = 0.2\nretry_ms = 50.0\n";

#[test]
fn without_faults_all_find_the_common_optimum() {
    for preset in PRESETS {
        let report = run(preset, 300, QUIET);
        let counters = &report.counters;
        assert_eq!((report.live, counters.rule_breaks), (6, 0), "{report}");
        // Two fragments to two neighbours; fewer only before views were complete.
        let all = 300 * 2 * 12;
        assert!(
            counters.pushes > all - 100 && counters.pushes <= all + 100,
            "{report}"
        );
        assert!(found(&report), "{report}");
    }
}

#[test]
fn loss_and_jitter_cost_time_and_nothing_else() {
    for preset in PRESETS {
        let report = run(preset, 300, LOSSY);
        assert!(report.counters.pushes_lost > 100, "{report}");
        assert_eq!(
            (report.live, report.counters.rule_breaks),
            (6, 0),
            "{report}"
        );
        assert!(found(&report) && waits_are_bounded(&report), "{report}");
    }
}

#[test]
fn a_death_in_any_phase_leaves_five_that_finish() {
    for preset in PRESETS {
        for phase in ["train", "exchange", "apply"] {
            for delay in ["0.0", "0.003", "0.006", "0.012"] {
                let fault = format!(
                    "{QUIET}[[fault]]\nkind = \"crash\"\npeer = 2\nround = 9\n\
                     phase = \"{phase}\"\ndelay_s = {delay}\n"
                );
                let report = run(preset, 60, &fault);
                assert_eq!(report.live, 5, "{preset} {phase} {delay}: {report}");
                assert_eq!(report.counters.rule_breaks, 0, "{report}");
                assert!(waits_are_bounded(&report), "{report}");
            }
        }
    }
}

#[test]
fn a_restarted_peer_takes_part_again() {
    for preset in PRESETS {
        for peer in 0..6 {
            let fault = format!(
                "{LOSSY}[[fault]]\nkind = \"crash\"\npeer = {peer}\nround = 9\nphase = \"exchange\"\n\
                 delay_s = 0.003\nrestart_after_s = 1.5\n"
            );
            let report = run(preset, 300, &fault);
            assert_eq!(report.live, 6, "{report}");
            assert_eq!(report.counters.rule_breaks, 0, "{report}");
            assert!(found(&report), "{preset} {peer} {report}");
        }
    }
}

#[test]
fn a_stalled_peer_delays_the_others_by_at_most_a_deadline() {
    for preset in PRESETS {
        let fault = format!(
            "{QUIET}[[fault]]\nkind = \"straggler\"\npeer = 3\nat_s = 0.5\nfactor = 1000.0\n\
             lasts_s = 60.0\n"
        );
        let report = run(preset, 60, &fault);
        assert_eq!(report.live, 6, "{report}");
        assert!(waits_are_bounded(&report), "{report}");
    }
}

/// A difference that is nonsense moves no copy: it is dropped, and the copy told whole.
#[test]
fn nonsense_is_refused_and_the_others_go_on() {
    for preset in PRESETS {
        for lie in ["garbage", "truncated", "flipped-bit"] {
            let fault = format!(
                "{QUIET}[[fault]]\nkind = \"byzantine\"\npeer = 2\nround = 5\n\
                 phase = \"train\"\nlie = \"{lie}\"\nlasts_s = 0.5\n"
            );
            let report = run(preset, 60, &fault);
            assert!(report.counters.lies > 0, "{report}");
            assert!(report.live >= 5, "{report}");
        }
    }
}
