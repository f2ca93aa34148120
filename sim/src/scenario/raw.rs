//! A scenario file as written, and its conversion to a valid [`Scenario`].

use super::check::{Checker, SECONDS_MAX};
use super::network::{RawNetwork, network};
use super::{ComputeSpec, DataSpec, Limits, PEERS_MAX, Scenario, ScenarioError, TaskSpec};
use crate::fault::RawFault;
use murmurate_strategies::names::hint;
use murmurate_strategies::toy::ToyTask;
use serde::Deserialize;

/// Parameters of a toy task.
const DIM_MAX: usize = 1 << 24;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScenario {
    seed: u64,
    peers: usize,
    rounds: u64,
    evaluate_every: Option<u64>,
    save_every_s: Option<f64>,
    task: toml::Table,
    #[serde(default)]
    strategy: toml::Table,
    #[serde(default)]
    network: RawNetwork,
    data: Option<RawData>,
    #[serde(default)]
    compute: RawCompute,
    #[serde(default)]
    limits: RawLimits,
    #[serde(default)]
    fault: Vec<RawFault>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawData {
    blocks: u32,
    samples: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTiming {
    parameters: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawCompute {
    step_ms: f64,
    speeds: Vec<f64>,
    spread: f64,
    drift: f64,
    drift_s: f64,
    mix_ns_per_value: f64,
}

impl Default for RawCompute {
    fn default() -> Self {
        Self {
            step_ms: 10.0,
            speeds: Vec::new(),
            spread: 0.0,
            drift: 0.0,
            drift_s: 60.0,
            mix_ns_per_value: 0.0,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawLimits {
    virtual_s: f64,
    events: u64,
}

impl Default for RawLimits {
    fn default() -> Self {
        Self {
            virtual_s: 86_400.0,
            events: 100_000_000,
        }
    }
}

pub(super) fn parse(text: &str, file: &str, name: &str) -> Result<Scenario, ScenarioError> {
    let raw: RawScenario = toml::from_str(text).map_err(|error| explain(&error, text, file))?;
    let check = Checker::new(file, text);
    if raw.peers == 0 || raw.peers > PEERS_MAX {
        return Err(check.refuse("peers", format!("is {}: give 1 to {PEERS_MAX}", raw.peers)));
    }
    if raw.rounds == 0 {
        return Err(check.refuse("rounds", "is 0: a scenario ends after at least one round"));
    }
    if raw.limits.events == 0 {
        return Err(check.refuse("limits.events", "is 0: nothing could happen"));
    }
    let save_every = match raw.save_every_s {
        Some(s) => {
            check.within("save_every_s", s, (1e-3, SECONDS_MAX))?;
            Some(check.seconds("save_every_s", s)?)
        }
        None => None,
    };
    let faults = raw
        .fault
        .into_iter()
        .enumerate()
        .map(|(index, fault)| fault.validate(&check, index, raw.peers))
        .collect::<Result<Vec<_>, _>>()?
        .concat();
    let task = task(raw.task, text, &check)?;
    let evaluate_every = match &task {
        // Without tensors there is nothing to evaluate.
        TaskSpec::Timing { .. } => 0,
        _ => raw.evaluate_every.unwrap_or((raw.rounds / 10).max(1)),
    };
    Ok(Scenario {
        name: name.to_owned(),
        seed: raw.seed,
        peers: raw.peers,
        rounds: raw.rounds,
        task,
        strategy: raw.strategy,
        network: network(&raw.network, raw.peers, &check)?,
        data: raw.data.map(|raw| data(&raw, &check)).transpose()?,
        compute: compute(raw.compute, &check)?,
        evaluate_every,
        save_every,
        limits: Limits {
            time: check.seconds("limits.virtual_s", raw.limits.virtual_s)?,
            events: raw.limits.events,
        },
        faults,
    })
}

fn data(raw: &RawData, check: &Checker<'_>) -> Result<DataSpec, ScenarioError> {
    check.within("data.blocks", raw.blocks.into(), (1.0, 1e6))?;
    check.within("data.samples", raw.samples as f64, (1.0, 1e6))?;
    Ok(DataSpec {
        blocks: raw.blocks,
        samples: raw.samples,
    })
}

fn task(table: toml::Table, text: &str, check: &Checker<'_>) -> Result<TaskSpec, ScenarioError> {
    let kind = match table.get("kind") {
        Some(toml::Value::String(kind)) => kind.clone(),
        _ => {
            return Err(check.refuse(
                "task.kind",
                "is missing: give `timing`, `quadratic`, `logistic` or a kind that this program knows",
            ));
        }
    };
    let mut options = table;
    options.remove("kind");
    if kind == "timing" {
        let timing: RawTiming = options
            .try_into()
            .map_err(|error| explain(&error, text, check.file()))?;
        let parameters = timing.parameters;
        check.within("task.parameters", parameters as f64, (1.0, 4e9))?;
        return Ok(TaskSpec::Timing { parameters });
    }
    if !matches!(kind.as_str(), "quadratic" | "logistic") {
        return Ok(TaskSpec::Factory { kind, options });
    }
    // The key of a toy task's kind is `task` in `strategies`.
    options.insert("task".to_owned(), toml::Value::String(kind));
    let toy: ToyTask = options
        .try_into()
        .map_err(|error| explain(&error, text, check.file()))?;
    let (ToyTask::Quadratic {
        dim, heterogeneity, ..
    }
    | ToyTask::Logistic {
        dim, heterogeneity, ..
    }) = toy;
    if dim == 0 || dim > DIM_MAX {
        return Err(check.refuse("task.dim", format!("is {dim}: give 1 to {DIM_MAX}")));
    }
    check.within("task.heterogeneity", heterogeneity, (0.0, 1e6))?;
    if let ToyTask::Quadratic { noise, .. } = toy {
        check.within("task.noise", noise, (0.0, 1e6))?;
    }
    Ok(TaskSpec::Toy(toy))
}

fn compute(raw: RawCompute, check: &Checker<'_>) -> Result<ComputeSpec, ScenarioError> {
    for speed in &raw.speeds {
        check.within("compute.speeds", *speed, (1e-3, 1e3))?;
    }
    check.within("compute.step_ms", raw.step_ms, (1e-3, SECONDS_MAX))?;
    let per_value = check.within("compute.mix_ns_per_value", raw.mix_ns_per_value, (0.0, 1e9))?;
    Ok(ComputeSpec {
        step: check.milliseconds("compute.step_ms", raw.step_ms)?,
        speeds: raw.speeds,
        spread: check.within("compute.spread", raw.spread, (0.0, 1e3))?,
        // Beyond 1 a machine would repeatedly be seven times slower.
        drift: check.within("compute.drift", raw.drift, (0.0, 1.0))?,
        drift_time: check.within("compute.drift_s", raw.drift_s, (1e-3, SECONDS_MAX))?,
        mix_seconds_per_value: per_value * 1e-9,
    })
}

/// Converts serde's message: adds the line and the most similar known key.
pub(crate) fn explain(error: &toml::de::Error, text: &str, file: &str) -> ScenarioError {
    let file = file.to_owned();
    let message = error.message().replace('\n', " ");
    let unknown = message
        .strip_prefix("unknown field `")
        .and_then(|rest| rest.split_once('`'));
    let before = |offset: usize| text.get(..offset).unwrap_or(text).lines().count().max(1);
    let line = error.span().map(|span| before(span.start + 1));
    let Some((key, known)) = unknown else {
        return ScenarioError::Syntax {
            file,
            line: line.unwrap_or(1),
            reason: message,
        };
    };
    let line = line.unwrap_or_else(|| {
        let holds = |line: &str| line.trim_start().starts_with(key);
        text.lines().position(holds).map_or(1, |index| index + 1)
    });
    // The names are between the quotes of "expected one of `a`, `b`".
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    ScenarioError::UnknownKey {
        file,
        line,
        key: key.to_owned(),
        hint: hint(key, &known),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "seed = 1\npeers = 4\nrounds = 3\n[task]\nkind = \"quadratic\"\ndim = 4\n";

    fn refusal(extra: &str) -> String {
        let text = format!("{GOOD}{extra}");
        parse(&text, "s.toml", "s")
            .expect_err("must be refused")
            .to_string()
    }

    #[test]
    fn defaults_are_valid() {
        let scenario = parse(GOOD, "s.toml", "s").expect("valid");
        assert_eq!((scenario.peers, scenario.evaluate_every), (4, 1));
        assert!(scenario.network.uplink.is_none() && scenario.faults.is_empty());
    }

    #[test]
    fn an_unknown_key_names_the_nearest_and_its_line() {
        for (text, start) in [
            (
                "[network]\nlatncy_ms = 3.0\n",
                "s.toml:8: unknown key `latncy_ms`; did you mean `latency_ms`?",
            ),
            (
                "nois = 3\n",
                "s.toml:7: unknown key `nois`; did you mean `noise`?",
            ),
            (
                "[[fault]]\nkind = \"crash\"\npear = 1\nat_s = 1.0\n",
                "s.toml:9: unknown key `pear`; did you mean `peer`?",
            ),
        ] {
            let message = refusal(text);
            assert!(message.starts_with(start), "{message}");
        }
    }

    /// Each error names the key and its line.
    fn all_refused(cases: &[(&str, &str)]) {
        for (extra, key) in cases {
            let message = refusal(extra);
            let place = message.split(&format!(": `{key}` ")).next();
            let line = place.and_then(|p| p.strip_prefix("s.toml:")?.parse().ok());
            assert!(line.is_some_and(|line: usize| line >= 7), "{message}");
            assert!(!message.contains('\n'));
        }
    }

    #[test]
    fn impossible_numbers_are_refused() {
        all_refused(&[
            ("[network]\nuplink_mbit = -1.0\n", "network.uplink_mbit"),
            ("[network]\nloss = 1.0\n", "network.loss"),
            ("[network]\nlatency_ms = nan\n", "network.latency_ms"),
            ("[network]\nbootstrap = 0\n", "network.bootstrap"),
            ("[network]\npacket_loss = 0.9\n", "network.packet_loss"),
            (
                "[[network.site]]\nname = \"a\"\nfirst = 1\nlast = 9\n",
                "network.site[0].last",
            ),
            (
                "[[network.site]]\nname = \"a\"\nfirst = 1\nlast = 0\n",
                "network.site[0].last",
            ),
            (
                "[[network.between]]\nsites = [\"a\", \"b\"]\nlatency_ms = 3.0\n",
                "network.between[0].sites",
            ),
            (
                "[[network.pair]]\npeers = [1, 1]\nlatency_ms = 3.0\n",
                "network.pair[0].peers",
            ),
            (
                "[[network.trace]]\npeer = 1\nat_s = [1.0, 2.0]\nuplink_mbit = [3.0]\n",
                "network.trace[0].uplink_mbit",
            ),
            (
                "[[network.trace]]\npeer = 1\nat_s = [1.0, -2.0]\n",
                "network.trace[0].at_s",
            ),
            ("[compute]\nspeeds = [1.0, 0.0]\n", "compute.speeds"),
            ("[compute]\ndrift = -0.1\n", "compute.drift"),
            ("[limits]\nevents = 0\n", "limits.events"),
            ("noise = -1.0\n", "task.noise"),
        ]);
    }

    #[test]
    fn impossible_faults_are_refused() {
        all_refused(&[
            (
                "[[fault]]\nkind = \"churn\"\npeer = 1\ndown_s = [3.0]\nup_s = [2.0]\n",
                "fault[0].down_s",
            ),
            (
                "[[fault]]\nkind = \"churn\"\npeer = 1\ndown_s = [3.0, 4.0]\n",
                "fault[0].up_s",
            ),
            (
                "[[fault]]\nkind = \"clock-skew\"\npeer = 1\nahead_s = -2.0\n",
                "fault[0].ahead_s",
            ),
            (
                "[[fault]]\nkind = \"byzantine\"\npeer = 1\nat_s = 2.0\nlasts_s = 1.0\n",
                "fault[0].lie",
            ),
            (
                "[[fault]]\nkind = \"crash\"\npeer = 9\nat_s = 1.0\n",
                "fault[0].peer",
            ),
            (
                "[[fault]]\nkind = \"crash\"\npeer = 1\nat_s = -1.0\n",
                "fault[0].at_s",
            ),
            ("[[fault]]\nkind = \"crash\"\npeer = 1\n", "fault[0].at_s"),
            ("[[fault]]\nkind = \"crash\"\nat_s = 1.0\n", "fault[0].peer"),
            (
                "[[fault]]\nkind = \"leave\"\npeer = 1\nat_s = 1.0\nfactor = 2.0\n",
                "fault[0].factor",
            ),
        ]);
    }

    #[test]
    fn broken_syntax_names_the_line() {
        assert!(refusal("[network\n").starts_with("s.toml:7: "));
        assert!(refusal("[network]\nloss = \"much\"\n").starts_with("s.toml:8: "));
    }
}
