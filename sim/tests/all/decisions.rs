//! Compares the results of fixed scenarios and seeds with a file. A change that does not intend to
//! change behaviour must leave every line as it is.
//!
//! If a change is intended, `MURMURATE_BLESS=1 cargo test -p murmurate-sim --test all decisions` writes
//! `decisions.txt` again, and its difference is reviewed.

use crate::common::{play, shipped};
use murmurate_sim::Report;
use murmurate_sim::seeds::{run_seed, run_seed_of};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const SCENARIOS: [&str; 6] = [
    "all-reduce-8",
    "all-reduce-crash",
    "late-join",
    "lossy-gossip",
    "restart",
    "straggler",
];

/// Presets by family of exchanges, so that every exchange is among the seeds.
const FAMILIES: [&[&str]; 8] = [
    &["diloco"],
    &["d-psgd"],
    &["bsp"],
    &["choco", "d2", "ad-psgd", "beer"],
    &["relaysgd"],
    &["gossipgrad", "osgp", "noloco", "moshpit"],
    &["ssp", "asp", "fedbuff", "easgd"],
    &["dgc", "powersgd", "demo"],
];

const SEEDS: u64 = 12;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// One line: exact counts, times to the millisecond, losses to three digits. Fewer digits allow for
/// processors that add in a different order.
fn line(name: &str, report: &Report) -> String {
    let c = &report.counters;
    let loss = report.samples.last().and_then(|s| s.loss);
    let loss = loss.map_or_else(|| "-".to_owned(), |loss| format!("{loss:.2e}"));
    format!(
        "{name}: live {} rounds {} voided {} caught-up {} inner-steps {} pushes {} lost {} expired {} apart {} loss {loss} at {:.3}",
        report.live,
        c.rounds_ended,
        c.voided,
        c.catch_ups,
        c.inner_steps,
        c.pushes,
        c.pushes_lost,
        c.waits_expired,
        report.consensus_distance > 0.0,
        report.virtual_s,
    )
}

fn decided() -> String {
    let mut text = String::new();
    for name in SCENARIOS {
        let report = play(&shipped(name), None);
        writeln!(text, "{}", line(name, &report)).expect("a string takes everything");
    }
    for seed in 0..SEEDS {
        let any = run_seed(seed).unwrap_or_else(|failure| panic!("{failure}"));
        writeln!(text, "{}", line(&format!("any {seed}"), &any)).expect("a string");
        for presets in FAMILIES {
            let name = format!("{} {seed}", presets[0]);
            let report = run_seed_of(seed, presets).unwrap_or_else(|failure| panic!("{failure}"));
            writeln!(text, "{}", line(&name, &report)).expect("a string takes everything");
        }
    }
    text
}

#[test]
fn every_decision_is_what_it_was() {
    let file = root().join("tests/decisions.txt");
    let decided = decided();
    if std::env::var_os("MURMURATE_BLESS").is_some() {
        std::fs::write(&file, &decided).expect("the file of decisions is writable");
        return;
    }
    let before = std::fs::read_to_string(Path::new(&file)).expect("decisions.txt is here");
    let differing: Vec<String> = before
        .lines()
        .zip(decided.lines())
        .filter(|(was, is)| was != is)
        .map(|(was, is)| format!("was {was}\n is {is}"))
        .collect();
    let (lines, kept) = (decided.lines().count(), before.lines().count());
    assert!(
        differing.is_empty() && lines == kept,
        "{} of {lines} lines differ ({kept} are kept):\n{}",
        differing.len(),
        differing.join("\n")
    );
}
