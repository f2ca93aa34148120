//! `murmurate sim`: runs a scenario in virtual time, with toy tasks or the daemon's own; `sim compare`, `sim
//! survey` and `plan` compare and predict.

use super::{bar, cannot_write, language, writable};
use crate::cli::{CompareArgs, PlanArgs, PlannedTask, SimArgs, SimCommand, SurveyArgs};
use crate::exit::Ended;
use crate::out;
use anyhow::{Context, bail, ensure};
use murmurate_node::daemon::BINARY;
use murmurate_sim::compare::{Comparison, run_comparison};
use murmurate_sim::plan::{self, Cluster, Learns, PrivacyCosts};
use murmurate_sim::seeds::run_seeds;
use murmurate_sim::{RunOptions, TrainerFactory, TrainerRequest, replay_file, run_file};
use murmurate_strategies::Trainer;
use murmurate_survey::{Constants, run_survey};
use murmurate_tasks::data::Shards;
use murmurate_tasks::{DeviceChoice, TaskConfig};
use std::io::{BufWriter, Write};
use std::path::Path;

pub(crate) fn run(args: &SimArgs) -> anyhow::Result<()> {
    match &args.what {
        Some(SimCommand::Survey(args)) => return survey(args),
        Some(SimCommand::Compare(args)) => return compare(args, &trainer),
        Some(SimCommand::Language(args)) => return language::run(args, &trainer),
        None => {}
    }
    if let Some(count) = args.seeds {
        return seeds(args.seed.unwrap_or(0), count);
    }
    match (&args.replay, &args.file) {
        (Some(record), _) => replay(record, args),
        (None, Some(scenario)) => simulate(scenario, args),
        (None, None) => Err(Ended::usage("give a scenario, or --replay a record")),
    }
}

/// Replays a record. Outputs that differ from the record are an error.
fn replay(record: &Path, args: &SimArgs) -> anyhow::Result<()> {
    let report = replay_file(record, BINARY, trace(args)?)?;
    out::report(args.json, &report)?;
    match &report.difference {
        None => Ok(()),
        Some(difference) => bail!("--replay: {}: {difference}", record.display()),
    }
}

/// The destination of the trace, if one was requested.
fn trace(args: &SimArgs) -> anyhow::Result<Option<Box<dyn Write>>> {
    let Some(path) = &args.trace else {
        return Ok(None);
    };
    let file = std::fs::File::create(path).with_context(|| cannot_write("--trace", path))?;
    Ok(Some(Box::new(BufWriter::new(file))))
}

fn simulate(scenario: &Path, args: &SimArgs) -> anyhow::Result<()> {
    let options = RunOptions {
        seed: args.seed,
        trace: trace(args)?,
    };
    let report = run_file(scenario, &trainer, options)?;
    out::report(args.json, &report)
}

/// Runs random scenarios until one fails. The error says how to repeat it.
fn seeds(first: u64, count: u64) -> anyhow::Result<()> {
    let Some(end) = first.checked_add(count).filter(|_| count > 0) else {
        bail!("--seeds: give 1 or more, and no more than there are from --seed on");
    };
    let (mut events, mut faults) = (0, 0);
    let held = run_seeds(first..end, &mut |_, report| {
        events += report.counters.events;
        faults += report.counters.faults.len();
    });
    if let Err(failure) = held {
        out::complain(&failure);
        anyhow::bail!(
            "seed {} does not hold (murmurate {}): `murmurate sim --seeds 1 --seed {}` repeats it",
            failure.seed,
            env!("CARGO_PKG_VERSION"),
            failure.seed
        );
    }
    out::line(format_args!(
        "{count} seeds, {first} and those after it: every invariant holds ({events} events, {faults} faults)"
    ))
}

/// Builds the trainer of a task that the simulator does not know. The scenario's `[task]` and
/// `[task.shards]` have the form of a daemon's configuration; index and count of the shards are set
/// here.
fn trainer(request: &TrainerRequest<'_>) -> Result<Box<dyn Trainer>, String> {
    let words = |e: toml::de::Error| e.message().to_owned();
    let mut table = request.options.clone();
    let mut shards = match table.remove("shards") {
        None => toml::Table::from_iter([("kind".to_owned(), "iid".into())]),
        Some(toml::Value::Table(shards)) => shards,
        Some(_) => return Err("`task.shards` must be a table".to_owned()),
    };
    if let Some(key) = ["index", "of"]
        .iter()
        .find(|key| shards.contains_key(**key))
    {
        let peers = request.peers;
        return Err(format!(
            "`task.shards.{key}`: {peers} peers get a shard each, which together are all the data; leave it out"
        ));
    }
    let number = |n: usize| toml::Value::Integer(i64::try_from(n).unwrap_or(i64::MAX));
    let kind = shards.get("kind").and_then(toml::Value::as_str);
    if !matches!(kind, Some("dealt" | "own")) {
        shards.insert("index".to_owned(), number(request.peer));
        shards.insert("of".to_owned(), number(request.peers));
    }
    shards.entry("seed").or_insert(toml::Value::Integer(
        i64::try_from(request.seed).unwrap_or(i64::MAX),
    ));
    table.insert("kind".to_owned(), request.kind.into());
    let task: TaskConfig = toml::Value::Table(table).try_into().map_err(words)?;
    let shards: Shards = toml::Value::Table(shards).try_into().map_err(words)?;
    let device = DeviceChoice::Flex;
    murmurate_tasks::build(&task, request.inner, &device, request.seed, &shards)
        .map_err(|e| e.to_string())
}

/// The commit of this build, if the build was told.
const COMMIT: Option<&str> = option_env!("MURMURATE_COMMIT");

pub(crate) fn compare(args: &CompareArgs, factory: &dyn TrainerFactory) -> anyhow::Result<()> {
    let comparison = chosen(args)?;
    if let Some(path) = &args.html {
        writable("--html", path)?;
    }
    let bar = bar(0, "{pos}/{len} {eta} left: {msg}")?;
    let mut progress = |done: usize, all: usize, what: &str| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
        bar.set_message(what.to_owned());
    };
    let report = run_comparison(&comparison, factory, &mut progress)?;
    bar.finish_and_clear();
    if let Some(path) = &args.html {
        let commit = COMMIT.unwrap_or("unknown (MURMURATE_COMMIT was not set for the build)");
        let page = report.to_html(&format!("{BINARY}, commit {commit}"));
        std::fs::write(path, page).with_context(|| cannot_write("--html", path))?;
    }
    out::report(args.json, &report)
}

/// The comparison without what the flags exclude.
fn chosen(args: &CompareArgs) -> anyhow::Result<Comparison> {
    let mut comparison = Comparison::from_file(&args.file)?;
    for preset in &args.presets {
        murmurate_strategies::grid::Strategy::preset(preset).context("--presets")?;
    }
    if !args.presets.is_empty() {
        comparison.presets.clone_from(&args.presets);
    }
    if !args.peers.is_empty() {
        comparison.peers.clone_from(&args.peers);
    }
    if !args.seeds.is_empty() {
        comparison.seeds.clone_from(&args.seeds);
    }
    if let Some(part) = &args.task {
        comparison.task.retain(|task| task.name.contains(part));
        if comparison.task.is_empty() {
            bail!(
                "--task: no task of {} has `{part}` in its name",
                args.file.display()
            );
        }
    }
    Ok(comparison)
}

pub(crate) fn survey(args: &SurveyArgs) -> anyhow::Result<()> {
    let file = args.constants.as_deref();
    let constants = file.map_or_else(Constants::shipped, Constants::from_file)?;
    let report = run_survey(&args.measured, &constants)?;
    out::report(args.json, &report)
}

pub(crate) fn plan(args: &PlanArgs) -> anyhow::Result<()> {
    let cluster = Cluster::new(
        args.params,
        args.step_ms,
        &args.link,
        args.peers,
        args.target,
    )?;
    let learns = match args.task {
        Some(PlannedTask::LanguageModel | PlannedTask::CausalLm) => Learns::Language,
        Some(PlannedTask::Other) | None => Learns::Anything,
    };
    let mut report = plan::plan(&cluster, learns)?;
    if let Some(epsilon) = args.privacy {
        ensure!(
            epsilon > 0.0 && epsilon.is_finite(),
            "--privacy: give an epsilon above zero, such as 8"
        );
        report.privacy = Some(PrivacyCosts::new(&cluster, epsilon));
    }
    if args.json {
        out::json(&report)
    } else {
        out::folded(&report.to_string())
    }
}
