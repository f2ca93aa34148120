//! Repeats the recording of a daemon's peer: passes the same inputs at the same times to a `Peer`,
//! without an Executor, and compares its outputs with the daemon's bit by bit.

use crate::trace::{Lines, of_input};
use murmurate_protocol::record::{Entry, RecordError, RecordHeader, RecordReader, Replay};
use murmurate_protocol::{Event, Output, SortedMap, Time, Topology, wire};
use murmurate_strategies::topology::TopologyKind;
use serde::Serialize;
use std::fmt;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Bytes to read from the file at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// Why a recording could not be repeated to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The file cannot be read.
    #[error("--replay: cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// The file is not a recording of this build, or is damaged.
    #[error("--replay: {}: {source}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: RecordError,
    },
    /// The trace cannot be written.
    #[error("--trace: cannot be written: {source}")]
    Trace {
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// The recording ends before its first input.
    #[error("--replay: {}: the record stops before its first input; there is nothing to repeat", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// The first difference from the recorded outputs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayDifference {
    /// Number of the input before it, from zero.
    pub input: u64,
    /// Name of that input.
    pub what: String,
    /// Time of that input, in seconds from the start.
    pub at_s: f64,
}

impl fmt::Display for ReplayDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the outputs differ from the record after input {} (`{}`, {:.6} s after the start)",
            self.input, self.what, self.at_s
        )
    }
}

/// The result of a replay.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReplayReport {
    /// The recorded peer, hexadecimal.
    pub peer: String,
    /// The plan's hash, hexadecimal.
    pub plan: String,
    /// Set if all outputs with a recorded mark were the same.
    pub equal: bool,
    /// `end` (the daemon left), `cut` (recording stopped) or `torn` (the daemon was killed).
    pub closed: String,
    /// Why recording stopped.
    pub cut_reason: Option<String>,
    /// Number of inputs.
    pub inputs: u64,
    /// Number of outputs.
    pub outputs: u64,
    /// Seconds from the first input to the last.
    pub virtual_s: f64,
    /// The peer's last round.
    pub round: u64,
    /// Hash of all outputs.
    pub digest: String,
    /// Inputs by name.
    pub inputs_by_name: SortedMap<String, u64>,
    /// Events of the peer, by name.
    pub events: SortedMap<String, u64>,
    /// The first difference from the recorded outputs.
    pub difference: Option<ReplayDifference>,
}

impl fmt::Display for ReplayReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "peer {}, plan {}", self.peer, self.plan)?;
        writeln!(
            f,
            "{} inputs, {} outputs, {:.3} virtual seconds, up to round {}",
            self.inputs, self.outputs, self.virtual_s, self.round
        )?;
        for (title, counts) in [("inputs", &self.inputs_by_name), ("events", &self.events)] {
            let words: Vec<String> = counts.iter().map(|(k, n)| format!("{k} {n}")).collect();
            writeln!(f, "{title}: {}", words.join(", "))?;
        }
        match (self.closed.as_str(), &self.cut_reason) {
            ("end", _) => writeln!(f, "the record is whole")?,
            ("cut", Some(reason)) => writeln!(f, "the record was given up: {reason}")?,
            _ => writeln!(f, "the record stops without an end: the daemon was killed")?,
        }
        match &self.difference {
            Some(difference) => writeln!(f, "{difference}"),
            None => writeln!(f, "outputs equal to the bit, hash {}", self.digest),
        }
    }
}

/// Repeats the recording in a file, if a binary of version `binary` wrote it. Writes a JSON line
/// for every input and output to `trace`.
///
/// # Errors
/// If the file cannot be read, is not such a recording, or the trace cannot be written. Differences
/// of outputs are in the report.
pub fn replay_file(
    path: &Path,
    binary: &str,
    trace: Option<Box<dyn Write + '_>>,
) -> Result<ReplayReport, ReplayError> {
    let mut lines = Lines::new(trace);
    let io = |source| ReplayError::Io {
        path: path.to_owned(),
        source,
    };
    let record = |source| ReplayError::Record {
        path: path.to_owned(),
        source,
    };
    let mut file = File::open(path).map_err(io)?;
    let mut reader = RecordReader::new(binary);
    let mut repeated: Option<Repeated> = None;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = file.read(&mut piece).map_err(io)?;
        if read == 0 {
            break;
        }
        reader.push(piece.get(..read).unwrap_or_default());
        while let Some(entry) = reader.entry().map_err(record)? {
            match (&mut repeated, entry) {
                (Some(repeated), entry) => repeated.take(entry, &mut lines),
                (slot, Entry::Header(header)) => {
                    *slot = Some(Repeated::new(*header).map_err(record)?);
                }
                // The reader returns the header first.
                (None, _) => {}
            }
        }
    }
    if let Some(source) = lines.end() {
        return Err(ReplayError::Trace { source });
    }
    let repeated = repeated.filter(|r| r.replay.inputs() > 0);
    repeated
        .map(Repeated::report)
        .ok_or_else(|| ReplayError::Empty {
            path: path.to_owned(),
        })
}

/// The state of a replay.
struct Repeated {
    replay: Replay,
    report: ReplayReport,
    first: Option<Time>,
    last: Time,
    /// The name of the last input.
    what: &'static str,
}

impl Repeated {
    fn new(header: RecordHeader) -> Result<Self, RecordError> {
        let report = ReplayReport {
            peer: header.config.me.to_hex(),
            plan: header.plan.hash().to_hex(),
            closed: "torn".to_owned(),
            ..ReplayReport::default()
        };
        let topology = topology(&header);
        Ok(Self {
            replay: Replay::new(header, topology)?,
            report,
            first: None,
            last: Time::ZERO,
            what: "start",
        })
    }

    fn take(&mut self, entry: Entry, lines: &mut Lines<'_>) {
        let before = self.replay.inputs();
        let name = match &entry {
            Entry::Input { at, input, .. } => {
                self.first = self.first.or(Some(*at));
                self.last = *at;
                if self.replay.difference().is_none() {
                    lines.input(*at, 0, input);
                }
                Some(of_input(input).0)
            }
            Entry::End { .. } => {
                self.report.closed = "end".to_owned();
                None
            }
            Entry::Cut { reason, .. } => {
                self.report.closed = "cut".to_owned();
                self.report.cut_reason = Some(reason.clone());
                None
            }
            Entry::Header(_) => None,
        };
        let (events, now) = (&mut self.report.events, self.last);
        self.replay.entry(entry, &mut |output| {
            lines.output(now, 0, output);
            if let Output::Emit(event) = output {
                *events.entry(event_name(event).to_owned()).or_default() += 1;
            }
        });
        // An input after the first difference is not counted.
        if let Some(name) = name.filter(|_| self.replay.inputs() > before) {
            self.what = name;
            *self
                .report
                .inputs_by_name
                .entry(name.to_owned())
                .or_default() += 1;
        }
    }

    fn report(self) -> ReplayReport {
        let first = self.first.unwrap_or(self.last);
        let outputs = self.replay.outputs();
        let difference = self.replay.difference().map(|found| ReplayDifference {
            input: found.input,
            what: self.what.to_owned(),
            at_s: found.at.since(first).as_secs_f64(),
        });
        ReplayReport {
            equal: difference.is_none(),
            inputs: self.replay.inputs(),
            outputs: outputs.count(),
            virtual_s: self.last.since(first).as_secs_f64(),
            round: self.replay.peer().round().0,
            digest: outputs.digest().to_hex(),
            difference,
            ..self.report
        }
    }
}

/// The topology in a header, with the peer's seed.
fn topology(header: &RecordHeader) -> Option<Box<dyn Topology>> {
    let kind: TopologyKind = wire::decode_value(header.topology.as_deref()?).ok()?;
    Some(kind.build(header.config.seed))
}

const fn event_name(event: &Event) -> &'static str {
    match event {
        Event::PeerUp(_) => "peer up",
        Event::PeerDown(_) => "peer down",
        Event::PeerLeft(_) => "peer left",
        Event::Suspected { .. } => "suspected",
        Event::Refused { .. } => "refused",
        Event::RefusedBy { .. } => "refused by",
        Event::Phase { .. } => "phase",
        Event::Trained { .. } => "trained",
        Event::Group { .. } => "group",
        Event::Seated { .. } => "seated",
        Event::Decided { .. } => "decided",
        Event::Voided { .. } => "voided",
        Event::Mixed { .. } => "mixed",
        Event::MassUncertain { .. } => "mass uncertain",
        Event::Alone { .. } => "alone",
        Event::RoundEnded { .. } => "round ended",
        Event::Evaluated { .. } => "evaluated",
        Event::Saved { .. } => "saved",
        Event::CatchUp { .. } => "catch-up",
        Event::Replayed { .. } => "replayed",
        Event::Waited { .. } => "waited",
        Event::Misbehaved { .. } => "misbehaved",
        Event::Lied { .. } => "lied",
        Event::Absent { .. } => "absent",
        Event::Malformed { .. } => "malformed",
        Event::WorkFailed { .. } => "work failed",
        Event::TrainerFailed { .. } => "trainer failed",
        Event::JoinFailed { .. } => "join failed",
        Event::ClockOff { .. } => "clock off",
        Event::Missing { .. } => "missing",
        Event::Unconfirmed { .. } => "unconfirmed",
        Event::BranchesMet { .. } => "branches met",
        Event::Merged { .. } => "merged",
        Event::NotMerged { .. } => "not merged",
        Event::BranchSaved { .. } => "branch saved",
        Event::Directed { .. } => "directed",
        Event::Rescheduled { .. } => "rescheduled",
        Event::Finished { .. } => "finished",
        Event::Paced { .. } => "paced",
        Event::Recoded { .. } => "recoded",
    }
}
