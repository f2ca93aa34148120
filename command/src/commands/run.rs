//! `murmurate run`: runs one daemon.

use crate::cli::RunArgs;
use crate::commands::hide::hide;
use crate::commands::{environment, invite};
use crate::out;
use murmurate_node::config::{Config, Overrides};
use murmurate_node::daemon::{self, DaemonError, RunOptions};
use murmurate_node::local;
use murmurate_node::membership::invite_from;
use murmurate_node::progress::LogMode;

pub(crate) fn run(args: RunArgs) -> anyhow::Result<()> {
    hide(args.invite.as_deref());
    if let Some(parent) = args.parent {
        local::end_with_parent(parent)?;
    }
    let overrides = Overrides {
        // The daemons of `murmurate local` have a configuration each.
        environment: match args.parent {
            None => environment(),
            Some(_) => Vec::new(),
        },
        name: args.name,
        preset: args.preset,
        seed: args.seed,
        rounds: args.rounds,
        start_with: args.start_with,
        data: args.data,
        init: args.init,
        open: args.open,
        key: args.key,
        listen: args.listen,
        join: args.join,
        no_mdns: args.no_mdns,
        relay: args.relay,
        dir: args.dir,
        daemon_name: args.daemon_name,
        http: args.http,
        http_public: args.http_public,
        device: args.device,
        until_accuracy: args.until_accuracy,
        until_loss: args.until_loss,
        attached: args.trainer.is_some() || !args.command.is_empty(),
    };
    let config = Config::load(args.config.as_deref(), &overrides)?;
    if args.show_config {
        return out::text(config.effective);
    }
    // It lets one daemon in, so it is not for the daemons of `murmurate local`.
    let invite = match args.parent {
        None => invite(args.invite),
        Some(_) => args.invite,
    };
    let invite = invite.as_deref().map(invite_from).transpose();
    let invite = invite.map_err(DaemonError::from)?;
    daemon::run(
        config,
        RunOptions {
            // A program that asked for JSON lines gets them.
            log: match args.log {
                LogMode::Json => LogMode::Json,
                _ if out::is_quiet() => LogMode::Quiet,
                log => log,
            },
            faults: args.fault,
            lies: args.lie,
            splits: args.split,
            ephemeral: false,
            command: args.command,
            record: args.record,
            invite,
        },
    )?;
    Ok(())
}
