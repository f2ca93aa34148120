//! `murmurate plan`: predicts the cost of each preset on a cluster.

use crate::cli::PlanArgs;
use crate::out;
use murmurate_sim::plan::{Cluster, plan};

pub(crate) fn run(args: &PlanArgs) -> anyhow::Result<()> {
    let cluster = Cluster::new(
        args.params,
        args.step_ms,
        &args.link,
        args.peers,
        args.target,
    )?;
    let report = plan(&cluster)?;
    match args.json {
        true => out::line(report.to_json()),
        false => out::folded(&report.to_string()),
    }
}
