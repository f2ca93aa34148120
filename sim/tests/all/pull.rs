//! The exchange `pull` in the simulator: each kind of fault by itself, and the cost.

use crate::common::{
    LOSSY, crash, crash_for, cut_off_in, intact, last, loss, nonsense, slow, waits_are_bounded,
};
use murmurate_sim::Report;

/// Topologies: symmetric and not, with many or few partners, and with new partners in each round.
const TOPOLOGIES: [&str; 4] = [
    "ring",
    "complete",
    "random-matching",
    "one-peer-exponential",
];

/// Runs `peers` machines for `rounds` rounds. The invariants are checked after every event.
fn run(topology: &str, (peers, rounds): (u64, u64), more: &str) -> Report {
    let text = format!(
        "seed = 5\npeers = {peers}\nrounds = {rounds}\nsave_every_s = 0.5\nevaluate_every = {rounds}\n\
         [task]\nkind = \"quadratic\"\ndim = 32\nheterogeneity = 0.3\n\
         [strategy]\npreset = \"d-psgd\"\n[strategy.synchronization]\ninner_steps = 1\n\
         [strategy.architecture]\nexchange = \"pull\"\ntopology = \"{topology}\"\n\
         [strategy.deadlines]\nfloor_ms = 100\ninitial_ms = 500\nceiling_ms = 2000\n\
         [compute]\nstep_ms = 20.0\n[limits]\nvirtual_s = 3600.0\nevents = 3_000_000\n{more}"
    );
    crate::common::run(&text, None)
}

/// Whether the mean loss above the optimum is what one or two neighbours per round leave on
/// different data.
fn found(report: &Report) -> bool {
    loss(report) < 0.3
}

const QUIET: &str = "[network]\nlatency_ms = 5.0\nbootstrap = 64\n";

#[test]
fn without_faults_all_find_the_common_optimum() {
    for topology in TOPOLOGIES {
        let report = run(topology, (6, 300), QUIET);
        let counters = &report.counters;
        intact(&report, 6);
        assert_eq!(counters.rounds_ended, 6 * 300, "{report}");
        assert_eq!((counters.voided, counters.waits_expired), (0, 0));
        assert!(found(&report), "{topology} {report}");
    }
}

#[test]
fn loss_and_jitter_cost_time_and_nothing_else() {
    for topology in TOPOLOGIES {
        let report = run(topology, (6, 300), LOSSY);
        let counters = &report.counters;
        assert!(
            counters.pushes_lost + counters.messages_lost > 100,
            "{report}"
        );
        intact(&report, 6);
        assert!(
            found(&report) && waits_are_bounded(&report),
            "{topology} {report}"
        );
    }
}

#[test]
fn a_death_at_any_message_leaves_five_that_finish() {
    // Messages of a round with 5 ms one way: questions, answers.
    for topology in TOPOLOGIES {
        for phase in ["train", "exchange", "apply"] {
            for delay in [0.0, 0.003, 0.006, 0.009, 0.012] {
                for victim in [0, 2, 5] {
                    let fault = crash(victim, 9, phase, delay);
                    let report = run(topology, (6, 30), &format!("{QUIET}{fault}"));
                    assert_eq!(report.live, 5, "{topology} {fault}: {report}");
                    assert!(waits_are_bounded(&report), "{report}");
                    let last = last(&report);
                    assert_eq!((last.round, last.peers), (30, 5), "{report}");
                }
            }
        }
    }
}

#[test]
fn a_restarted_peer_takes_part_again() {
    for topology in TOPOLOGIES {
        let fault = crash_for(2, 9, "exchange", 0.003, 1.5);
        let report = run(topology, (6, 300), &format!("{LOSSY}{fault}"));
        assert_eq!(report.live, 6, "{report}");
        assert!(found(&report), "{report}");
    }
}

#[test]
fn a_stalled_peer_answers_and_delays_no_other() {
    for topology in TOPOLOGIES {
        let fault = slow(2, 0.5, 1000.0, 60.0);
        let report = run(topology, (6, 60), &format!("{QUIET}{fault}"));
        assert_eq!(report.live, 6, "{report}");
        assert!(waits_are_bounded(&report), "{report}");
        // Only its training stalls; it still answers.
        assert_eq!(report.counters.waits_expired, 0, "{topology}: {report}");
    }
}

#[test]
fn one_whose_links_are_dead_is_waited_for_until_a_deadline() {
    for topology in TOPOLOGIES {
        let silence = cut_off_in(2, 9, 0.003, 3.0);
        let fault = format!("{QUIET}detection_ms = 100000.0\n{silence}");
        let report = run(topology, (6, 120), &fault);
        assert_eq!(report.live, 6, "{report}");
        assert!(waits_are_bounded(&report), "{report}");
        assert!(report.counters.waits_expired > 0, "{topology}: {report}");
    }
}

#[test]
fn nonsense_is_refused_and_the_others_go_on() {
    for topology in TOPOLOGIES {
        for lie in ["garbage", "truncated", "flipped-bit"] {
            let report = run(topology, (6, 30), &format!("{QUIET}{}", nonsense(lie)));
            assert!(report.counters.lies > 0, "{report}");
            assert!(report.live >= 5, "{report}");
        }
    }
}

#[test]
fn pushes_and_bytes_are_those_of_the_formula() {
    for peers in 2..=33u64 {
        let rounds = 3;
        let one = if peers == 2 { 1 } else { 2 };
        for (topology, partners) in [("ring", one), ("complete", peers - 1)] {
            let quiet = QUIET.to_owned();
            let report = run(topology, (peers, rounds), &quiet);
            // Each answer has one byte before the values.
            let pushes = rounds * peers * partners;
            let counters = &report.counters;
            assert_eq!(counters.pushes, pushes, "{topology} {peers}");
            assert_eq!(
                counters.bytes_encoded,
                pushes * (1 + 4 * 32),
                "{topology} {peers}"
            );
        }
    }
}
