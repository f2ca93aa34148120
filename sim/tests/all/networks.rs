//! The effect of networks and unusual machines on a run.

use crate::common::{cut_off, lies, one_state};
use murmurate_sim::Report;

/// Local SGD on six machines; `network` and `more` are TOML.
fn run(task: &str, network: &str, more: &str) -> Report {
    // A run without tensors has no faults, so no peer may fall behind.
    let floor = if task == TIMING { 20_000 } else { 1000 };
    let text = format!(
        "seed = 9\npeers = 6\nrounds = 12\n[task]\n{task}\n[strategy]\npreset = \"local-sgd\"\n\
         [strategy.deadlines]\nfloor_ms = {floor}\ninitial_ms = 20000\nceiling_ms = 60000\n\
         [network]\nlatency_ms = 10.0\n{network}\n{more}"
    );
    crate::common::run(&text, None)
}

const TIMING: &str = "kind = \"timing\"\nparameters = 1_000_000";
const TENSORS: &str = "kind = \"quadratic\"\ndim = 64";

#[test]
fn the_slower_direction_of_a_home_link_counts() {
    let even = run(TIMING, "uplink_mbit = 100.0\ndownlink_mbit = 100.0", "");
    let home = run(TIMING, "uplink_mbit = 20.0\ndownlink_mbit = 100.0", "");
    // 2 * 5/6 * 4 MB a round at 2.5 instead of 12.5 MB/s: 2.13 s more.
    let more = (home.virtual_s - even.virtual_s) / 12.0;
    assert!((more - 2.13).abs() < 0.2, "{more}");
}

#[test]
fn what_leads_out_of_a_site_is_shared() {
    let sites = |gate: &str| {
        format!(
            "uplink_mbit = 1000.0\ndownlink_mbit = 1000.0\n\
             [[network.site]]\nname = \"a\"\nfirst = 0\nlast = 2\n{gate}\n\
             [[network.site]]\nname = \"b\"\nfirst = 3\nlast = 5\n{gate}\n"
        )
    };
    let open = run(TIMING, &sites(""), "");
    let narrow = "wan_uplink_mbit = 100.0\nwan_downlink_mbit = 100.0";
    let shared = run(TIMING, &sites(narrow), "");
    // Two phases of 9 shards of 4/6 MB through 12.5 MB/s: 0.96 s.
    let more = (shared.virtual_s - open.virtual_s) / 12.0;
    assert!((0.8..1.0).contains(&more), "{more}");
}

#[test]
fn tcp_is_slower_than_quic_and_both_than_nothing() {
    let links = "uplink_mbit = 100.0\ndownlink_mbit = 100.0\njitter_ms = 1.0";
    let time = |transport: &str| {
        let network = format!("{links}\ntransport = \"{transport}\"");
        run(TIMING, &network, "").virtual_s
    };
    let (ideal, quic, tcp) = (time("ideal"), time("quic"), time("tcp"));
    assert!(ideal < quic && quic < tcp, "{ideal} {quic} {tcp}");
}

#[test]
fn a_link_that_breaks_down_and_recovers_costs_what_it_was_down() {
    let links = "uplink_mbit = 100.0\ndownlink_mbit = 100.0";
    let steady = run(TIMING, links, "");
    let trace = "[[network.trace]]\npeer = 2\nat_s = [2.0, 6.0]\nuplink_mbit = [1.0, 100.0]\n";
    let broken = run(TIMING, links, trace);
    let more = broken.virtual_s - steady.virtual_s;
    assert!((2.0..4.5).contains(&more), "{more}");
}

#[test]
fn machines_that_drift_wait_for_the_slowest() {
    let steady = run(TENSORS, "", "[compute]\nstep_ms = 20.0\n");
    let drift = "[compute]\nstep_ms = 20.0\ndrift = 0.3\ndrift_s = 1.0\n";
    let drifting = run(TENSORS, "", drift);
    assert!(drifting.virtual_s > 1.1 * steady.virtual_s);
    assert_eq!(drifting.live, 6);
}

#[test]
fn a_partition_heals_and_all_hold_the_same_bits() {
    let report = run(TENSORS, "", &cut_off(&[4, 5], 1.0, 4.0));
    one_state(&report, 6, "after the partition");
}

#[test]
fn garbage_of_one_machine_never_reaches_the_model() {
    for lie in ["garbage", "truncated", "flipped-bit"] {
        let report = run(TENSORS, "", &lies(1, 1.0, 1.0, lie));
        assert!(report.counters.lies > 0, "{lie}: {report}");
        let honest = report.samples.last().and_then(|sample| sample.loss);
        assert!(honest.is_some_and(f64::is_finite), "{lie}: {report}");
        assert!(report.live >= 5, "{lie}: {report}");
    }
}

#[test]
fn a_clock_that_is_ahead_changes_nothing_but_its_own_time() {
    let skew = "[[fault]]\nkind = \"clock-skew\"\npeer = 2\nahead_s = 500.0\n";
    let (plain, skewed) = (run(TENSORS, "", ""), run(TENSORS, "", skew));
    one_state(&skewed, 6, "with a wrong clock");
    assert!((skewed.virtual_s - plain.virtual_s).abs() < 0.5, "{skewed}");
}

#[test]
fn a_churn_trace_brings_its_machine_back_each_time() {
    let churn = "save_every_s = 0.3\n";
    let fault = "[[fault]]\nkind = \"churn\"\npeer = 1\ndown_s = [0.5, 2.0]\nup_s = [1.0, 2.5]\n";
    let text = format!(
        "seed = 9\npeers = 6\nrounds = 20\n{churn}[task]\n{TENSORS}\n\
         [strategy]\npreset = \"local-sgd\"\n{fault}"
    );
    let report = crate::common::run(&text, None);
    let what: Vec<_> = report.counters.faults.iter().map(|f| f.what).collect();
    assert_eq!(what, ["crash", "restart", "crash", "restart"], "{report}");
    one_state(&report, 6, "after the churn");
}
