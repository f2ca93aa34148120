//! Data that the machines divide: in every epoch that is done, the parameters hold every sample, and few
//! of them twice, while machines die, come back, are late and join.

use crate::common::{churn, joins_in};
use murmurate_sim::{DataReport, Report};

/// Machines that take about 12 blocks each in a round, of an epoch of this number of blocks.
fn text(peers: usize, grouping: &str, rounds: u64, blocks: usize, more: &str) -> String {
    format!(
        "seed = 3\npeers = {peers}\nrounds = {rounds}\n[task]\nkind = \"timing\"\nparameters = 100_000\n\
         [data]\nblocks = {blocks}\nsamples = 4\n\
         [strategy]\npreset = \"diloco\"\n[strategy.synchronization]\ninner_steps = 50\n\
         [strategy.agreement]\n{grouping}\n\
         [strategy.deadlines]\nfloor_ms = 200\ninitial_ms = 1000\nceiling_ms = 5000\n\
         [network]\nlatency_ms = 5.0\nuplink_mbit = 1000.0\ndownlink_mbit = 1000.0\n\
         detection_ms = 300.0\n[compute]\nstep_ms = 10.0\n{more}"
    )
}

const FLAT: &str = "grouping = \"flat\"";
const GRID: &str = "grouping = \"grid\"\nrow = 9";

fn run(text: &str) -> Report {
    crate::common::run(text, None)
}

/// What holds of all data that the machines divide.
fn data(report: &Report, epochs: u64) -> DataReport {
    let data = report.counters.data.expect("the scenario has data");
    println!("{data:?} {} faults", report.counters.faults.len());
    assert!(data.epochs >= epochs, "{data:?}\n{report}");
    assert_eq!(data.unseen, 0, "{data:?}\n{report}");
    data
}

fn share(data: &DataReport) -> f64 {
    data.twice as f64 / data.samples as f64
}

#[test]
fn without_a_failure_every_sample_is_trained_once() {
    for (peers, grouping) in [(8, FLAT), (9, "grouping = \"grid\"\nrow = 3"), (81, GRID)] {
        let report = run(&text(peers, grouping, 20, peers * 50, ""));
        let data = data(&report, 4);
        assert_eq!(data.twice, 0, "{peers}: {data:?}");
    }
}

#[test]
fn machines_of_different_speeds_take_what_they_can() {
    for (peers, grouping) in [(8, FLAT), (81, GRID)] {
        let more = "speeds = [1.0, 0.5, 0.8]\n";
        let text = text(peers, grouping, 20, peers * 50, more);
        let text = text.replace("inner_steps = 50", "round_time = 0.5");
        let data = data(&run(&text), 2);
        assert_eq!(data.twice, 0, "{peers}: {data:?}");
    }
}

#[test]
fn deaths_leave_no_sample_out_and_train_few_twice() {
    // About one death in a round and a hundred machines.
    for (peers, grouping, mean_s) in [(8, FLAT, 6.0), (81, GRID, 0.7)] {
        let churn = churn(mean_s, 40.0, 3.0, peers / 8);
        let report = run(&text(peers, grouping, 50, peers * 100, &churn));
        assert!(report.counters.faults.len() >= 4, "{report}");
        let data = data(&report, 3);
        assert!(share(&data) < 0.01, "{peers}: {data:?}");
    }
}

#[test]
fn late_machines_leave_no_sample_out_and_train_few_twice() {
    let stall =
        |&(peer, at_s, lasts_s): &(usize, f64, f64)| crate::common::slow(peer, at_s, 20.0, lasts_s);
    let flat = [(1, 3.0, 3.0), (5, 9.0, 3.0), (3, 15.0, 3.0), (7, 21.0, 3.0)];
    let grid = [(10, 3.0, 3.0), (40, 12.2, 0.6), (23, 16.0, 3.0)];
    for (peers, grouping, late) in [(8, FLAT, &flat[..]), (81, GRID, &grid[..])] {
        let stalls: String = late.iter().map(stall).collect();
        let report = run(&text(peers, grouping, 50, peers * 100, &stalls));
        assert!(report.counters.catch_ups > 0, "{report}");
        let data = data(&report, 3);
        assert!(share(&data) < 0.01, "{peers}: {data:?}");
    }
}

#[test]
fn newcomers_take_blocks_that_were_dealt_to_no_other() {
    for (peers, grouping) in [(9, FLAT), (82, GRID)] {
        let report = run(&text(
            peers,
            grouping,
            40,
            peers * 100,
            &joins_in(peers - 1, 4),
        ));
        let data = data(&report, 2);
        assert!(share(&data) < 0.01, "{peers}: {data:?}");
    }
}

#[test]
fn where_rounds_overlap_the_same_holds() {
    let late = "[strategy.overlap]\nlate_steps = 10\n[strategy.agreement]";
    let late = |more: &str| text(8, FLAT, 40, 800, more).replace("[strategy.agreement]", late);
    assert_eq!(data(&run(&late("")), 3).twice, 0);
    let churn = churn(6.0, 40.0, 3.0, 1);
    // How many machines die differs by seed, and each costs about three of its rounds.
    let seeds = 1..17;
    let shares = seeds.clone().map(|seed| {
        let text = late(&churn).replace("seed = 3\n", &format!("seed = {seed}\n"));
        share(&data(&run(&text), 3))
    });
    let mean = shares.sum::<f64>() / seeds.count() as f64;
    assert!(mean < 0.02, "{mean}");
}
