//! Pulls with bounds (presets `wagma` and `hop`) and groups (`prague`) in the simulator: what a slow
//! machine costs the others, how far peers are apart, and each kind of fault.

use crate::common::{crash, crash_for, intact, loss, slow, waits_are_bounded};
use murmurate_sim::Report;

const PRESETS: [&str; 3] = ["wagma", "hop", "prague"];

/// Eight machines for some rounds. The invariants are checked after every event.
fn run(strategy: &str, rounds: u64, more: &str) -> Report {
    let text = format!(
        "seed = 5\npeers = 8\nrounds = {rounds}\nsave_every_s = 0.5\nevaluate_every = 20\n\
         [task]\nkind = \"quadratic\"\ndim = 32\nheterogeneity = 0.3\n\
         [strategy]\n{strategy}\n\
         [strategy.deadlines]\nfloor_ms = 200\ninitial_ms = 2000\nceiling_ms = 5000\n\
         [limits]\nvirtual_s = 3600.0\nevents = 5_000_000\n{more}"
    );
    crate::common::run(&text, None)
}

fn preset(name: &str) -> String {
    format!("preset = \"{name}\"")
}

fn found(report: &Report) -> bool {
    loss(report) < 0.3
}

const QUIET: &str = "[compute]\nstep_ms = 20.0\n[network]\nlatency_ms = 5.0\n";
const LOSSY: &str = "[compute]\nstep_ms = 20.0\n[network]\nlatency_ms = 5.0\njitter_ms = 20.0\nloss = 0.2\nretry_ms = 50.0\n";

#[test]
fn without_faults_all_find_the_common_optimum() {
    for name in PRESETS {
        let report = run(&preset(name), 300, QUIET);
        intact(&report, 8);
        assert!(found(&report), "{name}: {report}");
    }
}

#[test]
fn loss_and_jitter_cost_time() {
    for name in PRESETS {
        let report = run(&preset(name), 300, LOSSY);
        intact(&report, 8);
        assert!(waits_are_bounded(&report), "{name}: {report}");
        assert!(found(&report), "{name}: {report}");
    }
}

#[test]
fn where_a_fifth_of_the_messages_is_lost_peers_stay_together() {
    for name in ["wagma", "hop"] {
        let apart = |network| {
            let report = run(&preset(name), 300, network);
            assert_eq!(report.live, 8, "{report}");
            assert!(found(&report), "{name}: {report}");
            report.consensus_distance
        };
        let [calm, lossy] = [QUIET, LOSSY].map(apart);
        println!("{name}: {calm:.3} apart without loss, {lossy:.3} with it");
        // Neighbours with different data stay apart by what an inner step moves them, also without loss.
        assert!(lossy < 0.1 + 1.5 * calm, "{name}: {calm} and {lossy} apart");
    }
}

#[test]
fn a_death_in_any_phase_leaves_seven_that_finish() {
    for name in PRESETS {
        for phase in ["train", "exchange", "apply"] {
            // Messages of a round with 5 ms one way: a question, a question of the maker, a part,
            // a mean.
            for delay in [0.0, 0.004, 0.006, 0.011, 0.016, 0.021] {
                let fault = crash(2, 9, phase, delay);
                let report = run(&preset(name), 60, &format!("{QUIET}{fault}"));
                assert_eq!(report.live, 7, "{name} {phase} {delay}: {report}");
                assert_eq!(report.counters.rule_breaks, 0, "{report}");
                assert!(waits_are_bounded(&report), "{report}");
            }
        }
    }
}

#[test]
fn a_restarted_peer_takes_part_again() {
    for name in PRESETS {
        let fault = crash_for(2, 9, "exchange", 0.003, 1.5);
        let report = run(&preset(name), 300, &format!("{LOSSY}{fault}"));
        assert_eq!(report.live, 8, "{name}: {report}");
        assert!(found(&report), "{name}: {report}");
    }
}

/// What three machines that stall for some rounds, one after another, add to the time of a run.
fn stalls(strategy: &str) -> f64 {
    let stall = |(peer, at_s)| slow(peer, at_s, 8.0, 0.04);
    let faults: String = [(0, 1.0), (3, 1.2), (6, 1.4)].map(stall).concat();
    let (calm, with) = (
        run(strategy, 100, QUIET),
        run(strategy, 100, &format!("{QUIET}{faults}")),
    );
    assert_eq!(with.live, 8, "{with}");
    with.virtual_s - calm.virtual_s
}

/// One machine is slow from its second round on. Where all are in step they take its time; by `hop` it
/// is a backup, renews its parameters and skips rounds. `wagma` is for stalls: all wait for all in one
/// round of `sync_every`.
#[test]
fn a_slow_peer_holds_no_other_up() {
    let slow = slow(2, 0.1, 4.0, 3600.0);
    let time = |strategy: &str| {
        let report = run(strategy, 100, &format!("{QUIET}{slow}"));
        assert_eq!(report.live, 8, "{report}");
        assert!(waits_are_bounded(&report), "{report}");
        report.virtual_s
    };
    let in_step = time("preset = \"bsp\"");
    let hop = time(&preset("hop"));
    println!("{in_step:.2} s in step, {hop:.2} s by hop");
    assert!(hop < 0.6 * in_step, "{hop} {in_step}");
}

#[test]
fn stalls_one_after_another_add_up_only_where_all_are_in_step() {
    let in_step = stalls("preset = \"d-psgd\"\n[strategy.architecture]\ntopology = \"complete\"");
    let seldom = "preset = \"wagma\"\n[strategy.architecture]\nstaleness = 40\nsync_every = 40";
    let free = [stalls(&preset("hop")), stalls(seldom)];
    println!("{in_step} s in step, {free:?} s by hop and wagma");
    // Each stall takes seven steps of 20 ms more.
    assert!(in_step > 0.3, "{in_step}");
    assert!(
        free.iter().all(|free| *free < 0.7 * in_step),
        "{free:?} {in_step}"
    );
}
