//! Processes that stand still for a while, as after SIGSTOP or in a machine that sleeps.

use crate::common::{run, seeds};

fn pause(peer: usize, at_s: f64, lasts_s: f64) -> String {
    format!("[[fault]]\nkind = \"pause\"\npeer = {peer}\nat_s = {at_s}\nlasts_s = {lasts_s}\n")
}

/// Three of four machines are stopped for 10 s, and one of them again a little later. Rounds of 50 ms.
fn text(lasts_s: f64) -> String {
    let stopped = [1, 2, 3].map(|peer| pause(peer, 2.0, 10.0)).concat();
    format!(
        "seed = 0\npeers = 4\nrounds = 400\n[task]\nkind = \"quadratic\"\ndim = 64\nnoise = 0.1\nheterogeneity = 0.0\n\
         [strategy]\npreset = \"diloco\"\n[compute]\nstep_ms = 5.0\n\
         [network]\nlatency_ms = 1.0\njitter_ms = 1.0\nuplink_mbit = 1000.0\ndownlink_mbit = 1000.0\n\
         detection_ms = 8000.0\n{stopped}{}",
        pause(3, 15.5, lasts_s)
    )
}

#[test]
fn a_swarm_whose_processes_are_stopped_goes_on_without_standing_still() {
    for lasts_s in [4.0, 7.9, 9.0, 12.0] {
        for seed in seeds(20) {
            let report = run(&text(lasts_s), Some(seed));
            assert_eq!(report.live, 4, "{lasts_s} s, seed {seed}: {report}");
            let last = report.samples.last().expect("samples");
            assert_eq!(last.consensus_distance, 0.0, "seed {seed}: {report}");
            // Training takes 20 s, the pauses 22 s at most. The ceiling of a wait is 60 s.
            assert!(
                report.virtual_s < 75.0,
                "{lasts_s} s, seed {seed}: {report}"
            );
        }
    }
}
