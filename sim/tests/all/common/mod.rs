//! Helpers of scenario tests: running a text, and the faults that every exchange is tested with.

use murmurate_sim::{
    Report, RunOptions, Sample, Scenario, ToyTasksOnly, TrainerFactory, run_scenario,
};
use std::path::Path;

/// Runs a scenario with this seed, or its own.
pub(crate) fn run(text: &str, seed: Option<u64>) -> Report {
    run_with(text, seed, &ToyTasksOnly)
}

/// The same, with other trainers.
pub(crate) fn run_with(text: &str, seed: Option<u64>, trainers: &dyn TrainerFactory) -> Report {
    let scenario = Scenario::from_toml(text, "test", "test");
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}\n{text}"));
    let options = RunOptions {
        seed,
        ..RunOptions::default()
    };
    run_scenario(&scenario, trainers, options).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// A scenario of the repository.
pub(crate) fn shipped(name: &str) -> Scenario {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    Scenario::from_file(&folder.join(format!("{name}.toml"))).unwrap_or_else(|e| panic!("{e}"))
}

/// Runs a scenario with this seed, or its own.
pub(crate) fn play(scenario: &Scenario, seed: Option<u64>) -> Report {
    let options = RunOptions {
        seed,
        ..RunOptions::default()
    };
    run_scenario(scenario, &ToyTasksOnly, options).unwrap_or_else(|error| panic!("{error}"))
}

/// The seeds to run, from zero or `MURMURATE_SEED` on: as many as `MURMURATE_SEEDS` says, `long` of them if it
/// says `long`, and a fifth of that without it.
pub(crate) fn seeds(long: u64) -> core::ops::Range<u64> {
    let first = std::env::var("MURMURATE_SEED");
    let first = first.map_or(0, |text| text.parse().expect("a number"));
    let count = match std::env::var("MURMURATE_SEEDS").as_deref() {
        Err(_) => long.div_ceil(5),
        Ok("long") => long,
        Ok(text) => text.parse().expect("`long` or a number"),
    };
    assert!(count > 0, "MURMURATE_SEEDS=0 would test nothing");
    println!("seeds {:?}", first..first + count);
    first..first + count
}

/// A machine dies some seconds after the start of a phase.
pub(crate) fn crash(peer: usize, round: u64, phase: &str, delay_s: f64) -> String {
    format!(
        "[[fault]]\nkind = \"crash\"\npeer = {peer}\nround = {round}\nphase = \"{phase}\"\n\
         delay_s = {delay_s}\n"
    )
}

/// The same, with a restart one second later.
pub(crate) fn crash_and_return(peer: usize, round: u64, phase: &str, delay_s: f64) -> String {
    crash_for(peer, round, phase, delay_s, 1.0)
}

/// The same, with a restart some seconds later.
pub(crate) fn crash_for(
    peer: usize,
    round: u64,
    phase: &str,
    delay_s: f64,
    after_s: f64,
) -> String {
    crash(peer, round, phase, delay_s) + &format!("restart_after_s = {after_s}\n")
}

/// A machine dies at a time.
pub(crate) fn crash_at(peer: usize, at_s: f64) -> String {
    format!("[[fault]]\nkind = \"crash\"\npeer = {peer}\nat_s = {at_s}\n")
}

/// The same, with a restart some seconds later.
pub(crate) fn crash_for_at(peer: usize, at_s: f64, after_s: f64) -> String {
    crash_at(peer, at_s) + &format!("restart_after_s = {after_s}\n")
}

/// Machines die at random, one in `mean_s` on average, and return after `after_s`.
pub(crate) fn churn(mean_s: f64, until_s: f64, after_s: f64, down_max: usize) -> String {
    format!(
        "[[fault]]\nkind = \"random-crashes\"\nmean_s = {mean_s}\nuntil_s = {until_s}\n\
         restart_after_s = {after_s}\ndown_max = {down_max}\n"
    )
}

/// A machine joins when the others begin a round.
pub(crate) fn joins_in(peer: usize, round: u64) -> String {
    format!("[[fault]]\nkind = \"join\"\npeer = {peer}\nround = {round}\n")
}

/// A machine joins at a time.
pub(crate) fn joins_at(peer: usize, at_s: f64) -> String {
    format!("[[fault]]\nkind = \"join\"\npeer = {peer}\nat_s = {at_s}\n")
}

/// Some machines are cut off from the others for some seconds.
pub(crate) fn cut_off(peers: &[usize], at_s: f64, lasts_s: f64) -> String {
    format!(
        "[[fault]]\nkind = \"partition\"\npeers = {peers:?}\nat_s = {at_s}\nlasts_s = {lasts_s}\n"
    )
}

/// The same, of one machine, some seconds after the start of a round's exchange.
pub(crate) fn cut_off_in(peer: usize, round: u64, delay_s: f64, lasts_s: f64) -> String {
    format!(
        "[[fault]]\nkind = \"partition\"\npeers = [{peer}]\nround = {round}\nphase = \"exchange\"\n\
         delay_s = {delay_s}\nlasts_s = {lasts_s}\n"
    )
}

/// A machine is slower by this factor for some seconds.
pub(crate) fn slow(peer: usize, at_s: f64, factor: f64, lasts_s: f64) -> String {
    format!(
        "[[fault]]\nkind = \"straggler\"\npeer = {peer}\nat_s = {at_s}\nfactor = {factor}\n\
         lasts_s = {lasts_s}\n"
    )
}

/// A machine is slower by this factor for three seconds.
pub(crate) fn stall(peer: usize, at_s: f64, factor: f64) -> String {
    slow(peer, at_s, factor, 3.0)
}

/// A machine sends false slices for some seconds.
pub(crate) fn lies(peer: usize, at_s: f64, lasts_s: f64, lie: &str) -> String {
    format!(
        "[[fault]]\nkind = \"byzantine\"\npeer = {peer}\nat_s = {at_s}\nlasts_s = {lasts_s}\n\
         lie = \"{lie}\"\n"
    )
}

/// Machine 2 sends false slices for half a second from round 5 on.
pub(crate) fn nonsense(lie: &str) -> String {
    nonsense_of(2, 5, lie)
}

/// A machine sends false slices for half a second from a round on.
pub(crate) fn nonsense_of(peer: usize, round: u64, lie: &str) -> String {
    format!(
        "[[fault]]\nkind = \"byzantine\"\npeer = {peer}\nround = {round}\nphase = \"train\"\n\
         lie = \"{lie}\"\nlasts_s = 0.5\n"
    )
}

/// Networks of one latency: one that loses nothing, and one that loses a fifth of all messages.
pub(crate) const QUIET: &str = "[network]\nlatency_ms = 5.0\n";
pub(crate) const LOSSY: &str =
    "[network]\nlatency_ms = 5.0\njitter_ms = 20.0\nloss = 0.2\nretry_ms = 50.0\n";

pub(crate) fn waits_are_bounded(report: &Report) -> bool {
    report.counters.longest_wait_s <= report.counters.longest_wait_allowed_s
}

/// Checks that `peers` machines are up at the end, and held the same bits after the last of `rounds`.
#[track_caller]
pub(crate) fn agreed(report: &Report, peers: usize, rounds: u64, what: &str) {
    assert_eq!(report.live, peers, "{what}: {report}");
    let last = last(report);
    let end = (last.round, last.consensus_distance);
    assert_eq!(end, (rounds, 0.0), "{what}: {report}");
    assert!(waits_are_bounded(report), "{what}: {report}");
}

/// What was measured last.
pub(crate) fn last(report: &Report) -> &Sample {
    report.samples.last().expect("samples")
}

/// The loss at the last evaluation.
pub(crate) fn loss(report: &Report) -> f64 {
    last(report).loss.expect("the task has a loss")
}

/// The loss when a round had begun.
pub(crate) fn loss_of(report: &Report, round: u64) -> f64 {
    let sample = report.samples.iter().find(|s| s.round == round);
    sample.and_then(|s| s.loss).expect("a loss")
}

/// Checks that the loss has fallen.
#[track_caller]
pub(crate) fn learned(report: &Report, what: &str) {
    assert!(
        last(report).loss < report.samples[0].loss,
        "{what}: {report}"
    );
}

/// Checks that `peers` machines are up at the end and hold the same bits.
#[track_caller]
pub(crate) fn one_state(report: &Report, peers: usize, what: &str) {
    let state = (report.live, report.consensus_distance);
    assert_eq!(state, (peers, 0.0), "{what}: {report}");
}

/// Checks that `peers` machines are up at the end, and that none broke a rule.
#[track_caller]
pub(crate) fn intact(report: &Report, peers: usize) {
    let state = (report.live, report.counters.rule_breaks);
    assert_eq!(state, (peers, 0), "{report}");
}

/// Rates near a mean that is given for each machine, changed twice a second: the trace of the network.
pub(crate) fn noisy_lines(steps: u32, mbit: impl Fn(usize) -> f64) -> String {
    let mut state = 3u64;
    let line = |peer| {
        let (mut times, mut rates) = (Vec::new(), Vec::new());
        for step in 0..steps {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            times.push(f64::from(step) * 0.5);
            rates.push(mbit(peer) * (0.9 + 0.2 * (state >> 40) as f64 / (1u64 << 24) as f64));
        }
        format!(
            "[[network.trace]]\npeer = {peer}\nat_s = {times:?}\nuplink_mbit = {rates:?}\n\
             downlink_mbit = {rates:?}\n"
        )
    };
    (0..6).map(line).collect()
}
