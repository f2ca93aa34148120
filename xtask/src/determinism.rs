//! The same simulated scenario, run by two processes, gives the same hash over all inputs and outputs.

use crate::command::{built_by_tests, output};
use crate::failure::Failure;
use crate::paths::murmurate;
use serde_json::Value;

const SCENARIO: &str = "sim/scenarios/all-reduce-crash.toml";

pub(crate) fn check() -> Result<(), Failure> {
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
