//! The log as a trace for Chrome's `about:tracing` and for Perfetto: a row for each daemon, a bar for
//! each phase, a mark for everything else.

use super::entry::{Entry, Kind};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Microseconds of a second: the format's unit.
const MICROS: f64 = 1e6;

/// The trace of these entries, oldest first.
pub fn chrome_trace(entries: &[Entry]) -> Value {
    let start = entries
        .iter()
        .map(|entry| entry.time)
        .fold(f64::INFINITY, f64::min);
    let mut rows: BTreeMap<&str, (usize, Option<&Entry>)> = BTreeMap::new();
    let mut events = Vec::new();
    for entry in entries {
        let number = rows.len() + 1;
        let (row, open) = rows.entry(&entry.daemon).or_insert_with(|| {
            let short: String = entry.daemon.chars().take(8).collect();
            events.push(json!({
                "ph": "M", "name": "process_name", "pid": number, "tid": 0,
                "args": {"name": format!("daemon {short}")},
            }));
            (number, None)
        });
        let at = (entry.time - start) * MICROS;
        if let Kind::Phase { .. } = &entry.kind {
            if let Some(began) = open.replace(entry)
                && let Kind::Phase { phase } = &began.kind
            {
                let ts = (began.time - start) * MICROS;
                events.push(json!({
                    "ph": "X", "name": phase, "cat": "phase", "pid": *row, "tid": 0,
                    "ts": ts, "dur": (at - ts).max(0.0), "args": {"round": began.round},
                }));
            }
        } else {
            events.push(json!({
                "ph": "i", "s": "t", "name": entry.kind.name(), "cat": "event", "pid": *row,
                "tid": 0, "ts": at, "args": serde_json::to_value(entry).unwrap_or_default(),
            }));
        }
    }
    json!({"traceEvents": events, "displayTimeUnit": "ms"})
}
