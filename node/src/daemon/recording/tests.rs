//! Records on a disk that is fast, slow or full.

use super::*;
use murmurate_protocol::record::{Entry, RecordReader};
use murmurate_protocol::{
    BytesBound, Contribution, DeadlinePlan, Digest, ExchangeKind, FragmentPlan, LayoutHash,
    PeerConfig, PeerId, Plan, RunId, StepBudget,
};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

fn header() -> RecordHeader {
    let bound = BytesBound {
        fixed: 8,
        per_1024: 4096,
    };
    RecordHeader {
        plan: Plan {
            run: RunId::from_bytes([1; 32]),
            layout: LayoutHash::from_bytes([2; 32]),
            recipe: Digest::from_bytes([3; 32]),
            exchange: ExchangeKind::AllReduce,
            schedule: murmurate_protocol::Schedule::Butterfly,
            contribution: Contribution::Delta,
            budget: StepBudget::Steps(1),
            synchronization: murmurate_protocol::Synchronization::default(),
            rounds: 0,
            fragments: vec![FragmentPlan {
                len: 10,
                contribution: bound,
                aggregate: bound,
            }],
            overlap: murmurate_protocol::OverlapPlan::NONE,
            deadlines: DeadlinePlan::default(),
            state_bytes: 0,
            agreement: murmurate_protocol::AgreementPlan::default(),
        },
        config: PeerConfig {
            me: PeerId::from_bytes([1; 32]),
            seed: 1,
            start_with: 1,
            companions: 0,
            start_wait: Duration::from_secs(1),
            join: false,
            save_every: None,
            evaluate_every: 0,
            evaluate_percent: 0,
            leave_when_finished: false,
            pool: None,
            masked: None,
        },
        topology: None,
    }
}

fn start() -> Input {
    Input::Start {
        snapshot: None,
        digests: vec![Digest::from_bytes([0; 32])],
        opened: Vec::new(),
    }
}

fn entries(bytes: &[u8]) -> Vec<Entry> {
    let mut reader = RecordReader::new(BINARY);
    reader.push(bytes);
    std::iter::from_fn(|| reader.entry().unwrap()).collect()
}

/// A disk with limited space that can block each write until the test allows it.
struct Disk {
    kept: Arc<Mutex<Vec<u8>>>,
    room: usize,
    leave: Option<Receiver<()>>,
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut kept = self.kept.lock().unwrap();
        if kept.is_empty() {
            // The first write is the header.
        } else if let Some(leave) = &self.leave {
            drop(kept);
            let _ = leave.recv();
            kept = self.kept.lock().unwrap();
        }
        let fits = bytes.len().min(self.room - kept.len());
        if fits == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        kept.extend_from_slice(&bytes[..fits]);
        Ok(fits)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for Disk {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_record_is_whole_and_never_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.rec");
    Recording::check(&path).unwrap();
    let mut recording = Recording::start(&path, &header()).unwrap();
    recording.input(Time::ZERO, &start());
    recording.input(Time::ZERO, &Input::Timeout);
    assert_eq!(recording.finish(), None);
    let written = std::fs::read(&path).unwrap();
    let entries = entries(&written);
    assert_eq!(entries.len(), 4);
    assert!(matches!(entries[3], Entry::End { inputs: 2, .. }));

    for error in [
        Recording::check(&path).unwrap_err(),
        Recording::start(&path, &header()).unwrap_err(),
    ] {
        let words = error.to_string();
        assert!(words.contains("a record is never overwritten"), "{words}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), written);
}

#[test]
fn a_full_disk_ends_the_record_with_one_line() {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let disk = Disk {
        kept: Arc::clone(&kept),
        room: 2000,
        leave: None,
    };
    let mut recording = Recording::start_in(disk, Path::new("x.rec"), &header()).unwrap();
    recording.input(Time::ZERO, &start());
    let mut told = Vec::new();
    while told.is_empty() {
        recording.input(Time::ZERO, &Input::Timeout);
        told.extend(recording.trouble());
    }
    recording.input(Time::ZERO, &Input::Timeout);
    told.extend(recording.trouble());
    told.extend(recording.finish());
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].starts_with("--record: x.rec ends here: "),
        "{told:?}"
    );
    // The file is a valid record up to its last complete entry.
    assert!(entries(&kept.lock().unwrap()).len() > 10);
}

#[test]
fn a_slow_disk_ends_the_record_with_a_marker() {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let (go, leave) = channel();
    let disk = Disk {
        kept: Arc::clone(&kept),
        room: usize::MAX,
        leave: Some(leave),
    };
    let mut recording = Recording::start_in(disk, Path::new("x.rec"), &header()).unwrap();
    recording.input(Time::ZERO, &start());
    let mut inputs = 1;
    let trouble = loop {
        if let Some(line) = recording.trouble() {
            break line;
        }
        recording.input(Time::ZERO, &Input::Timeout);
        inputs += 1;
    };
    assert!(trouble.contains("the disk is too slow"), "{trouble}");
    drop(go);
    assert_eq!(recording.finish(), None, "it was told already");
    let entries = entries(&kept.lock().unwrap());
    let last = entries.last().unwrap();
    let cut = |entry: &Entry| matches!(entry, Entry::Cut { inputs: n, .. } if *n == inputs - 1);
    assert!(cut(last), "{inputs}: {last:?}");
}
