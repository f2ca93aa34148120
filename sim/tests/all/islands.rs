//! Hierarchical local SGD: islands mix within in most rounds, and across islands in some. The
//! simulator checks the invariants of gossip after every event. These tests check the cost of slow
//! links between islands and the result under faults.

use crate::common::{crash, last, slow, waits_are_bounded};
use murmurate_sim::Report;

const PEERS: usize = 6;
const ROUNDS: u64 = 24;

/// Two islands of three machines each, at two sites that share 100 Mbit/s between them.
fn run(task: &str, every: u64, more: &str, seed: u64) -> Report {
    let text = format!(
        "seed = {seed}\npeers = {PEERS}\nrounds = {ROUNDS}\nevaluate_every = 4\n[task]\n{task}\n\
         [strategy]\npreset = \"d-psgd\"\n[strategy.synchronization]\ninner_steps = 4\n\
         [strategy.architecture]\ntopology = \"islands\"\ngroup = 3\nevery = {every}\n[strategy.inner]\nlr = 0.1\n\
         [strategy.deadlines]\nfloor_ms = 2000\ninitial_ms = 20000\nceiling_ms = 60000\n\
         [network]\nlatency_ms = 10.0\nuplink_mbit = 1000.0\ndownlink_mbit = 1000.0\n{more}"
    );
    crate::common::run(&text, None)
}

const SITES: &str = "[[network.site]]\nname = \"a\"\nfirst = 0\nlast = 2\n\
                     wan_uplink_mbit = 100.0\nwan_downlink_mbit = 100.0\n\
                     [[network.site]]\nname = \"b\"\nfirst = 3\nlast = 5\n\
                     wan_uplink_mbit = 100.0\nwan_downlink_mbit = 100.0\n";

const TENSORS: &str = "kind = \"quadratic\"\ndim = 64\nnoise = 0.0\nheterogeneity = 0.3";

#[test]
fn the_fewer_means_across_the_less_slow_links_between_islands_cost() {
    let task = "kind = \"timing\"\nparameters = 1_000_000";
    // Islands are ranges of ranks by peer id. Ids are random, and with this seed the ids of each
    // site are adjacent.
    let [often, seldom] = [2, 8].map(|every| run(task, every, SITES, 7));
    // Three machines of a site push 4 MB each through 12.5 MB/s, which takes 0.96 s, in 12 rounds
    // or in
    // 3. In the other rounds two pushes share 125 MB/s.
    let more = (often.virtual_s - seldom.virtual_s) / 9.0;
    assert!((0.8..1.0).contains(&more), "{more}\n{often}\n{seldom}");
    // Two pushes per round within an island, one across.
    let pushes = |across: u64| PEERS as u64 * (across + 2 * (ROUNDS - across));
    assert_eq!(often.counters.pushes, pushes(12));
    assert_eq!(seldom.counters.pushes, pushes(3));
}

#[test]
fn islands_learn_as_one_however_seldom_they_meet() {
    for every in [2, 4, 8] {
        let report = run(TENSORS, every, SITES, 1);
        let last = last(&report);
        assert_eq!((report.live, last.round), (PEERS, ROUNDS));
        assert!(last.loss < Some(0.2), "{every}: {report}");
        assert_eq!(report.counters.mass_uncertain, 0.0, "{report}");
    }
}

#[test]
fn after_a_death_or_a_stall_the_others_continue() {
    for victim in 0..PEERS {
        for (phase, delay) in [("train", 0.01), ("exchange", 0.0), ("exchange", 0.015)] {
            // A round within islands, and one across.
            for round in [9, 11] {
                let fault = SITES.to_owned() + &crash(victim, round, phase, delay);
                let report = run(TENSORS, 4, &fault, 2);
                assert_eq!(report.live, PEERS - 1, "{fault}: {report}");
                // Its part of the data is lost with it.
                assert!(last(&report).loss < Some(1.0), "{fault}: {report}");
                assert!(waits_are_bounded(&report), "{fault}: {report}");
            }
        }
        let stall = SITES.to_owned() + &slow(victim, 0.5, 1000.0, 5.0);
        let report = run(TENSORS, 4, &stall, 3);
        assert_eq!(report.live, PEERS, "{stall}: {report}");
    }
}
