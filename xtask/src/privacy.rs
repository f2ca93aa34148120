//! Remakes the table of docs/privacy.md: what accuracy is left under a promise of privacy, by peers and epsilon.
//! Every cell is the best of some simulated runs, which give the same values on every machine.

use crate::command::{self, Failure};
use serde_json::Value;
use std::fs;

/// The scenario of which every run is a variant.
const SCENARIO: &str = "sim/scenarios/private.toml";

/// The variant that runs, and the table, in the directory of build results.
const DIRECTORY: &str = "privacy";

const PEERS: [&str; 3] = ["8", "32", "64"];

/// Epsilon, and its noise for 20 contributions at delta 1e-5.
const NOISE: [(&str, &str); 3] = [("2", "8.92"), ("4", "4.84"), ("8", "2.69")];

const CLIPS: [&str; 3] = ["0.1", "0.3", "1.0"];

/// Makes the rows of these numbers of peers, or all of the table.
pub(crate) fn privacy(peers: &[&str]) -> Result<(), Failure> {
    command::built_by_tests()?;
    let directory = command::target().join(DIRECTORY);
    command::fresh(&directory)?;
    let scenario = fs::read_to_string(SCENARIO)?;
    let file = directory.join("run.toml");
    let run = |peers: &str, noise: &str, clip: &str| {
        fs::write(&file, variant(&scenario, peers, noise, clip)?)?;
        let words = ["sim", &file.to_string_lossy(), "--json"];
        accuracy(&command::output(command::murmurate("debug"), &words)?)
    };
    let heads = NOISE.map(|(epsilon, noise)| format!(" epsilon {epsilon} (noise {noise}) |"));
    let mut table = format!("| peers |{}\n|--:|---|---|---|\n", heads.concat());
    for peers in if peers.is_empty() { &PEERS } else { peers } {
        let mut row = format!("| {peers} |");
        for (epsilon, noise) in NOISE {
            let runs = CLIPS.map(|clip| Ok((run(peers, noise, clip)?, clip)));
            let runs = runs.into_iter().collect::<Result<Vec<_>, Failure>>()?;
            let best = runs.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
            let (best, clip) = best.unwrap_or_default();
            println!("{peers} peers, epsilon {epsilon}: accuracy {best:.4} with clip {clip}");
            row += &format!(" {best:.2} |");
        }
        table += &format!("{row}\n");
    }
    print!("\n{table}");
    Ok(fs::write(directory.join("table.md"), table)?)
}

/// The scenario with other numbers, each of which has one line there.
fn variant(scenario: &str, peers: &str, noise: &str, clip: &str) -> Result<String, Failure> {
    let numbers = [
        ("peers", peers),
        ("members", peers),
        ("noise", noise),
        ("clip", clip),
    ];
    let mut text = scenario.to_owned();
    for (key, value) in numbers {
        let head = format!("{key} = ");
        let is_it = |line: &&str| line.starts_with(&head);
        if text.lines().filter(is_it).count() != 1 {
            return Err(Failure::new(format!(
                "{SCENARIO} must have one line `{head}...`"
            )));
        }
        let changed = |line: &str| match is_it(&line) {
            true => format!("{head}{value}\n"),
            false => format!("{line}\n"),
        };
        text = text.lines().map(changed).collect();
    }
    Ok(text)
}

/// The accuracy at the end of a simulated run.
fn accuracy(report: &str) -> Result<f64, Failure> {
    let report: Value = serde_json::from_str(report)
        .map_err(|error| Failure::new(format!("the report is not JSON: {error}")))?;
    let last = report["samples"].as_array().and_then(|all| all.last());
    last.and_then(|sample| sample["accuracy"].as_f64())
        .ok_or_else(|| Failure::new("the report has no accuracy"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_the_scenario_with_four_other_numbers() {
        let scenario = fs::read_to_string(command::root().join(SCENARIO)).unwrap();
        let text = variant(&scenario, "9", "1.25", "0.5").unwrap();
        let changed = text.lines().filter(|line| !scenario.contains(*line));
        let changed: Vec<&str> = changed.collect();
        assert_eq!(
            changed,
            ["peers = 9", "clip = 0.5", "noise = 1.25", "members = 9"]
        );
        assert!(variant(&text.replace("clip = ", "klip = "), "9", "1", "1").is_err());
    }

    #[test]
    fn the_accuracy_is_that_of_the_last_sample() {
        let report = r#"{"samples":[{"accuracy":0.5},{"accuracy":0.75}]}"#;
        assert_eq!(accuracy(report).unwrap(), 0.75);
        assert!(accuracy(r#"{"samples":[]}"#).is_err());
    }
}
