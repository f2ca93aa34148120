//! `murmurate run`: one daemon.

use crate::cli::RunArgs;
use murmurate_node::config::{Config, Overrides};
use murmurate_node::daemon::{self, RunOptions};
use murmurate_node::local;
use std::io::Write;

pub(crate) fn run(args: RunArgs) -> anyhow::Result<()> {
    if let Some(parent) = args.parent {
        local::end_with_parent(parent)?;
    }
    let overrides = Overrides {
        name: args.name,
        preset: args.preset,
        seed: args.seed,
        rounds: args.rounds,
        start_with: args.start_with,
        data: args.data,
        listen: args.listen,
        join: args.join,
        no_mdns: args.no_mdns,
        dir: args.dir,
        http: args.http,
        http_public: args.http_public,
        device: args.device,
    };
    let config = Config::load(args.config.as_deref(), &overrides)?;
    if args.show_config {
        write!(std::io::stdout().lock(), "{}", config.effective)?;
        return Ok(());
    }
    let options = RunOptions {
        log: args.log,
        faults: args.fault,
    };
    // The network and the driver need little; training has threads of its own.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(daemon::run(config, options))?;
    // A lane that is still busy must not hold up the exit.
    runtime.shutdown_background();
    Ok(())
}
