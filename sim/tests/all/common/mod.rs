//! Helpers of scenario tests: running a text, and the faults that every exchange is tested with.

use murmurate_sim::{Report, RunOptions, Scenario, ToyTasksOnly, run_scenario};

/// Runs a scenario with this seed, or its own.
pub(crate) fn run(text: &str, seed: Option<u64>) -> Report {
    let scenario = Scenario::from_toml(text, "test", "test");
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}\n{text}"));
    let options = RunOptions {
        seed,
        ..RunOptions::default()
    };
    run_scenario(&scenario, &ToyTasksOnly, options).unwrap_or_else(|e| panic!("{e}\n{text}"))
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
    format!(
        "[[fault]]\nkind = \"byzantine\"\npeer = 2\nround = 5\nphase = \"train\"\nlie = \"{lie}\"\n\
         lasts_s = 0.5\n"
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
    let last = report.samples.last().expect("samples");
    let end = (last.round, last.consensus_distance);
    assert_eq!(end, (rounds, 0.0), "{what}: {report}");
    assert!(waits_are_bounded(report), "{what}: {report}");
}

/// The loss at the last evaluation.
pub(crate) fn loss(report: &Report) -> f64 {
    let last = report.samples.last().expect("an evaluation at the end");
    last.loss.expect("the task has a loss")
}
