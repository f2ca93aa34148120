//! Runs of the command as it was built: the one without configuration in the README, in which four daemons learn
//! MNIST together, and a simulated scenario that must repeat.

use crate::command::{Failure, built_by_tests, murmurate, output, target};
use serde_json::Value;
use std::fs;

/// The accuracy that the README promises for every daemon.
const ACCURACY_MIN: f64 = 0.95;

/// With the binary that the end-to-end tests start, so that nothing more is built.
pub(crate) fn zero_config() -> Result<(), Failure> {
    built_by_tests()?;
    learns(&output(murmurate("debug"), &LOCAL)?)
}

/// The command of the README as it stands there.
pub(crate) fn release() -> Result<(), Failure> {
    let cargo = ["run", "--release", "--"];
    learns(&output("cargo", &[&cargo[..], &LOCAL].concat())?)
}

const LOCAL: [&str; 4] = ["local", "--nodes", "4", "--json"];

/// Keeps the report, and fails if a daemon did not reach the accuracy.
fn learns(report: &str) -> Result<(), Failure> {
    let directory = target().join("xtask");
    fs::create_dir_all(&directory)?;
    fs::write(directory.join("local.json"), report)?;
    println!("{}", summary(report)?);
    Ok(())
}

/// One line for each daemon, or a failure if one of them did not end well.
fn summary(report: &str) -> Result<String, Failure> {
    let report: Value = serde_json::from_str(report)
        .map_err(|error| Failure::new(format!("the report is not JSON: {error}")))?;
    let nodes = report["nodes"].as_array().map_or(&[][..], Vec::as_slice);
    let mut lines = Vec::new();
    for node in nodes {
        let accuracy = node["test_accuracy"].as_f64().unwrap_or(0.0);
        let status = node["status"].as_str().unwrap_or("unknown");
        lines.push(format!(
            "daemon {}: {status}, accuracy {accuracy:.4}, {} inner steps, {} rounds, {:.1} s, \
             longest wait {:.2} s of {} s",
            node["node"],
            node["inner_steps"],
            node["rounds"],
            seconds(&node["wall_s"]),
            seconds(&node["longest_wait_s"]),
            node["deadline_s"],
        ));
        if status != "finished" || accuracy < ACCURACY_MIN {
            let text = lines.join("\n");
            return Err(Failure::new(format!("below {ACCURACY_MIN}:\n{text}")));
        }
    }
    if lines.len() != 4 {
        let count = lines.len();
        return Err(Failure::new(format!(
            "the report is of {count} daemons, not 4"
        )));
    }
    let preset = report["preset"].as_str().unwrap_or("unknown");
    let wall = seconds(&report["total"]["wall_s"]);
    lines.push(format!(
        "preset {preset}: all 4 daemons reached {ACCURACY_MIN} in {wall:.1} s"
    ));
    Ok(lines.join("\n"))
}

fn seconds(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

const SCENARIO: &str = "sim/scenarios/all-reduce-crash.toml";

/// The same simulated scenario, run by two processes, gives the same hash over all inputs and outputs.
pub(crate) fn determinism() -> Result<(), Failure> {
    built_by_tests()?;
    let (first, second) = (trace()?, trace()?);
    println!("{first}\n{second}");
    if first == second {
        return Ok(());
    }
    Err(Failure::new(format!("{SCENARIO}: two traces of one seed")))
}

fn trace() -> Result<String, Failure> {
    let report = output(murmurate("debug"), &["sim", SCENARIO, "--json"])?;
    let traces = report.lines().filter_map(trace_in).collect::<Vec<_>>();
    match traces.as_slice() {
        [] => Err(Failure::new("the report has no trace")),
        traces => Ok(traces.join(" ")),
    }
}

fn trace_in(line: &str) -> Option<String> {
    let report: Value = serde_json::from_str(line).ok()?;
    report["trace"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(accuracies: &[f64]) -> String {
        let node = |accuracy: &f64| {
            format!(r#"{{"node":0,"status":"finished","test_accuracy":{accuracy}}}"#)
        };
        let nodes: Vec<String> = accuracies.iter().map(node).collect();
        format!(
            r#"{{"preset":"diloco","nodes":[{}],"total":{{}}}}"#,
            nodes.join(",")
        )
    }

    #[test]
    fn one_daemon_below_the_promise_fails() {
        assert!(summary(&report(&[0.96, 0.96, 0.97, 0.95])).is_ok());
        assert!(summary(&report(&[0.96, 0.96, 0.97, 0.94])).is_err());
    }

    #[test]
    fn a_missing_daemon_fails() {
        assert!(summary(&report(&[0.96, 0.96, 0.97])).is_err());
        assert!(summary("no report").is_err());
    }
}
