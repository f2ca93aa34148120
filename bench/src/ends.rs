//! `murmurate bench net`: throughput and cost of the bulk plane compared with alternatives.
//!
//! [`crate::net`] measures. This file starts its processes, which run this program, and prints its
//! table.

use crate::BenchError;
use crate::net::{Far, FarTask, NetReport, Plan, Run, Session, Task, Tuning, perform};
use comfy_table::{Table, presets::UTF8_FULL_CONDENSED};
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::process::Command;

/// Runs the measurements of a plan. Calls `heard` after each transfer.
///
/// # Errors
/// If the plan is invalid, or an end cannot be started. A failed transfer is part of the report.
pub async fn run_net(plan: &Plan, heard: impl FnMut(&Run)) -> Result<NetReport, BenchError> {
    let program = std::env::current_exe().map_err(|e| BenchError::Start {
        peer: 0,
        reason: e.to_string(),
    })?;
    let start = |task: &str| {
        let mut command = Command::new(&program);
        command.args(["bench", "net-end", "--task", task]);
        command
    };
    Session::run(plan, &start, heard).await
}

/// Performs the task of a process that [`run_net`] started.
///
/// # Errors
/// If the task cannot be parsed or performed.
pub async fn net_end(task: &str) -> Result<(), BenchError> {
    let task: Task = serde_json::from_str(task).map_err(|error| BenchError::Flag {
        flag: "--task",
        message: format!("{error}; `bench net` starts this process itself"),
    })?;
    perform(task).await
}

/// Runs the far end for `bench net --join` on other machines, until it is interrupted. Calls
/// `ready` with its address and `heard` with the address of each client.
///
/// # Errors
/// If a port is taken.
pub async fn listen_net(
    at: SocketAddr,
    ready: impl FnOnce(SocketAddr),
    heard: impl FnMut(SocketAddr),
) -> Result<(), BenchError> {
    let cannot = |source| BenchError::Listen {
        address: at,
        source,
    };
    let listener = TcpListener::bind(at).await.map_err(cannot)?;
    let local = listener.local_addr().map_err(cannot)?;
    // If the system chose the port, ports of other processes may follow it.
    let port = match at.port() {
        0 => 0,
        port => port.checked_add(1).ok_or_else(|| BenchError::Flag {
            flag: "--listen",
            message: format!("give a port below {}", u16::MAX - FarTask::PORTS),
        })?,
    };
    let task = FarTask {
        ip: at.ip(),
        port,
        tuning: Tuning::default(),
    };
    let far = Far::start(&task).await?;
    ready(local);
    far.say_hello(listener, heard).await;
    Ok(())
}

/// Parses a number of bytes: `400MB`, `1.5GB`, `64MiB`, or without a unit.
///
/// # Errors
/// The accepted forms.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 8] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("B", 1),
    ];
    let of_unit = |(unit, size): &(&str, u64)| Some((text.strip_suffix(unit)?, *size));
    let (number, size) = UNITS.iter().find_map(of_unit).unwrap_or((text, 1));
    let bytes = number.trim().parse::<f64>().map(|n| n * size as f64);
    match bytes {
        Ok(bytes) if (1.0..=1e15).contains(&bytes) => Ok(bytes.round() as u64),
        _ => Err(format!(
            "{text:?} is no count of bytes; write 400MB, 1.5GB or 64MiB"
        )),
    }
}

/// The report as a table for people.
pub fn net_table(report: &NetReport) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    table.set_header([
        "way",
        "Mbit/s",
        "best",
        "/ quinn",
        "CPU s/GB",
        "near + far",
        "/ quinn",
        "RTT idle ms",
        "loaded",
        "p99",
        "resent",
        "dropped",
        "transfers",
    ]);
    let ratio = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.2}"));
    let share = |value: Option<f64>| {
        value.map_or_else(|| "-".to_owned(), |v| format!("{:.2} %", v * 100.0))
    };
    for way in &report.ways {
        let transfers = match (way.cut, &way.error) {
            (_, Some(error)) => format!("{}, then: {error}", way.transfers),
            (0, None) => way.transfers.to_string(),
            (cut, None) => format!("{}, {cut} cut", way.transfers),
        };
        table.add_row([
            way.way.clone(),
            format!("{:.1}", way.goodput_mbit_s),
            format!("{:.1}", way.goodput_best_mbit_s),
            ratio(way.speed_to_quinn),
            format!("{:.2}", way.cpu_s_per_gb),
            format!("{:.2} + {:.2}", way.near_cpu_s_per_gb, way.far_cpu_s_per_gb),
            ratio(way.cpu_to_quinn),
            ratio(way.rtt_idle_ms),
            ratio(way.rtt_loaded_ms),
            ratio(way.rtt_loaded_p99_ms),
            share(way.retransmitted_share),
            share(way.link_dropped_share),
            transfers,
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{Figures, Way, WayReport};

    #[test]
    fn bytes_have_units_or_none() {
        assert_eq!(parse_bytes("400MB"), Ok(400_000_000));
        assert_eq!(parse_bytes("1.5 GB"), Ok(1_500_000_000));
        assert_eq!(parse_bytes("64MiB"), Ok(64 << 20));
        assert_eq!(parse_bytes("17"), Ok(17));
        for wrong in ["", "0", "-1MB", "NaN", "inf", "4 lots"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_failed_way_says_why_in_its_row() {
        let figures = Figures {
            bytes: 1_000_000,
            seconds: 1.0,
            ..Figures::default()
        };
        let run = |figures, error| Run {
            way: Way::Bulk,
            round: 0,
            figures,
            error,
            link_offered_bytes: None,
            link_dropped_bytes: None,
        };
        let runs = [
            run(Some(figures), None),
            run(None, Some("the path is blocked".to_owned())),
        ];
        let report = NetReport {
            version: String::new(),
            bytes: 2_000_000,
            limit_s: 60,
            rounds: 2,
            link: None,
            joined: None,
            congestion: "bbr3".to_owned(),
            cipher: String::new(),
            warnings: Vec::new(),
            ways: vec![WayReport::new(Way::Bulk, 2_000_000, &runs)],
            runs: runs.to_vec(),
        };
        let text = net_table(&report).to_string();
        assert!(text.contains("1, then: the path is blocked"), "{text}");
        assert!(text.contains("8.0"), "{text}");
        let json = serde_json::to_value(&report).unwrap();
        for field in [
            "goodput_mbit_s",
            "retransmitted_share",
            "cpu_s_per_gb",
            "rtt_idle_ms",
            "rtt_loaded_p99_ms",
        ] {
            assert!(json["ways"][0].get(field).is_some(), "{field}");
        }
    }
}
