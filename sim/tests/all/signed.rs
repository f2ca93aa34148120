//! Random swarms whose members sign, with crashes, churn, stragglers and short partitions, and without
//! liars: signatures must not keep a swarm from going on. `MURMURATE_SEED` sets the first seed and
//! `MURMURATE_SEEDS` the number of seeds.
//!
//! Without false slices: swarms of three survive no liar.

use murmurate_sim::seeds::random_scenario_of;
use murmurate_sim::{RunOptions, Scenario, ToyTasksOnly, run_scenario};

/// A random scenario whose members sign.
fn text(seed: u64) -> String {
    let text = random_scenario_of(seed, &["local-sgd", "diloco", "bsp"]);
    let text = text.replace("events = 3_000_000", "events = 300_000");
    text.replacen(
        "[strategy.compression]",
        "[strategy.agreement]\nliars = \"max\"\n[strategy.compression]",
        1,
    )
}

/// The same on links like those between daemons, which lose no message while they are up, only with them.
fn lossless(seed: u64) -> String {
    (1..6).fold(text(seed), |text, loss| {
        text.replace(&format!("\nloss = 0.0{loss}"), "\nloss = 0.0")
    })
}

fn run(seed: u64, text: &str) -> Result<f64, String> {
    let file = format!("signed-{seed}");
    let fail = |what: String| format!("seed {seed}: {what}\n{text}");
    let scenario = Scenario::from_toml(text, &file, &file).map_err(|e| fail(e.to_string()))?;
    let report = run_scenario(&scenario, &ToyTasksOnly, RunOptions::default());
    let report = report.map_err(|error| fail(error.to_string()))?;
    if report.consensus_distance > 0.0 || !report.counters.cut_off.is_empty() {
        let cut_off = &report.counters.cut_off;
        return Err(fail(format!("{cut_off:?} were cut off\n{report}")));
    }
    Ok(report.virtual_s)
}

#[test]
fn swarms_that_sign_survive_crashes_churn_and_partitions() {
    let seeds = crate::common::seeds(100);
    let within = |seed: &u64| !text(*seed).contains("\"byzantine\"");
    let runs: Vec<Result<f64, String>> = seeds
        .filter(within)
        .map(|seed| run(seed, &lossless(seed)))
        .collect();
    let count = runs.len();
    assert!(count > 0, "no such swarm among the seeds");
    let broken: Vec<&String> = runs.iter().filter_map(|run| run.as_ref().err()).collect();
    let slowest = runs.iter().flatten().fold(0.0f64, |most, s| most.max(*s));
    println!("{count} swarms, the slowest took {slowest:.1} s of virtual time");
    let lines: Vec<&str> = broken.iter().filter_map(|b| b.lines().next()).collect();
    assert!(
        broken.is_empty(),
        "{} of {count} swarms broke:\n{}\n\nthe first:\n{}",
        broken.len(),
        lines.join("\n"),
        broken[0]
    );
}

/// A group of a round with several fragments breaks up after it has decided some of them. Of two halves that have
/// decided different ones (553), those whose state loses asked their own half whether the other's is right, and took
/// over what they had. Where one member alone knows the whole result (1769), no other one vouches for its state.
/// Where each knows other parts (1793, 3339), also if the others were restarted (5304), no two had one anchor; now
/// they show each other what they know. Members that were restarted got the state of the round's first attempt
/// while the others tried it again with another one (6802).
#[test]
fn members_that_decided_different_parts_of_a_round_find_to_one_state() {
    for seed in [553, 1769, 1793, 3339, 5304, 6802] {
        // As long as the scenario may take: two of them end shortly after the limit of the test above.
        let text = lossless(seed).replace("events = 300_000", "events = 3_000_000");
        run(seed, &text).unwrap_or_else(|failure| panic!("{failure}"));
    }
}

/// Messages are lost. A coordinator had heard of a higher certificate than its promises name, and showed none;
/// another peer had a proof by fewer members than the receiver counts. Both were taken for liars.
#[test]
fn no_honest_member_is_cut_off_where_messages_are_lost() {
    for seed in [115, 186] {
        run(seed, &text(seed)).unwrap_or_else(|failure| panic!("{failure}"));
    }
}

/// Three are just enough for a mean that survives a liar. While one of them catches up, the other two wait:
/// alone they would void one round after the other, and it would never reach them.
#[test]
fn a_group_that_needs_all_waits_for_one_that_comes_back() {
    for seed in 0..8 {
        let text = format!(
            "seed = {seed}\npeers = 3\nrounds = 40\nsave_every_s = 0.5\n\
             [task]\nkind = \"quadratic\"\ndim = 48\n\
             [strategy]\npreset = \"guarded\"\n\
             [strategy.deadlines]\nfloor_ms = 300\ninitial_ms = 1000\nceiling_ms = 5000\n\
             [limits]\nvirtual_s = 600.0\nevents = 1_000_000\n\
             [network]\nlatency_ms = 10.0\n[compute]\nstep_ms = 10.0\n{}",
            crate::common::crash_and_return(1, 5, "exchange", 0.02)
        );
        let report = crate::common::run(&text, None);
        assert_eq!(report.live, 3, "{report}");
        assert_eq!(report.consensus_distance, 0.0, "{report}");
        // While it is down the two go on without results, and not for long after.
        println!("seed {seed}: {} fragments void", report.counters.voided);
        assert!(report.counters.voided <= 2 * 12, "{report}");
    }
}

/// One fragment, all well: what signatures cost a member in a round.
#[test]
fn signatures_of_a_round_grow_with_the_group_and_no_faster() {
    for peers in [4_u64, 16, 64] {
        let run = |liars: &str| {
            let text = format!(
                "seed = 1\npeers = {peers}\nrounds = 8\n\
                 [task]\nkind = \"quadratic\"\ndim = 64\n\
                 [strategy]\npreset = \"diloco\"\n[strategy.synchronization]\ninner_steps = 4\n\
                 [strategy.agreement]\nliars = {liars}\n\
                 [network]\nlatency_ms = 5.0\nbootstrap = {peers}\n[compute]\nstep_ms = 10.0\n"
            );
            crate::common::run(&text, None).counters
        };
        let (plain, signed) = (run("0"), run("\"max\""));
        let each = |count: u64, of: u64| count as f64 / of as f64;
        let rounds = signed.rounds_ended;
        let made = each(signed.signatures_made, rounds);
        let checked = each(signed.signatures_checked, rounds);
        println!(
            "{peers} members: {made:.1} made, {checked:.1} checked, {:.1} KB of control messages, \
             {:.1} KB without signatures",
            each(signed.bytes_control, rounds) / 1e3,
            each(plain.bytes_control, plain.rounds_ended) / 1e3
        );
        assert_eq!(plain.signatures_made + plain.signatures_checked, 0);
        // Ready, vote, and what a coordinator adds.
        assert!((1.0..6.0).contains(&made), "{made}");
        assert!(checked < 6.0 * (peers - 1) as f64, "{checked}");
    }
}
