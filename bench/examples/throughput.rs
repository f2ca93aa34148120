//! Sends the same bytes between two processes in several ways. Settings of our endpoint can be
//! varied.
//!
//! ```text
//! cargo run --release -p murmurate-bench --example throughput [-- [--mb N] [--rounds N] [--limit SECONDS]
//!     [--ways quinn,bulk,...] [--link RATE/RTT/LOSS] [--congestion bbr3|cubic]
//!     [--cipher aes|chacha] [--ack N] [--payload BYTES] [--windows MIB] [--connections N]
//!     [--streams N]]
//! ```
//!
//! `murmurate bench net` is the same as a command of its own, with a table or JSON as its output.
//! `bench/src/net` documents the measurement. Absolute times on a shared machine mean little, so
//! the program also prints ratios.

use murmurate_bench::net::{NetReport, Plan, Session, Task, Way, perform};
use std::error::Error;
use tokio::process::Command;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// The argument with which the ends are started, before their task.
const END: &str = "--end";

fn plan(mut rest: impl Iterator<Item = String>) -> Outcome<Plan> {
    let mut plan = Plan::new(400_000_000);
    plan.rounds = 5;
    plan.ways = vec![Way::Quinn, Way::Bulk, Way::Control];
    while let Some(name) = rest.next() {
        let value = rest.next().ok_or("an option needs a value")?;
        let tuning = &mut plan.tuning;
        match name.as_str() {
            "--mb" => plan.bytes = value.parse::<u64>()? * 1_000_000,
            "--rounds" => plan.rounds = value.parse()?,
            "--limit" => plan.limit_s = value.parse()?,
            "--ways" => plan.ways = value.split(',').map(str::parse).collect::<Result<_, _>>()?,
            "--link" => plan.link = Some(value.parse()?),
            "--congestion" => tuning.congestion = Some(value),
            "--cipher" => tuning.cipher = Some(value),
            "--ack" => tuning.ack_every = Some(value.parse()?),
            "--payload" => tuning.payload_max = Some(value.parse()?),
            "--connections" => tuning.connections = Some(value.parse()?),
            "--streams" => tuning.streams = Some(value.parse()?),
            "--windows" => tuning.window_mib = Some(value.parse()?),
            _ => return Err(format!("unknown option {name}").into()),
        }
    }
    Ok(plan)
}

fn print(report: &NetReport) {
    println!(
        "{} MB, {} rounds, {}, {}: medians, and the best rounds beside quinn's",
        report.bytes / 1_000_000,
        report.rounds,
        report.congestion,
        report.cipher
    );
    println!(
        "{:12} {:>8} {:>6} {:>9} {:>9} {:>11} {:>11} {:>7} {:>9} {:>10}",
        "way",
        "Mbit/s",
        "CPU/GB",
        "x quinn",
        "x CPU",
        "best x",
        "best CPU x",
        "lost",
        "RTT ms",
        "loaded p99"
    );
    let ratio = |value: Option<f64>| value.map_or_else(|| "-".into(), |v| format!("{v:.2}"));
    for way in &report.ways {
        println!(
            "{:12} {:8.1} {:6.2} {:>9} {:>9} {:>11} {:>11} {:>7} {:>9} {:>10}",
            way.way,
            way.goodput_mbit_s,
            way.cpu_s_per_gb,
            ratio(way.speed_to_quinn),
            ratio(way.cpu_to_quinn),
            ratio(way.best_speed_to_quinn),
            ratio(way.best_cpu_to_quinn),
            way.retransmitted_share
                .map_or_else(|| "-".into(), |s| format!("{:.2} %", s * 100.0)),
            ratio(way.rtt_idle_ms),
            ratio(way.rtt_loaded_p99_ms)
        );
        if let Some(error) = &way.error {
            println!("  {error}");
        }
    }
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let mut given = std::env::args().skip(1).peekable();
    if given.next_if_eq(END).is_some() {
        let task: Task = serde_json::from_str(&given.next().ok_or("an end needs its task")?)?;
        return Ok(perform(task).await?);
    }
    let plan = plan(given)?;
    let program = std::env::current_exe()?;
    let start = |task: &str| {
        let mut command = Command::new(&program);
        command.args([END, task]);
        command
    };
    let report = Session::run(&plan, &start, |_| {}).await?;
    report
        .warnings
        .iter()
        .for_each(|warning| println!("{warning}"));
    print(&report);
    Ok(())
}
