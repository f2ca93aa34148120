//! `murmurate local`: runs a swarm on this machine.

use crate::exit::{Ended, Exit};
use crate::out;
use murmurate_node::local::{self, LocalOptions};
use std::time::Duration;

/// Time between two questions of a view to a daemon.
const ASK_EVERY: Duration = Duration::from_millis(500);

pub(crate) fn run(mut options: LocalOptions) -> anyhow::Result<()> {
    check(&options)?;
    let view = match (options.top, out::size()) {
        (true, Some(_)) => Some(murmurate_top::beside(ASK_EVERY)?),
        (true, None) => {
            out::tell("--top: stdout is no terminal, so there are lines");
            None
        }
        (false, _) => None,
    };
    let json = options.json;
    options.quiet = out::is_quiet();
    options.args = std::env::args().skip(1).collect();
    if let Some(islands) = options.islands {
        options.nodes = islands.peers;
    }
    if options.demo {
        options = local::demo(options);
    }
    // A single thread, the main one, because children end with the thread that started them.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let report = runtime.block_on(local::run(options, view))?;
    let printed = if json {
        out::json(&report)
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

/// Refuses flags that cannot be.
fn check(args: &LocalOptions) -> anyhow::Result<()> {
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
