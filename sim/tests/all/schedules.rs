//! All-reduce by schedules, with tensors and time. The invariants hold after every event (otherwise
//! the run fails), survivors hold the same bits at the end, and training makes progress.

use crate::common::{crash, cut_off_in, last, learned, nonsense_of, run, waits_are_bounded};
use murmurate_sim::Report;

const SCHEDULES: [&str; 9] = [
    "ring",
    "recursive-doubling",
    "halving-doubling",
    "binary-tree",
    "double-tree",
    "torus",
    "hierarchical",
    "hierarchical\"\nislands_by = \"sites",
    "synthesized",
];

/// Links of six machines of which the third has a slow line.
const LINKS: &str = "link_mbit = [[0, 100, 5, 100, 100, 100], [100, 0, 5, 100, 100, 100], \
    [5, 5, 0, 5, 5, 5], [100, 100, 5, 0, 100, 100], [100, 100, 5, 100, 0, 100], \
    [100, 100, 5, 100, 100, 0]]\n";

/// Runs six machines for twelve rounds; `more` is the rest of the scenario.
fn twelve(schedule: &str, seed: u64, network: &str, more: &str) -> Report {
    lasting(12, schedule, seed, network, more)
}

fn lasting(rounds: u64, schedule: &str, seed: u64, network: &str, more: &str) -> Report {
    let links = match schedule {
        "synthesized" => LINKS,
        _ => "",
    };
    let text = format!(
        "seed = {seed}\npeers = 6\nrounds = {rounds}\n\
         [task]\nkind = \"quadratic\"\ndim = 96\nheterogeneity = 1.0\n\
         [strategy]\npreset = \"local-sgd\"\n\
         [strategy.synchronization]\ninner_steps = 5\n\
         [strategy.inner]\noptimizer = \"sgd\"\nlr = 0.1\n\
         [strategy.architecture]\nschedule = \"{schedule}\"\n{links}\
         [strategy.overlap]\nfragments = 3\n\
         [strategy.deadlines]\nfloor_ms = 300\ninitial_ms = 1000\nceiling_ms = 5000\n\
         [limits]\nvirtual_s = 600.0\n\
         [compute]\nstep_ms = 10.0\nspread = 0.2\n\
         [network]\nlatency_ms = 20.0\n{network}\n{more}"
    );
    run(&text, None)
}

/// Checks that `live` machines are up at the end and have learned. A run succeeds only if all hold
/// the same bits.
fn together(report: &Report, live: usize, what: &str) {
    assert_eq!(report.live, live, "{what}: {report}");
    learned(report, what);
    assert!(waits_are_bounded(report), "{what}: {report}");
}

#[test]
fn every_schedule_agrees_and_learns() {
    for schedule in SCHEDULES {
        let report = twelve(schedule, 1, "", "");
        together(&report, 6, schedule);
        assert_eq!(report.counters.rounds_ended, 6 * 12, "{schedule}");
        let apart = report.samples.iter().find(|s| s.consensus_distance != 0.0);
        assert!(apart.is_none(), "{schedule}: {report}");
        let again = twelve(schedule, 1, "", "");
        assert_eq!(report.trace, again.trace, "{schedule}");
    }
}

#[test]
fn loss_and_jitter_do_no_harm() {
    let network = "jitter_ms = 15.0\nloss = 0.02";
    for schedule in SCHEDULES {
        for seed in 0..6 {
            let what = format!("{schedule} {seed}");
            let report = twelve(schedule, seed, network, "");
            assert!(report.counters.pushes_lost > 0, "{what}: {report}");
            // Lost messages cost rounds, as in the butterfly, but never the agreement.
            assert_eq!(report.live, 6, "{what}: {report}");
            assert!(waits_are_bounded(&report), "{what}: {report}");
        }
    }
}

#[test]
fn a_death_in_any_phase_leaves_five_that_hold_the_same_bits() {
    let network = "jitter_ms = 5.0\ndetection_ms = 100.0";
    for schedule in SCHEDULES {
        for peer in [0, 2, 5] {
            // From before the first push to after the last vote.
            for delay in [0.0, 0.02, 0.045, 0.07, 0.095, 0.12, 0.17] {
                let fault = crash(peer, 4, "exchange", delay);
                let what = format!("{schedule}, {fault}");
                let report = twelve(schedule, 2, network, &fault);
                together(&report, 5, &what);
                let last = last(&report);
                assert_eq!((last.peers, last.consensus_distance), (5, 0.0), "{what}");
                assert!(report.counters.rounds_ended >= 5 * 12, "{what}: {report}");
            }
        }
    }
}

#[test]
fn one_that_falls_silent_unnoticed_is_left_out_and_comes_back() {
    // To the others its links appear to be up.
    let network = "detection_ms = 100000.0";
    for schedule in SCHEDULES {
        for peer in 0..6 {
            let what = format!("{schedule}, {peer}");
            let report = twelve(schedule, 5, network, &cut_off_in(peer, 4, 0.03, 4.0));
            together(&report, 6, &what);
            // The others wait for it for one or two deadlines.
            assert_eq!(report.counters.voided, 0, "{what}: {report}");
            assert!(report.counters.rounds_ended >= 5 * 12, "{what}: {report}");
        }
    }
}

#[test]
fn one_whose_slices_are_nonsense_does_not_keep_the_others_apart() {
    for schedule in SCHEDULES {
        for lie in ["garbage", "truncated", "flipped-bit"] {
            for peer in [0, 3] {
                let fault = nonsense_of(peer, 4, lie);
                let what = format!("{schedule}, {peer}, {lie}");
                // A peer that disconnects the liar cannot be in one group with it. It takes some rounds until the
                // others continue with one side. Along trees two peers may have disconnected it, and the others
                // may go on with the liar, which is honest again, and without these two.
                let report = lasting(24, schedule, 7, "", &fault);
                let together = if schedule == "synthesized" { 4 } else { 5 };
                let last = last(&report);
                assert_eq!(last.consensus_distance, 0.0, "{what}: {report}");
                assert!(
                    report.counters.lies > 0 && last.peers >= together,
                    "{what}: {report}"
                );
            }
        }
    }
}

/// Two of six peers have met all others a second earlier. They must not count rounds without
/// agreement, or the others would fall behind them repeatedly.
#[test]
fn those_who_met_first_do_not_run_ahead_of_the_others() {
    for seed in [3, 8, 17, 25] {
        let report = twelve("butterfly", seed, "", "");
        together(&report, 6, &format!("seed {seed}"));
        let counters = &report.counters;
        assert_eq!(counters.voided, 0, "seed {seed}: {report}");
        assert!(counters.rounds_ended >= 70, "seed {seed}: {report}");
    }
}

/// Seconds of a round among six machines, one of them behind a line of 20 Mbit/s.
fn round_s(architecture: &str) -> f64 {
    let of = |rounds: u64| {
        let text = format!(
            "seed = 9\npeers = 6\nrounds = {rounds}\nevaluate_every = 8\n\
             [task]\nkind = \"timing\"\nparameters = 1_000_000\n\
             [strategy]\npreset = \"local-sgd\"\n\
             [strategy.synchronization]\ninner_steps = 1\n\
             [strategy.architecture]\n{architecture}\n\
             [strategy.deadlines]\nfloor_ms = 5000\ninitial_ms = 20000\nceiling_ms = 60000\n\
             [compute]\nstep_ms = 10.0\n\
             [network]\nlatency_ms = 2.0\nuplink_mbit = 1000.0\ndownlink_mbit = 1000.0\n\
             [[network.site]]\nname = \"fast\"\nfirst = 0\nlast = 4\n\
             [[network.site]]\nname = \"slow\"\nfirst = 5\nlast = 5\n\
             wan_uplink_mbit = 20.0\nwan_downlink_mbit = 20.0\n"
        );
        let report = run(&text, None);
        assert_eq!(report.counters.rounds_ended, 6 * rounds, "{report}");
        report.virtual_s
    };
    (of(24) - of(8)) / 16.0
}

/// Ranks go by the ids of peers, which a test does not choose: one of the six tables has the slow
/// machine in its place.
#[test]
fn trees_for_the_links_there_are_make_rounds_shorter() {
    let butterfly = round_s("schedule = \"butterfly\"");
    let found = (0..6).map(|slow: usize| {
        let rate = |i, j| if i == slow || j == slow { 20 } else { 1000 };
        let rows: Vec<Vec<u32>> = (0..6)
            .map(|i| (0..6).map(|j| rate(i, j)).collect())
            .collect();
        round_s(&format!("schedule = \"synthesized\"\nlink_mbit = {rows:?}"))
    });
    let found: Vec<f64> = found.collect();
    let best = found.iter().copied().fold(f64::INFINITY, f64::min);
    println!("{butterfly:.2} s a round by the butterfly, {found:.2?} by trees");
    // 2 (n - 1) / n messages over the slow line, against one.
    assert!(best < 0.75 * butterfly, "{butterfly}: {found:?}");
}

/// Megabytes that leave sites, and seconds, of a round of an all-reduce among eight machines at two sites.
/// The order of peer ids is independent of that of machines, so ranks are spread over both sites.
fn between_sites(architecture: &str, labels: &str) -> (f64, f64) {
    let site = |name: &str, first: usize| {
        format!(
            "[[network.site]]\nname = \"{name}\"\nfirst = {first}\nlast = {}\nlatency_ms = 0.5\n\
             wan_uplink_mbit = 200.0\nwan_downlink_mbit = 200.0\n",
            first + 3
        )
    };
    let sites = site("east", 0) + &site("west", 4);
    let [first, last] = [6, 10].map(|rounds: u64| {
        let text = format!(
            "seed = 3\npeers = 8\nrounds = {rounds}\nevaluate_every = 1000\n[task]\n\
             kind = \"timing\"\nparameters = 1_000_000\n[strategy]\npreset = \"local-sgd\"\n\
             [strategy.compression]\ncodec = \"f32\"\n[strategy.architecture]\n{architecture}\n\
             [strategy.deadlines]\nfloor_ms = 20000\ninitial_ms = 20000\nceiling_ms = 60000\n\
             [network]\nlatency_ms = 20.0\nuplink_mbit = 1000.0\ndownlink_mbit = 1000.0\n\
             bootstrap = 8\nlabels = \"{labels}\"\n[compute]\nstep_ms = 1.0\n{sites}"
        );
        run(&text, None)
    });
    let bytes = last.counters.bytes_wan - first.counters.bytes_wan;
    let seconds = last.virtual_s - first.virtual_s;
    (bytes as f64 / 4e6, seconds / 4.0)
}

#[test]
fn islands_that_follow_sites_send_each_sum_once_between_them() {
    let ranks = "schedule = \"hierarchical\"\ngroup = 4";
    let sites = &format!("{ranks}\nislands_by = \"sites\"");
    let by_ranks = between_sites(ranks, "configured");
    let unknown = between_sites(sites, "none");
    for labels in ["configured", "measured"] {
        let (megabytes, seconds) = between_sites(sites, labels);
        println!(
            "{labels}: {megabytes:.2} MB and {seconds:.2} s a round by sites, {:.2} and {:.2} by ranks",
            by_ranks.0, by_ranks.1
        );
        // 2 (S - 1) m for two sites and 4 MB.
        assert!((megabytes / 8.0 - 1.0).abs() < 0.02, "{megabytes}");
        assert!(by_ranks.0 > 1.5 * megabytes, "{by_ranks:?}");
        assert!(
            by_ranks.1 > 1.3 * seconds,
            "{by_ranks:?}, {seconds} s by sites"
        );
    }
    // Where no site is known, islands are runs of ranks.
    assert!(
        (unknown.0 / by_ranks.0 - 1.0).abs() < 0.01,
        "{unknown:?} {by_ranks:?}"
    );
}
