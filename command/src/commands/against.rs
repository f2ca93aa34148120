//! `eval --against local`: the model of the swarm beside one that this daemon's data alone makes.

use crate::cli::EvalArgs;
use crate::commands::bar;
use crate::out;
use anyhow::bail;
use comfy_table::{Table, presets};
use indicatif::ProgressBar;
use murmurate_node::config::Config;
use murmurate_node::store::Manifest;
use murmurate_protocol::{Evaluation, InnerStep};
use murmurate_strategies::inner::{Rate, StepRule, fits};
use murmurate_strategies::{Layout, Proceed, StepControl};
use murmurate_tasks::data::ShardKind;
use serde::Serialize;
use std::ops::Range;
use std::sync::Arc;

/// Two models on the same held-out data.
#[derive(Serialize)]
struct Beside {
    /// The swarm's, with what this daemon keeps for itself.
    swarm: Evaluation,
    /// One that was trained here alone.
    local: Evaluation,
    /// Rounds behind the swarm's model.
    round: u64,
    /// Inner steps that this daemon took for it, which are those of the other model.
    inner_steps: u64,
    /// The swarm's is the better one: by accuracy, and by loss where that is the same, or there is none.
    swarm_helps: bool,
}

/// Trains the model on this daemon's data alone, for as many inner steps as it took in the swarm, and shows both.
pub(super) fn local(
    args: &EvalArgs,
    config: &Config,
    manifest: &Manifest,
    swarm: Evaluation,
) -> anyhow::Result<()> {
    if config.shards.kind == ShardKind::Dealt {
        bail!(
            "--against: with `shards.kind = \"dealt\"` all daemons share one data set, and this one has none of its own"
        );
    }
    let inner_steps = manifest.progress.inner_steps;
    if inner_steps == 0 {
        bail!("--against: this daemon has taken no inner step yet");
    }
    let mut trainer = murmurate_tasks::build(
        &config.task,
        config.strategy.inner_kind(),
        &config.daemon.device,
        config.run.seed,
        &config.shards,
    )?;
    let bar = bar(inner_steps, "alone: {pos}/{len} inner steps, {eta} left")?;
    let mut alone = Alone {
        steps: inner_steps,
        rate: config.strategy.learning_rate(config.run.rounds)?,
        of_round: inner_steps as f64 / manifest.round.max(1) as f64,
        undecayed: undecayed(config, trainer.layout()),
        bar: &bar,
    };
    trainer.steps(&mut alone)?;
    bar.finish_and_clear();
    let local = trainer.evaluate()?;
    let beside = Beside {
        swarm,
        local,
        round: manifest.round,
        inner_steps,
        swarm_helps: is_better(&swarm, &local),
    };
    out::figures(args.json, &beside, table)?;
    if args.json {
        return Ok(());
    }
    let better = match beside.swarm_helps {
        true => "The swarm helps: its model is better on this daemon's held-out data.",
        false => "The swarm does not help here: the model that was trained alone is better.",
    };
    out::line(better)
}

/// Places of the tensors without weight decay.
fn undecayed(config: &Config, layout: &Layout) -> Arc<[Range<usize>]> {
    let patterns = config.strategy.no_decay();
    let tensors = layout.tensors().iter();
    let undecayed = tensors.filter(|tensor| patterns.iter().any(|it| fits(it, &tensor.name)));
    undecayed.map(|tensor| tensor.range()).collect()
}

fn is_better(one: &Evaluation, other: &Evaluation) -> bool {
    match (one.accuracy, other.accuracy) {
        (Some(found), Some(alone)) if found != alone => found > alone,
        _ => one.loss < other.loss,
    }
}

fn table(beside: &Beside) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["model", "accuracy", "loss"]);
    let swarm = format!("the swarm's, of round {}", beside.round);
    let local = format!("this daemon's alone, {} inner steps", beside.inner_steps);
    for (name, of) in [(swarm, beside.swarm), (local, beside.local)] {
        let accuracy = of.accuracy.map_or("-".to_owned(), |it| format!("{it:.4}"));
        table.add_row([name, accuracy, format!("{:.4}", of.loss)]);
    }
    table
}

/// Training without a swarm, at the learning rates of the swarm's rounds.
struct Alone<'a> {
    steps: u64,
    rate: Rate,
    /// Inner steps in a round of the swarm.
    of_round: f64,
    undecayed: Arc<[Range<usize>]>,
    bar: &'a ProgressBar,
}

impl StepControl for Alone<'_> {
    fn before(&mut self, step: InnerStep) -> Proceed {
        match step.0 < self.steps {
            true => Proceed::Go,
            false => Proceed::Stop,
        }
    }

    fn after(&mut self, _: InnerStep, _: u64) {
        self.bar.inc(1);
    }

    fn corrects(&self) -> bool {
        false
    }

    fn rule(&self, step: InnerStep) -> StepRule {
        StepRule {
            rate: self.rate.at((step.0 as f64 + 0.5) / self.of_round),
            undecayed: Arc::clone(&self.undecayed),
        }
    }
}
