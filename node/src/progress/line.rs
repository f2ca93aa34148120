//! A line of JSON that a daemon prints for a program, whose field `event` names its kind, and numbers for people.

use crate::api::{EvaluationStatus, Status, TransferStatus};
use crate::faults::Fault;
use crate::goal::Target;
use crate::report::NodeReport;
use serde::{Deserialize, Serialize};

/// A line for a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Line {
    /// Others can join the daemon now.
    Listening {
        /// Its id, hexadecimal.
        peer: String,
        /// Its addresses.
        addresses: Vec<String>,
        /// Address of the HTTP server, if there is one.
        http: Option<String>,
    },
    /// Progress of the daemon.
    Progress(Progress),
    /// A requested fault is about to occur.
    Fault {
        /// The fault as it was requested.
        fault: Fault,
        /// The round in which it occurs.
        round: u64,
    },
    /// The daemon is cut off from others on request, or no longer.
    Split {
        /// Its round.
        round: u64,
        /// Number of daemons out of reach; zero at the end of the split.
        away: usize,
    },
    /// The sides of a swarm that was split are one again.
    Merged {
        /// The round that merged them.
        round: u64,
        /// Digest of the merged parameters, hexadecimal.
        digest: String,
        /// The sides, each with its members in the merge and its weight; this daemon's first.
        sides: Vec<(u16, f64)>,
    },
    /// A message.
    Note {
        /// The message's text.
        text: String,
    },
    /// The final report.
    Report(Box<NodeReport>),
}

/// The progress of a daemon.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The current round.
    pub round: u64,
    /// Number of rounds; zero means until told to stop.
    pub rounds: u64,
    /// The phase of the round.
    pub phase: String,
    /// Inner steps so far.
    pub inner_steps: u64,
    /// Inner steps per second over the last rounds.
    pub inner_steps_per_s: f64,
    /// Mean training loss of the last round.
    pub loss: Option<f64>,
    /// The last evaluation on held-out data.
    pub evaluation: Option<EvaluationStatus>,
    /// Bytes sent on the network.
    pub bytes_sent: u64,
    /// Bytes received on the network.
    pub bytes_received: u64,
    /// Number of linked peers.
    pub peers: u64,
    /// Seconds since the first round began.
    pub wall_s: f64,
    /// The state that it fetches, if it catches up.
    pub transfer: Option<TransferStatus>,
    /// Unix time in seconds at the end of its first round.
    pub first_round_unix_s: Option<f64>,
    /// Estimated seconds until the last round ends; `None` if the run has no last round, or is paused.
    pub left_s: Option<f64>,
}

impl From<&Status> for Progress {
    fn from(status: &Status) -> Self {
        let left = status.rounds.saturating_sub(status.round);
        let known = status.rounds > 0 && status.round > 0 && status.wall_s > 0.0;
        // The last rounds, without pauses between them; before they are measured, all of them.
        let measured = status.measured.as_ref().map(|measured| measured.round_s);
        let each = measured.unwrap_or(status.wall_s / status.round.max(1) as f64);
        Self {
            round: status.round,
            rounds: status.rounds,
            phase: status.phase.clone(),
            inner_steps: status.inner_steps,
            inner_steps_per_s: status.inner_steps_per_s,
            loss: status.loss,
            evaluation: status.evaluation.clone(),
            bytes_sent: status.bytes_sent.wire,
            bytes_received: status.bytes_received.wire,
            peers: status.linked() as u64,
            wall_s: status.wall_s,
            transfer: status.transfer,
            first_round_unix_s: status.first_round_unix_s,
            left_s: (known && !status.control.paused).then_some(each * left as f64),
        }
    }
}

impl Progress {
    /// The progress as one line of text of at most `width` characters. What matters least is left out
    /// first. A run that also ends at `target` has no known end, only a last one.
    pub fn describe(&self, target: Target, width: usize) -> String {
        if let Some(transfer) = self.transfer {
            return format!(
                "round {} {:<8} fetches the state of round {}: {} of {}  peers {}",
                self.round,
                self.phase,
                transfer.round,
                bytes(transfer.bytes),
                bytes(transfer.of_bytes),
                self.peers,
            );
        }
        let of = if self.rounds > 0 {
            format!("/{}", self.rounds)
        } else {
            String::new()
        };
        let round = format!("round {}{of}", self.round);
        let accuracy = self.evaluation.as_ref().and_then(|e| e.accuracy);
        let speed = format!("{:>7.1} inner steps/s", self.inner_steps_per_s);
        // In the order in which they are shown, each with its rank when room is short.
        let parts = [
            (0, Some(format!("{round} {:<8}", self.phase))),
            (4, (!self.is_finished()).then_some(speed)),
            (2, Some(format!("loss {}", optional(self.loss)))),
            (3, Some(format!("accuracy {}", optional(accuracy)))),
            (6, Some(format!("out {}", bytes(self.bytes_sent)))),
            (7, Some(format!("in {}", bytes(self.bytes_received)))),
            (5, Some(format!("peers {}", self.peers))),
            (1, self.end(target)),
        ];
        fitting(&parts, width)
    }

    fn end(&self, target: Target) -> Option<String> {
        let found = self.evaluation.as_ref();
        if found.is_some_and(|found| target.reached_by(found)) {
            return Some("target reached".to_owned());
        }
        let left = self.left_s.filter(|_| !self.is_finished())?;
        let left = duration(left);
        Some(if target.is_set() {
            format!("target not reached yet, at most {left} left")
        } else {
            format!("{left} left")
        })
    }

    fn is_finished(&self) -> bool {
        self.phase == "finished"
    }
}

/// The parts in their order, without those of the highest ranks that have no room.
fn fitting(parts: &[(u8, Option<String>)], width: usize) -> String {
    let mut last = parts.iter().map(|(rank, _)| *rank).max().unwrap_or(0);
    loop {
        let kept = parts.iter().filter(|(rank, _)| *rank <= last);
        let kept: Vec<&str> = kept.filter_map(|(_, text)| text.as_deref()).collect();
        let line = kept.join("  ");
        if last == 0 || line.chars().count() <= width {
            return line;
        }
        last -= 1;
    }
}

/// Bytes with a unit and one decimal: `1.2 MB`; below 1,000 without decimals: `999 B`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{count} B")
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// Seconds as hours, minutes and seconds, without leading zeros: `1h02m`, `3m05s`, `4.2s`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{seconds:.1}s"),
        60..3600 => format!("{}m{:02}s", whole / 60, whole % 60),
        _ => format!("{}h{:02}m", whole / 3600, whole % 3600 / 60),
    }
}

/// A number with four decimals, or a dash if it is `None`.
pub(crate) fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |v| format!("{v:.4}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::RoundStatus;
    use crate::tests::{assert_ends, assert_has};

    #[test]
    fn a_newcomer_shows_how_far_its_state_is() {
        let progress = Progress {
            phase: "join".to_owned(),
            transfer: Some(TransferStatus {
                round: 7,
                bytes: 120_000_000,
                of_bytes: 400_000_056,
            }),
            ..Progress::default()
        };
        let line = progress.describe(Target::default(), 120);
        assert_has(&line, "fetches the state of round 7: 120.0 MB of 400.0 MB");
    }

    #[test]
    fn lines_round_trip() {
        let lines = [
            Line::Listening {
                peer: "ab".to_owned(),
                addresses: vec!["/ip4/127.0.0.1/udp/9/quic-v1".to_owned()],
                http: None,
            },
            Line::Progress(Progress {
                round: 3,
                loss: Some(0.5),
                ..Progress::default()
            }),
            Line::Fault {
                fault: "kill@3:apply".parse().unwrap(),
                round: 4,
            },
            Line::Split { round: 3, away: 2 },
            Line::Merged {
                round: 9,
                digest: "ab".to_owned(),
                sides: vec![(2, 640.0), (1, 320.5)],
            },
            Line::Note {
                text: "hello".to_owned(),
            },
            Line::Report(Box::new(NodeReport {
                rounds: 7,
                ..NodeReport::default()
            })),
        ];
        for line in lines {
            let text = serde_json::to_string(&line).unwrap();
            assert!(text.starts_with("{\"event\":\""), "{text}");
            assert_eq!(serde_json::from_str::<Line>(&text).unwrap(), line);
        }
    }

    #[test]
    fn time_left_is_at_the_rate_so_far() {
        let status = Status {
            round: 10,
            rounds: 40,
            wall_s: 5.0,
            ..Status::default()
        };
        assert_eq!(Progress::from(&status).left_s, Some(15.0));
        // An hour of pause is no part of a round. In a pause the time is unknown.
        let mut after = Status {
            wall_s: 3605.0,
            measured: Some(RoundStatus {
                round_s: 0.5,
                ..RoundStatus::default()
            }),
            ..status.clone()
        };
        assert_eq!(Progress::from(&after).left_s, Some(15.0));
        after.control.paused = true;
        assert_eq!(Progress::from(&after).left_s, None);
        let endless = Status {
            rounds: 0,
            ..status
        };
        assert_eq!(Progress::from(&endless).left_s, None);
    }

    fn running() -> Progress {
        Progress {
            round: 67,
            rounds: 750,
            phase: "train".to_owned(),
            inner_steps_per_s: 12.34,
            loss: Some(0.5),
            left_s: Some(47.6),
            ..Progress::default()
        }
    }

    fn evaluated(accuracy: f64) -> EvaluationStatus {
        EvaluationStatus {
            accuracy: Some(accuracy),
            ..EvaluationStatus::default()
        }
    }

    #[test]
    fn the_time_left_respects_a_target() {
        let target = Target {
            accuracy: Some(0.9),
            loss: None,
        };
        let mut progress = running();
        let wide = usize::MAX;
        let line = progress.describe(Target::default(), wide);
        assert!(line.ends_with("  47.6s left"), "{line}");
        let line = progress.describe(target, wide);
        assert_ends(&line, "not reached yet, at most 47.6s left");
        progress.evaluation = Some(evaluated(0.91));
        let line = progress.describe(target, wide);
        assert!(line.ends_with("  target reached"), "{line}");
        progress.phase = "finished".to_owned();
        progress.evaluation = None;
        let line = progress.describe(target, wide);
        assert!(
            !line.contains("left") && !line.contains("steps/s"),
            "{line}"
        );
    }

    #[test]
    fn a_narrow_terminal_shows_what_matters_most() {
        let progress = running();
        let full = progress.describe(Target::default(), usize::MAX);
        for width in 30..full.len() {
            let line = progress.describe(Target::default(), width);
            assert!(line.len() <= width, "{width}: {line}");
            assert!(line.starts_with("round 67/750 train"), "{line}");
        }
        let line = progress.describe(Target::default(), 50);
        assert_eq!(line, "round 67/750 train     loss 0.5000  47.6s left");
    }

    #[test]
    fn people_can_read_them() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_234_567), "1.2 MB");
        assert_eq!(bytes(999_990), "1.0 MB");
        assert_eq!(duration(4.21), "4.2s");
        assert_eq!(duration(185.0), "3m05s");
        assert_eq!(duration(3725.0), "1h02m");
        assert_eq!(optional(None), "-");
    }
}
