//! The log as a trace for Chrome's `about:tracing` and for Perfetto: a process for each daemon, with a track
//! of its rounds, one of their phases, one of its waits and one of everything else. An arrow leads from each
//! training to the decisions that it is in.

use super::entry::{Entry, Kind};
use super::words::Names;
use murmurate_protocol::SortedMap;
use serde_json::{Value, json};

/// Microseconds of a second: the format's unit.
const MICROS: f64 = 1e6;

/// The tracks of a daemon.
const TRACKS: [&str; 4] = ["rounds", "phases", "waits", "events"];
const ROUNDS: usize = 0;
const PHASES: usize = 1;
const WAITS: usize = 2;
const EVENTS: usize = 3;

/// The trace of these entries, oldest first.
pub fn chrome_trace(entries: &[Entry]) -> Value {
    let times = entries.iter().map(|entry| entry.time);
    let mut trace = Trace {
        start: times.fold(f64::INFINITY, f64::min),
        names: Names::of(entries),
        ..Trace::default()
    };
    entries.iter().for_each(|entry| trace.take(entry));
    json!({"traceEvents": trace.events, "displayTimeUnit": "ms"})
}

/// A daemon of the trace.
#[derive(Clone, Copy, Debug)]
struct Row<'a> {
    pid: usize,
    /// The phase that is open.
    phase: Option<&'a Entry>,
}

#[derive(Debug, Default)]
struct Trace<'a> {
    start: f64,
    names: Names,
    rows: SortedMap<&'a str, Row<'a>>,
    /// When each daemon had trained a round, in the trace's time.
    trained: SortedMap<(&'a str, u64), f64>,
    arrows: u64,
    events: Vec<Value>,
}

impl<'a> Trace<'a> {
    fn take(&mut self, entry: &'a Entry) {
        let pid = self.row(&entry.daemon).pid;
        let at = (entry.time - self.start) * MICROS;
        match &entry.kind {
            Kind::Phase { .. } => self.phase(entry, at),
            Kind::RoundEnded { seconds, .. } => {
                let name = format!("round {}", entry.round);
                self.bar(pid, ROUNDS, &name, at, *seconds, entry);
            }
            Kind::Waited { what, waited_s, .. } => {
                self.bar(pid, WAITS, what, at, *waited_s, entry);
            }
            kind => {
                if let Kind::Trained { .. } = kind {
                    self.trained.insert((&entry.daemon, entry.round), at);
                }
                if let Kind::Decided { contributors, .. } = kind {
                    self.arrows(entry, contributors, pid, at);
                }
                self.events.push(json!({
                    "ph": "i", "s": "t", "name": kind.name(), "cat": "event", "pid": pid, "tid": EVENTS,
                    "ts": at, "args": serde_json::to_value(entry).unwrap_or_default(),
                }));
            }
        }
    }

    /// The row of a daemon, which is named when it is met first.
    fn row(&mut self, daemon: &'a str) -> &mut Row<'a> {
        let pid = self.rows.len() + 1;
        if !self.rows.contains_key(daemon) {
            let name = self.names.call(daemon);
            let named = |what: &str, tid: usize, name: &str| json!({"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}});
            self.events.push(named("process_name", 0, &name));
            for (tid, track) in TRACKS.iter().enumerate() {
                self.events.push(named("thread_name", tid, track));
            }
        }
        self.rows.entry(daemon).or_insert(Row { pid, phase: None })
    }

    /// A phase begins, and the one before it ends.
    fn phase(&mut self, entry: &'a Entry, at: f64) {
        let row = self.row(&entry.daemon);
        let pid = row.pid;
        if let Some(began) = row.phase.replace(entry)
            && let Kind::Phase { phase } = &began.kind
        {
            self.bar(pid, PHASES, phase, at, entry.time - began.time, began);
        }
    }

    /// A bar of a track, which ends at `end` and lasts `seconds`.
    fn bar(&mut self, pid: usize, tid: usize, name: &str, end: f64, seconds: f64, of: &Entry) {
        let dur = (seconds * MICROS).max(0.0);
        self.events.push(json!({
            "ph": "X", "name": name, "cat": TRACKS[tid], "pid": pid, "tid": tid,
            "ts": end - dur, "dur": dur, "args": {"round": of.round},
        }));
    }

    /// An arrow from the training of each contributor whose log is here to a decision.
    fn arrows(&mut self, entry: &Entry, contributors: &'a [String], pid: usize, at: f64) {
        for peer in contributors.iter().filter(|peer| **peer != entry.daemon) {
            let from = self.rows.get(peer.as_str()).map(|row| row.pid);
            let trained = self.trained.get(&(peer.as_str(), entry.round));
            let Some((from, trained)) = from.zip(trained.copied()) else {
                continue;
            };
            self.arrows += 1;
            let end = |ph: &str, pid: usize, ts: f64| {
                json!({
                    "ph": ph, "bp": "e", "id": self.arrows, "name": "contribution", "cat": "contribution",
                    "pid": pid, "tid": PHASES, "ts": ts,
                })
            };
            let both = [end("s", from, trained), end("f", pid, at)];
            self.events.extend(both);
        }
    }
}
