//! Balanced rounds on unequal machines: how busy they are, that they learn as well from the same
//! samples, and that faults, liars and restarts leave them as they are.

use crate::common::{crash, crash_and_return, loss, run, stall};
use murmurate_sim::Report;

/// Speeds from a half to one, in no order.
const SPEEDS: &str = "speeds = [0.8, 0.5, 1.0, 0.6, 0.9, 0.7, 0.55, 0.95, 0.65, 0.85, 0.75, 0.52, 0.98, 0.62, 0.88, 0.72]";

const ALL_REDUCE: &str = "exchange = \"all-reduce\"";

/// A scenario of local SGD with these inner steps at this pace.
fn text(
    (peers, rounds): (usize, u64),
    (task, pace): (&str, &str),
    exchange: &str,
    more: &str,
) -> String {
    format!(
        "seed = 3\npeers = {peers}\nrounds = {rounds}\nevaluate_every = 1000\n[task]\n{task}\n\
         [strategy]\npreset = \"local-sgd\"\n\
         [strategy.architecture]\n{exchange}\n\
         [strategy.synchronization]\ninner_steps = 32\npace = \"{pace}\"\n\
         [network]\nlatency_ms = 5.0\nuplink_mbit = 1000.0\ndownlink_mbit = 1000.0\n\
         bootstrap = 32\n\
         [compute]\nstep_ms = 50.0\n{more}\n"
    )
}

const TIMING: &str = "kind = \"timing\"\nparameters = 100_000";

/// The share of their time that peers train, without the time that a swarm takes to start.
fn busy(peers: usize, pace: &str, exchange: &str, compute: &str) -> f64 {
    let of = |rounds| {
        let text = text((peers, rounds), (TIMING, pace), exchange, compute);
        let report = run(&text, None);
        assert_eq!(report.live, peers, "{report}");
        assert_eq!(report.counters.rounds_ended, rounds * peers as u64);
        assert_eq!(report.counters.voided, 0, "{report}");
        (report.counters.trained_s, report.virtual_s)
    };
    let (short, long) = (of(10), of(40));
    (long.0 - short.0) / (peers as f64 * (long.1 - short.1))
}

#[test]
fn unequal_machines_are_busy_in_balanced_rounds() {
    for peers in [8, 16] {
        for exchange in [
            ALL_REDUCE,
            "exchange = \"gathered\"",
            "exchange = \"parameter-server\"\nowners = 2",
        ] {
            let steady = busy(peers, "steady", exchange, SPEEDS);
            let balanced = busy(peers, "balanced", exchange, SPEEDS);
            println!("{peers} peers, {exchange}: steady {steady:.3}, balanced {balanced:.3}");
            // The mean of 0.5 / speed over the machines is 0.71 for 8 and for 16 of them.
            assert!(steady < 0.75, "{exchange}: {steady}");
            assert!(balanced >= 0.9, "{exchange}: {balanced}");
        }
    }
}

#[test]
fn equal_machines_whose_times_vary_are_not_slowed_down() {
    let drift = "drift = 0.05\ndrift_s = 5.0";
    let steady = busy(16, "steady", ALL_REDUCE, drift);
    let balanced = busy(16, "balanced", ALL_REDUCE, drift);
    println!("equal machines: steady {steady:.3}, balanced {balanced:.3}");
    assert!(balanced > steady - 0.01, "{balanced} after {steady}");
}

const LOGISTIC: &str = "kind = \"logistic\"\ndim = 32\nheterogeneity = 1.0\nbatch = 8";

#[test]
fn the_same_samples_teach_as_much_in_balanced_rounds() {
    let mut losses = [0.0, 0.0];
    // Both draw other samples in the same rounds: one pair of losses differs by up to 3 %.
    for seed in 0..6 {
        let of = |rounds, pace| {
            let text = text((8, rounds), (LOGISTIC, pace), ALL_REDUCE, SPEEDS);
            run(&text, Some(seed))
        };
        // The mean speed of the first eight machines is 0.75, and the first round is not balanced
        // yet.
        let (steady, balanced) = (of(40, "steady"), of(53, "balanced"));
        let steps = |report: &Report| report.counters.inner_steps as f64;
        let ratio = steps(&balanced) / steps(&steady);
        assert!((ratio - 1.0).abs() < 0.02, "{ratio} of the samples");
        let faster = balanced.virtual_s / steady.virtual_s;
        assert!(faster < 0.8, "{faster} of the time");
        println!("seed {seed}: {ratio:.3} of the samples in {faster:.3} of the time");
        losses[0] += loss(&steady);
        losses[1] += loss(&balanced);
    }
    let ratio = losses[1] / losses[0];
    println!("{ratio:.4} of the loss");
    assert!((ratio - 1.0).abs() < 0.02, "{ratio}");
}

#[test]
fn a_run_repeats_and_survives_deaths_restarts_and_stalls() {
    let faults = [
        String::new(),
        crash(3, 6, "train", 0.2),
        // The fastest machine, and the slowest.
        crash(2, 6, "exchange", 0.01),
        crash_and_return(2, 6, "train", 0.2),
        crash_and_return(1, 6, "exchange", 0.01),
        stall(4, 4.0, 8.0),
    ];
    for fault in faults {
        let text = text(
            (8, 16),
            (LOGISTIC, "balanced"),
            ALL_REDUCE,
            &format!("{SPEEDS}\n{fault}"),
        );
        let (report, again) = (run(&text, None), run(&text, None));
        assert_eq!(report.trace, again.trace, "{fault}");
        let returns = fault.is_empty() || fault.contains("restart") || fault.contains("straggler");
        assert_eq!(
            report.live,
            if returns { 8 } else { 7 },
            "{fault}: {report}"
        );
        assert_eq!(report.consensus_distance, 0.0, "{fault}: {report}");
        // Half of that of a model that knows nothing.
        assert!(loss(&report) < 2f64.ln() / 2.0, "{fault}: {report}");
    }
}
