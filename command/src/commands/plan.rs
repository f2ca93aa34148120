//! `murmurate plan`: predicts the cost of each preset on a cluster.

use crate::cli::{PlanArgs, PlannedTask};
use crate::out;
use murmurate_sim::plan::{Cluster, Learns, plan};

pub(crate) fn run(args: &PlanArgs) -> anyhow::Result<()> {
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
    let report = plan(&cluster, learns)?;
    match args.json {
        true => out::line(report.to_json()),
        false => out::folded(&report.to_string()),
    }
}
