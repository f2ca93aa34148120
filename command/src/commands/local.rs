//! `murmurate local`: runs a swarm on this machine.

use crate::cli::LocalArgs;
use crate::exit::{Ended, Exit};
use crate::out;
use murmurate_node::local::{self, LocalOptions};
use std::time::Duration;

/// Time between two questions of a view to a daemon.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// Seconds of the training for comparison, unless the user says so.
const BASELINE_S: f64 = 2.0;

pub(crate) fn run(args: LocalArgs) -> anyhow::Result<()> {
    check(&args)?;
    let view = match (args.top, out::size()) {
        (true, Some(_)) => Some(murmurate_top::beside(ASK_EVERY)?),
        (true, None) => {
            out::tell("--top: stdout is no terminal, so there are lines");
            None
        }
        (false, _) => None,
    };
    let (demo, json) = (args.demo, args.json);
    let options = options(args);
    let options = if demo { local::demo(options) } else { options };
    // A single thread, the main one, because children end with the thread that started them.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let report = runtime.block_on(local::run(options, view))?;
    let printed = if json {
        out::line(serde_json::to_string(&report)?)
    } else {
        out::table(&local::table(&report)).and_then(|()| {
            let notes = local::notes(&report);
            notes.iter().try_for_each(out::line)
        })
    };
    // How the run ended matters more than who reads about it.
    match report.missed() {
        Some(line) => Err(Ended::new(Exit::Missed, line).into()),
        None if report.interrupted => {
            let line = "interrupted; the results are those up to this point";
            Err(Ended::new(Exit::Interrupted, line).into())
        }
        None => printed,
    }
}

fn options(args: LocalArgs) -> LocalOptions {
    LocalOptions {
        quiet: out::is_quiet(),
        nodes: args.islands.map_or(args.nodes, |islands| islands.peers),
        ranks: args.islands.map(|islands| islands.ranks),
        preset: args.preset,
        config: args.config,
        rounds: args.rounds,
        until_accuracy: args.until_accuracy,
        until_loss: args.until_loss,
        shards: args.shards,
        seed: args.seed,
        data: args.data,
        init: args.init,
        device: args.device,
        dir: args.dir,
        kills: args.kill,
        kill_every: args.kill_every,
        stops: args.stop,
        lates: args.late,
        liars: args.liar,
        partition: args.partition,
        heal: args.heal,
        cuts: args.cut,
        link: args.link,
        nat: args.nat,
        stranger: args.stranger,
        record: args.record,
        baseline_s: args.baseline.unwrap_or(if args.command.is_empty() {
            BASELINE_S
        } else {
            // It would write its results again.
            0.0
        }),
        open_browser: args.open_browser,
        narrated: false,
        round_time_s: None,
        command: args.command,
        args: std::env::args().skip(1).collect(),
    }
}

/// Refuses flags that cannot be.
fn check(args: &LocalArgs) -> anyhow::Result<()> {
    if !(0.0..=3600.0).contains(&args.baseline.unwrap_or_default()) {
        return Err(Ended::usage("--baseline: give 0 to 3600 seconds"));
    }
    let least = local::DEMO_ROUNDS_MIN;
    if let (true, Some(rounds)) = (args.demo, args.rounds.filter(|rounds| *rounds < least)) {
        let text =
            format!("--demo: {rounds} rounds are too few for its story; give at least {least}");
        return Err(Ended::usage(text));
    }
    Ok(())
}
