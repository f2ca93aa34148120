//! A swarm that is split goes on in both halves, and is one again after the split: its state is the
//! mean of both halves' by weight, which an invariant checks at every merge.
//!
//! `MURMURATE_SEED` sets the first seed and `MURMURATE_SEEDS` the number of seeds.

use crate::common::{crash_for_at, cut_off, one_state, seeds};
use murmurate_sim::Report;

/// A split and what else happens, by seed: 4 to 9 machines, any agreed exchange, some loss.
fn text(seed: u64, faults: &str) -> String {
    let peers = 4 + seed % 6;
    let exchange = match seed / 6 % 4 {
        0 | 3 => "exchange = \"all-reduce\"",
        1 => "exchange = \"gathered\"",
        _ => "exchange = \"parameter-server\"\nowners = 2",
    };
    let codec = ["f32", "int8"][(seed / 7 % 2) as usize];
    let fragments = 1 + 2 * (seed % 2);
    let cut: Vec<usize> = (0..1 + seed / 2 % (peers / 2))
        .map(|peer| ((seed + peer) % peers) as usize)
        .collect();
    let (at, lasts) = split(seed);
    format!(
        "seed = {seed}\npeers = {peers}\nrounds = 200\nsave_every_s = 1.0\n\
         [task]\nkind = \"quadratic\"\ndim = 32\n\
         [strategy]\npreset = \"diloco\"\n[strategy.synchronization]\ninner_steps = 5\n\
         [strategy.inner]\noptimizer = \"sgd\"\nlr = 0.1\n\
         [strategy.architecture]\n{exchange}\n[strategy.compression]\ncodec = \"{codec}\"\n\
         [strategy.overlap]\nfragments = {fragments}\n\
         [strategy.deadlines]\nfloor_ms = 300\ninitial_ms = 1000\nceiling_ms = 4000\n\
         [network]\nlatency_ms = 5.0\njitter_ms = 3.0\nloss = 0.0{loss}\nbootstrap = 32\n\
         detection_ms = 300.0\n[compute]\nstep_ms = 5.0\n[limits]\nvirtual_s = 600.0\n\
         {cut}{faults}",
        loss = seed % 3,
        cut = cut_off(&cut, at, lasts),
    )
}

/// When the split of a seed begins, and how long it lasts.
fn split(seed: u64) -> (f64, f64) {
    (6.0 + 0.013 * (seed % 40) as f64, 3.0 + (seed % 4) as f64)
}

/// Checks that all machines of a seed hold one state at the end.
fn together(seed: u64, report: &Report) {
    one_state(report, 4 + seed as usize % 6, &format!("seed {seed}"));
}

fn run(seed: u64, faults: &str) -> Report {
    crate::common::run(&text(seed, faults), None)
}

#[test]
fn halves_that_go_on_are_merged_by_weight() {
    let (mut merged, mut failed, mut saved) = (0, 0, 0);
    let mut lossless = Vec::new();
    let seeds = seeds(24);
    let count = seeds.end - seeds.start;
    for seed in seeds {
        let report = run(seed, "");
        together(seed, &report);
        let counters = &report.counters;
        merged += u64::from(counters.merges > 0);
        failed += counters.not_merged;
        saved += counters.branches_saved;
        if counters.merges == 0 && seed % 3 == 0 {
            lossless.push(seed);
        }
        if counters.merges == 0 {
            println!(
                "seed {seed}: no merge, {} attempts failed, {} branches saved",
                counters.not_merged, counters.branches_saved
            );
        }
    }
    println!("{merged} of {count} merged; {failed} attempts failed, {saved} branches were saved");
    assert!(
        lossless.is_empty(),
        "not merged although no message was lost: {lossless:?}"
    );
    // Where messages are lost, a side may fall apart by itself before it meets the other.
    assert!(4 * merged >= 3 * count, "{merged} of {count} merged");
}

/// Each side follows its own losses meanwhile. The invariant `same_steps` checks that peers with one anchor
/// take the same inner steps, before and after the merge.
#[test]
fn sides_that_follow_their_losses_begin_again_when_they_are_merged() {
    let pace = "inner_steps = 20\npace = \"loss\"\nloss_every = 15";
    let mut merged = 0;
    for seed in seeds(12) {
        let text = text(seed, "").replace("inner_steps = 5", pace);
        let report = crate::common::run(&text, None);
        together(seed, &report);
        merged += u64::from(report.counters.merges > 0);
    }
    println!("{merged} merged");
    assert!(merged > 0, "no run merged its sides");
}

#[test]
fn deaths_during_the_merge_leave_one_state() {
    for seed in seeds(24) {
        let peers = 4 + seed % 6;
        let (begins, lasts) = split(seed);
        let death = |victim: u64| {
            let peer = (seed / 3 + victim) % peers;
            let later = 0.02 * ((seed + victim * 7) % 23) as f64;
            crash_for_at(peer as usize, begins + lasts + later, 1.5)
        };
        let faults: String = (0..1 + seed % 2).map(death).collect();
        together(seed, &run(seed, &faults));
    }
}

/// All machines of both sides are switched off before the sides meet. Their checkpoints know of the split, so the side
/// that is ahead does not replace the other unseen: they are merged, or the branch of one is saved.
#[test]
fn sides_that_are_all_restarted_are_merged_or_saved() {
    let mut kept = 0;
    let seeds = seeds(12);
    let count = seeds.end - seeds.start;
    for seed in seeds {
        let (begins, lasts) = split(seed);
        // They die in the split and begin again after it, one after the other.
        let death = |peer| crash_for_at(peer, begins + 2.5, lasts + 0.05 * peer as f64);
        let faults: String = (0..4 + seed as usize % 6).map(death).collect();
        let report = run(seed, &faults);
        together(seed, &report);
        let counters = &report.counters;
        println!(
            "seed {seed}: {} merges, {} branches saved",
            counters.merges, counters.branches_saved
        );
        kept += u64::from(counters.merges + counters.branches_saved > 0);
    }
    // Where the split began with the first round, there is nothing to lose.
    assert!(10 * kept >= 9 * count, "{kept} of {count} kept");
}

/// Staggered fragments are not merged: one side takes over the other's state. Its members propose nothing
/// until they have been in a group, and must not be waited for as if they did.
#[test]
fn sides_that_cannot_be_merged_soon_train_on_together() {
    for seed in seeds(24) {
        let staggered = |fragments: u64| format!("fragments = {fragments}\n");
        let text = text(seed, "")
            .replace(
                &staggered(1 + 2 * (seed % 2)),
                "fragments = 2\nstagger = 2\n",
            )
            .replace(&format!("loss = 0.0{}", seed % 3), "loss = 0.0");
        let report = crate::common::run(&text, None);
        assert_eq!(report.consensus_distance, 0.0, "seed {seed}: {report}");
        assert_eq!(report.counters.merges, 0, "seed {seed}: {report}");
        // The first deadline: later ones are learned from what took longer.
        let waited = report.counters.longest_wait_s;
        assert!(waited <= 1.0, "seed {seed}: {waited} s: {report}");
    }
}

/// Members that sign wait for those that they lost for longer than these partitions last, so no side
/// decides anything that a side of most would have to give up.
#[test]
fn where_members_sign_a_small_side_decides_nothing_alone() {
    for seed in 0..6 {
        let text = text(6 * seed, "").replace(
            "[strategy.deadlines]",
            "[strategy.agreement]\nliars = 1\n[strategy.deadlines]",
        );
        let report = crate::common::run(&text, None);
        assert_eq!(report.consensus_distance, 0.0, "seed {seed}: {report}");
        assert_eq!(report.counters.merges, 0, "seed {seed}: {report}");
        assert_eq!(report.counters.branches_saved, 0, "seed {seed}: {report}");
    }
}

/// After a minute the parts go on. They are not merged: what one part did is saved, and it goes on with
/// the state of the other.
#[test]
fn where_members_sign_a_long_split_leaves_one_state_and_a_saved_branch() {
    for seed in 0..4 {
        let text = include_str!("../../scenarios/partition.toml")
            .replace("seed = 11\npeers = 6", &format!("seed = {seed}\npeers = 4"))
            .replace("rounds = 100", "rounds = 300")
            .replace("peers = [1, 4]", "peers = [1, 3]")
            .replace("lasts_s = 10.0", "lasts_s = 90.0")
            .replace("step_ms = 20.0", "step_ms = 20.0\nspread = 0.3")
            .replace(
                "[strategy.deadlines]",
                "[strategy.agreement]\nliars = 1\n[strategy.deadlines]",
            );
        let report = crate::common::run(&text, None);
        assert_eq!(report.consensus_distance, 0.0, "seed {seed}: {report}");
        assert_eq!(report.counters.branches_saved, 2, "seed {seed}: {report}");
    }
}

/// One member is cut off while the others vote, and some of them crash in the same moment. What the one that is cut
/// off has decided, the others do not decide again without it: an invariant compares all groups of a round.
#[test]
fn where_members_sign_no_round_is_decided_twice_when_members_are_cut_off_and_crash() {
    for seed in seeds(72) {
        let crashed: &[usize] = [&[1][..], &[1, 3], &[0, 1, 3]][(seed % 3) as usize];
        let at = 1.0 + 0.0005 * ((178 + 53 * seed) % 400) as f64;
        let text = format!(
            "seed = {scenario}\npeers = 4\nrounds = 16\n[task]\nkind = \"quadratic\"\ndim = 64\n\
             [strategy]\npreset = \"guarded\"\n[strategy.synchronization]\ninner_steps = 4\n\
             [strategy.deadlines]\nfloor_ms = 100\ninitial_ms = 400\nceiling_ms = 1000\n\
             [limits]\nvirtual_s = 240.0\n[compute]\nstep_ms = 25.0\n\
             [network]\nlatency_ms = 10.0\njitter_ms = 3.0\nbootstrap = 64\n\
             {cut}",
            scenario = 19 + seed / 400,
            cut = cut_off(&[2], at, [3.0, 20.0][(seed / 3 % 2) as usize]),
        );
        let crashed = crashed
            .iter()
            .map(|peer| crash_for_at(*peer, at + 0.0005, 1.0));
        let report = crate::common::run(&(text + &crashed.collect::<String>()), None);
        assert_eq!(report.consensus_distance, 0.0, "seed {seed}: {report}");
    }
}

/// The scenario that the documentation names.
#[test]
fn the_scenario_of_a_partition_merges_once() {
    let text = include_str!("../../scenarios/partition.toml");
    let report = crate::common::run(text, None);
    assert_eq!(report.counters.merges, 6, "{report}");
    assert_eq!(report.consensus_distance, 0.0, "{report}");
    assert_eq!(report.counters.branches_saved, 0, "{report}");
}
