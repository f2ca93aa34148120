//! Every preset that cooperates finds the common optimum of the quadratic task.

use crate::common::{last, loss};
use murmurate_sim::Report;

/// Four peers with different optima and without noise, so the remaining loss is the method's bias.
fn run(preset: &str, rounds: u64, extra: &str) -> Report {
    let text = format!(
        "seed = 3\npeers = 4\nrounds = {rounds}\n\
         [task]\nkind = \"quadratic\"\ndim = 32\nnoise = 0.0\nheterogeneity = 0.3\n\
         [strategy]\npreset = \"{preset}\"\n{extra}"
    );
    crate::common::run(&text, None)
}

#[test]
fn bsp_reaches_the_optimum() {
    let report = run("bsp", 300, "");
    assert!(loss(&report) < 1e-6, "{report}");
}

#[test]
fn local_sgd_comes_near_the_optimum() {
    // 16 local inner steps drift towards the peers' own optima, which causes a small bias.
    let report = run("local-sgd", 60, "");
    assert!(loss(&report) < 0.05, "{report}");
}

#[test]
fn diloco_comes_near_the_optimum() {
    let inner = "[strategy.synchronization]\ninner_steps = 10\n\
                 [strategy.inner]\noptimizer = \"sgd\"\nlr = 0.05\n";
    let report = run("diloco", 120, inner);
    assert!(loss(&report) < 0.05, "{report}");
}

#[test]
fn d_psgd_comes_near_the_optimum_and_its_peers_near_each_other() {
    let report = run("d-psgd", 400, "");
    assert!(loss(&report) < 0.1, "{report}");
    let last = last(&report);
    assert!(last.consensus_distance < 0.5, "{report}");
}

#[test]
fn alone_no_peer_finds_the_common_optimum() {
    let (alone, together) = (run("none", 400, ""), run("d-psgd", 400, ""));
    assert!(loss(&alone) > 2.0 * loss(&together), "{alone}\n{together}");
}
