//! Exchanges that take longer than the plan's first deadline: every family of exchanges gets past it.

use crate::common::run;
use murmurate_sim::Report;

const PEERS: u64 = 4;

const ROUNDS: u64 = 36;

/// One exchange of 16 kB over these links takes as long as one of 10 MB over 8 Mbit/s: 10 s and more. The
/// default deadlines begin with 5 s.
fn over_slow_links(preset: &str) -> Report {
    let text = format!(
        "seed = 3\npeers = {PEERS}\nrounds = {ROUNDS}\nevaluate_every = 4\n\
         [task]\nkind = \"quadratic\"\ndim = 4096\nnoise = 0.0\nheterogeneity = 0.0\n\
         [strategy]\npreset = \"{preset}\"\n[compute]\nstep_ms = 100.0\n\
         [network]\nlatency_ms = 30.0\nuplink_mbit = 0.0128\ndownlink_mbit = 0.0128\n"
    );
    run(&text, None)
}

#[test]
fn most_rounds_have_a_result_although_the_first_deadline_is_too_short() {
    for preset in [
        "diloco",
        "local-sgd",
        "fedavg",
        "guarded",
        "ssp",
        "fedbuff",
        "easgd",
        "moshpit",
    ] {
        let report = over_slow_links(preset);
        assert!(
            3 * report.counters.voided < PEERS * ROUNDS,
            "{preset}: {report}"
        );
    }
}

#[test]
fn most_partners_are_in_time_although_the_first_deadline_is_too_short() {
    for preset in ["d-psgd", "gossipgrad", "choco", "d2", "guarded-gossip"] {
        let report = over_slow_links(preset);
        let expired = report.counters.waits_expired;
        assert!(3 * expired < 2 * PEERS * ROUNDS, "{preset}: {report}");
    }
}
