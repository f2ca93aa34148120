//! `murmurate bench`: measures the daemon's parts.

use crate::cli::{
    Bench, BenchCodecsArgs, BenchExchangeArgs, BenchJoinArgs, BenchNetArgs, BenchPeerArgs,
};
use crate::out;
use anyhow::bail;
use murmurate_bench::codecs;
use murmurate_bench::exchange;
use murmurate_bench::join;
use murmurate_bench::net::{FarTask, Plan, Run, Tuning, Way};
use murmurate_node::config::{Config, Overrides};
use murmurate_node::local;
use std::net::SocketAddr;
use tokio::runtime;

pub(crate) fn run(what: Bench) -> anyhow::Result<()> {
    match what {
        Bench::Exchange(args) => averaging(args),
        Bench::Join(args) => join(&args),
        Bench::Codecs(args) => codecs(&args),
        Bench::Net(args) => net(args),
        Bench::NetEnd(args) => Ok(threads()?.block_on(murmurate_bench::net_end(&args.task))?),
        Bench::Peer(args) => peer(args),
    }
}

fn codecs(args: &BenchCodecsArgs) -> anyhow::Result<()> {
    let report = codecs::run_codecs(&args.options, |speed| {
        out::tell(format_args!("{} measured", speed.codec));
    })?;
    out::figures(args.json, &report, codecs::table)
}

fn averaging(BenchExchangeArgs { mut options, json }: BenchExchangeArgs) -> anyhow::Result<()> {
    if options.codec.is_none() && options.preset.is_none() {
        // The plain bits.
        options.codec = "f32".parse().ok();
    }
    let exchange = options.check()?;
    out::tell(format_args!(
        "averaging {} parameters between {} peers, {} rounds and one to warm up",
        options.params, options.nodes, options.rounds
    ));
    let report = alone()?.block_on(exchange::run_exchange(&options))?;
    out::figures(json, &report, exchange::table)?;
    if exchange.agrees() && !report.digests_equal {
        bail!("the peers did not end with the same bits");
    }
    Ok(())
}

fn join(args: &BenchJoinArgs) -> anyhow::Result<()> {
    let options = &args.options;
    options.check()?;
    out::tell(format_args!(
        "{} peers begin their rounds; then one more joins and takes over {} parameters",
        options.donors, options.params
    ));
    let report = alone()?.block_on(join::run_join(options))?;
    out::figures(args.json, &report, join::join_table)
}

/// A runtime with a single thread, the main one, because children end with the thread that started them.
fn alone() -> std::io::Result<runtime::Runtime> {
    runtime::Builder::new_current_thread().enable_all().build()
}

fn peer(args: BenchPeerArgs) -> anyhow::Result<()> {
    local::end_with_parent(args.parent)?;
    let config = Config::load(Some(&args.config), &Overrides::default())?;
    let times = exchange::run_peer(config, args.options)?;
    out::json(&times)
}

/// A runtime with several threads, as in the daemon.
fn threads() -> std::io::Result<runtime::Runtime> {
    runtime::Builder::new_multi_thread().enable_all().build()
}

fn net(args: BenchNetArgs) -> anyhow::Result<()> {
    let runtime = threads()?;
    if let Some(at) = args.listen {
        return listen(&runtime, at);
    }
    let plan = Plan {
        limit_s: args.limit,
        rounds: args.rounds,
        ways: match args.ways.as_slice() {
            [] => Way::ALL.to_vec(),
            some => some.to_vec(),
        },
        tuning: Tuning {
            congestion: Some(args.congestion.to_string()),
            connections: args.connections,
            streams: args.streams,
            ..Tuning::default()
        },
        link: args.link,
        join: args.join,
        ..Plan::new(args.bytes)
    };
    let report = runtime.block_on(murmurate_bench::run_net(&plan, tell))?;
    for warning in &report.warnings {
        out::tell(format_args!("warning: {warning}"));
    }
    out::figures(args.json, &report, murmurate_bench::net_table)?;
    if report.ways.iter().all(|way| way.transfers == 0) {
        bail!("no transfer completed");
    }
    Ok(())
}

/// Prints one line about a finished transfer.
fn tell(run: &Run) {
    match (&run.figures, &run.error) {
        (Some(figures), _) => out::tell(format_args!(
            "{} {}: {:.1} MB in {:.2} s",
            run.way,
            run.round + 1,
            figures.bytes as f64 / 1e6,
            figures.seconds
        )),
        (None, error) => out::tell(format_args!(
            "{} {}: {}",
            run.way,
            run.round + 1,
            error.as_deref().unwrap_or("nothing was measured")
        )),
    }
}

fn listen(runtime: &runtime::Runtime, at: SocketAddr) -> anyhow::Result<()> {
    let ready = |at: SocketAddr| {
        out::tell(format_args!(
            "listening; measure with: murmurate bench net --join {at} (its TCP port, and TCP and UDP of the {} after it)",
            FarTask::PORTS
        ));
    };
    let heard = |from: SocketAddr| out::tell(format_args!("{from} measures"));
    Ok(runtime.block_on(murmurate_bench::listen_net(at, ready, heard))?)
}
