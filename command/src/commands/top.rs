//! `murmurate top`: a daemon and its swarm on the terminal.

use crate::cli::{DEFAULT_DIR, INTERVAL_MAX_S, INTERVAL_MIN_S, TopArgs};
use crate::exit::Ended;
use crate::out;
use murmurate_top::{Recording, Source, Still, Target};
use std::time::Duration;

/// Columns and rows of a frame that is printed where there is no terminal.
const FRAME: (u16, u16) = (80, 24);

pub(crate) fn run(args: &TopArgs) -> anyhow::Result<()> {
    if !(INTERVAL_MIN_S..=INTERVAL_MAX_S).contains(&args.interval) {
        let text = format!("--interval: give {INTERVAL_MIN_S} to {INTERVAL_MAX_S} seconds");
        return Err(Ended::usage(text));
    }
    let source = match args.replay.is_empty() {
        true => {
            let daemon = args.daemon.as_deref().unwrap_or(DEFAULT_DIR);
            Source::Live(daemon.parse::<Target>()?)
        }
        false => {
            let recording = Recording::read(&args.replay)?;
            if let Some(left_out) = recording.left_out() {
                out::tell(left_out);
            }
            Source::Recorded(recording)
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    if args.json {
        let still = runtime.block_on(Still::of(source))?;
        return out::line(serde_json::to_string(&still.picture)?);
    }
    match out::size().filter(|_| !args.once) {
        Some(_) => {
            let interval = Duration::from_secs_f64(args.interval);
            Ok(runtime.block_on(murmurate_top::run(source, interval))?)
        }
        None => {
            let still = runtime.block_on(Still::of(source))?;
            let size = out::size().filter(|(columns, rows)| *columns > 0 && *rows > 0);
            out::text(still.text(size.unwrap_or(FRAME)))
        }
    }
}
