//! Prometheus rules and the Grafana dashboard of `deploy`, checked and tried by promtool, which comes
//! from Debian's package `prometheus`.

use crate::command::{Failure, run, succeeds, target};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const RULES: &str = "deploy/prometheus/alerts.yml";
const TESTS: &str = "deploy/prometheus/alerts.test.yml";
const DASHBOARD: &str = "deploy/grafana/murmurate.json";
const CONFIG: &str = "deploy/compose/prometheus.yml";

/// Values of the variables in Grafana's expressions.
const VARIABLES: [(&str, &str); 3] = [
    ("$__rate_interval", "1m"),
    ("$job", ".*"),
    ("$instance", ".*"),
];

pub(crate) fn check() -> Result<(), Failure> {
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(DASHBOARD)?)
        .map_err(|error| Failure::new(format!("{DASHBOARD} is not JSON: {error}")))?;
    let expressions = expressions(&dashboard);
    if expressions.is_empty() {
        return Err(Failure::new(format!("{DASHBOARD} asks for nothing")));
    }
    let Some(promtool) = promtool() else {
        println!("skipped: promtool is not here, and apt cannot fetch Debian's package prometheus");
        return Ok(());
    };
    run(&promtool, &["check", "config", "--syntax-only", CONFIG])?;
    run(&promtool, &["check", "rules", RULES])?;
    run(&promtool, &["test", "rules", TESTS])?;
    // promtool reads no dashboards, but it reads rules, and JSON is YAML.
    let directory = target().join("xtask");
    fs::create_dir_all(&directory)?;
    let file = directory.join("dashboard.rules.json");
    fs::write(&file, as_rules(&expressions).to_string())?;
    println!("the {} expressions of {DASHBOARD}:", expressions.len());
    run(&promtool, &["check", "rules", &file.to_string_lossy()])
}

/// Every expression in the dashboard, in order.
fn expressions(value: &Value) -> Vec<String> {
    match value {
        Value::Array(all) => all.iter().flat_map(expressions).collect(),
        Value::Object(fields) => {
            let here = fields.get("expr").and_then(Value::as_str);
            let below = fields.values().flat_map(expressions);
            here.map(str::to_owned).into_iter().chain(below).collect()
        }
        _ => Vec::new(),
    }
}

fn as_rules(expressions: &[String]) -> Value {
    let rule = |(number, expression): (usize, &String)| {
        let filled = VARIABLES
            .iter()
            .fold(expression.clone(), |text, (name, value)| {
                text.replace(name, value)
            });
        json!({"record": format!("panel:{number}"), "expr": filled})
    };
    let rules: Vec<Value> = expressions.iter().enumerate().map(rule).collect();
    json!({"groups": [{"name": "dashboard", "rules": rules}]})
}

/// The path of promtool, which is unpacked below the target directory if it is not installed. The package
/// itself is not installed, because that would start a server.
fn promtool() -> Option<PathBuf> {
    let installed = PathBuf::from("promtool");
    if succeeds(&installed, &["--version"]) {
        return Some(installed);
    }
    let root = target().join("tools").join("prometheus");
    let unpacked = root.join("usr").join("bin").join("promtool");
    if !succeeds(&unpacked, &["--version"]) {
        fs::create_dir_all(&root).ok()?;
        let fetched = download(&root) || (succeeds("apt-get", &["update"]) && download(&root));
        if !fetched || !unpack(&root) {
            return None;
        }
    }
    succeeds(&unpacked, &["--version"]).then_some(unpacked)
}

fn download(root: &Path) -> bool {
    let mut apt = Command::new("apt-get");
    apt.args(["download", "--quiet", "prometheus"]);
    apt.current_dir(root).stdin(Stdio::null());
    apt.stdout(Stdio::null()).stderr(Stdio::null());
    apt.status().is_ok_and(|status| status.success())
}

fn unpack(root: &Path) -> bool {
    let Ok(entries) = root.read_dir() else {
        return false;
    };
    let packages = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut packages = packages.filter(|path| path.extension().is_some_and(|end| end == "deb"));
    let package = packages.next();
    package.is_some_and(|package| {
        let (package, root) = (package.to_string_lossy(), root.to_string_lossy());
        succeeds("dpkg-deb", &["--extract", &package, &root])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_found_at_any_depth_and_filled_in() {
        let dashboard = json!({"panels": [
            {"targets": [{"expr": "rate(a{job=~\"$job\"}[$__rate_interval])"}]},
            {"panels": [{"targets": [{"expr": "b"}]}]},
        ]});
        let all = expressions(&dashboard);
        assert_eq!(all.len(), 2);
        let rules = as_rules(&all);
        let first = &rules["groups"][0]["rules"][0]["expr"];
        assert_eq!(first, "rate(a{job=~\".*\"}[1m])");
    }
}
