//! Catch-ups where members may lie: peers believe what has a proof, or what more others say than may lie.
//! None lies here; the question is whether those that come late or come back still get what they need.

use crate::common::{crash_for, joins_in, one_state};
use murmurate_sim::Report;

const PEERS: usize = 5;

fn run(liars: u8, seed: u64, more: &str) -> Report {
    let text = format!(
        "seed = {seed}\npeers = {PEERS}\nrounds = 60\nsave_every_s = 0.3\n\
         [task]\nkind = \"quadratic\"\ndim = 32\n\
         [strategy]\npreset = \"diloco\"\n[strategy.synchronization]\ninner_steps = 10\n\
         [strategy.inner]\noptimizer = \"sgd\"\nlr = 0.1\n\
         [strategy.agreement]\nliars = {liars}\n\
         [strategy.deadlines]\nfloor_ms = 500\ninitial_ms = 4000\n\
         [network]\nlatency_ms = 10.0\n[compute]\nstep_ms = 5.0\n[limits]\nvirtual_s = 600.0\n{more}"
    );
    crate::common::run(&text, None)
}

/// All that live hold the same bits, and this many catch-ups led there.
fn together(report: &Report) {
    one_state(report, PEERS, "at the end");
}

#[test]
fn a_newcomer_gets_a_state_for_which_enough_others_vouch() {
    let late = joins_in(4, 8);
    for seed in 0..6 {
        let (trusting, careful) = (run(0, seed, &late), run(1, seed, &late));
        together(&careful);
        assert!(careful.counters.catch_ups > 0, "{careful}");
        println!(
            "seed {seed}: {:.1} s of virtual time without liars, {:.1} s with one",
            trusting.virtual_s, careful.virtual_s
        );
    }
}

#[test]
fn peers_that_crash_come_back_with_what_enough_others_say() {
    for seed in 0..6 {
        let crash = |peer, round| crash_for(peer, round, "exchange", 0.0, 1.5);
        let report = run(1, seed, &(crash(2, 9) + &crash(0, 30)));
        together(&report);
    }
}

/// All crash in the middle of a round and come back at other times, each with its last checkpoint.
#[test]
fn a_swarm_that_restarts_as_a_whole_continues() {
    for (liars, seed) in (0..12).flat_map(|seed| [(0, seed), (1, seed)]) {
        let phase = ["train", "exchange", "apply"][seed as usize % 3];
        let crash = |peer: usize| {
            let again = 2.0 + (peer as f64 * (1 + seed % 4) as f64) / 5.0;
            // To a tenth of a second.
            crash_for(peer, 20, phase, 0.0, (10.0 * again).round() / 10.0)
        };
        let all: String = (0..PEERS).map(crash).collect();
        let report = run(liars, seed, &all);
        println!(
            "{liars} liars, seed {seed}, {phase}: {:.1} s",
            report.virtual_s
        );
        together(&report);
    }
}
