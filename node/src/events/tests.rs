//! Logs that are torn, long, of another version, or of daemons whose clocks differ.

use super::*;
use murmurate_protocol::{Event, FragmentId, PeerId, Phase, Round, Time};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

const OTHER: PeerId = PeerId::from_bytes([2; 32]);

fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

fn append(dir: &Path, text: &str) {
    let file = OpenOptions::new().append(true).open(dir.join(NAME));
    file.unwrap().write_all(text.as_bytes()).unwrap();
}

#[test]
fn a_torn_log_of_two_versions_is_read_and_continued() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = EventLog::open(dir.path(), "me").unwrap();
    log.observe(at(1000), 3, &Event::PeerUp(OTHER));
    drop(log);
    append(
        dir.path(),
        "{\"v\":1,\"seq\":2,\"time\":2.0,\"daemon\":\"me\",\"round\":3,\"kind\":\"new_kind\",\"x\":1}\n",
    );
    append(
        dir.path(),
        "{\"v\":2,\"seq\":7,\"something\":\"else\"}\n{\"v\":1,\"seq\":3,\"ti",
    );
    let mut log = EventLog::open(dir.path(), "me").unwrap();
    log.add(at(3000), 4, Kind::Saved);
    drop(log);
    let (entries, skipped) = read_dir(dir.path()).unwrap();
    let kinds: Vec<&str> = entries.iter().map(|e| e.kind.name()).collect();
    assert_eq!(kinds, ["peer_up", "unknown", "saved"]);
    let seq: Vec<u64> = entries.iter().map(|e| e.seq).collect();
    assert_eq!(seq, [1, 2, 3]);
    assert_eq!(entries[0].kind.peer(), Some(OTHER.to_hex().as_str()));
    let expected = Skipped {
        other_version: 1,
        unreadable: 1,
    };
    assert_eq!(skipped, expected);
    assert!(read_dir(&dir.path().join("none")).is_err());
}

#[test]
fn a_file_that_could_not_be_begun_is_begun_later_and_costs_no_older_one() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("daemon");
    std::fs::create_dir(&dir).unwrap();
    let mut files = log::Files::open(&dir, 10).unwrap();
    files.write(b"first 10\n").unwrap();
    std::fs::rename(&dir, parent.path().join("away")).unwrap();
    for _ in 0..5 {
        files.write(b"lost\n").unwrap_err();
    }
    std::fs::rename(parent.path().join("away"), &dir).unwrap();
    files.write(b"second 1\n").unwrap();
    files.write(b"third 12\n").unwrap();
    let read = |name| std::fs::read_to_string(dir.join(name)).unwrap();
    assert_eq!(read("events.2.jsonl"), "first 10\n");
    assert_eq!(read("events.1.jsonl"), "second 1\n");
    assert_eq!(read(NAME), "third 12\n");
}

#[cfg(target_os = "linux")]
#[test]
fn entries_that_a_full_disk_does_not_take_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/full", dir.path().join(NAME)).unwrap();
    let mut log = EventLog::open(dir.path(), "me").unwrap();
    let told = |log: &EventLog| {
        let lines = log.recent().after(0, usize::MAX);
        lines.iter().any(|(_, line)| line.contains("\"lost\""))
    };
    let begun = std::time::Instant::now();
    while !told(&log) {
        assert!(begun.elapsed().as_secs() < 20, "no entry tells of the loss");
        log.add(at(1), 0, Kind::Saved);
        std::thread::yield_now();
    }
}

#[test]
fn files_rotate_and_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = log::Files::open(dir.path(), 100).unwrap();
    for number in 0..100 {
        files
            .write(format!("line {number:034}\n").as_bytes())
            .unwrap();
    }
    let mut names: Vec<_> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            assert!(entry.metadata().unwrap().len() <= 100);
            entry.file_name().into_string().unwrap()
        })
        .collect();
    names.sort();
    let expected = ["events.1.jsonl", "events.2.jsonl", "events.3.jsonl", NAME];
    assert_eq!(names, expected);
    let newest = std::fs::read_to_string(dir.path().join(NAME)).unwrap();
    assert!(newest.contains("99"), "{newest}");
}

#[test]
fn the_last_entries_are_in_memory_and_bounded() {
    let mut log = EventLog::in_memory("me");
    let recent = log.recent();
    for round in 0..3000 {
        log.observe(
            at(round),
            round,
            &Event::Saved {
                round: Round(round),
            },
        );
    }
    assert_eq!(recent.after(0, usize::MAX).len(), OF_KIND_MAX);
    let two = recent.after(2998, usize::MAX);
    assert_eq!(
        two.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(),
        [2999, 3000]
    );
    assert_eq!(*recent.newest().borrow(), 3000);
}

#[test]
fn what_happens_seldom_outlives_what_happens_in_every_round() {
    let mut log = EventLog::in_memory("me");
    let recent = log.recent();
    log.observe(at(0), 1, &Event::PeerDown(OTHER));
    log.observe(at(1), 1, &Event::PeerLeft(OTHER));
    for round in (2..2000).map(Round) {
        let fragment = FragmentId(0);
        log.observe(at(2), round.0, &Event::Voided { round, fragment });
        log.observe(at(2), round.0, &phase(round, Phase::Train));
    }
    let kept = recent.after(0, usize::MAX);
    let numbers: Vec<u64> = kept.iter().map(|(seq, _)| *seq).collect();
    assert_eq!(
        (kept.len(), &numbers[..2]),
        (2 + 2 * OF_KIND_MAX, &[1, 2][..])
    );
    assert!(numbers.is_sorted(), "in one order");
    let first: Vec<Entry> = kept[..2]
        .iter()
        .map(|(_, line)| serde_json::from_str(line).unwrap())
        .collect();
    let kinds = first.iter().map(|entry| entry.kind.name());
    assert_eq!(kinds.collect::<Vec<_>>(), ["peer_down", "peer_left"]);
    assert!(first[0].kind.is_trouble() && !first[1].kind.is_trouble());
    assert_eq!(recent.after(numbers[1], 3).len(), 3);
}

fn phase(round: Round, phase: Phase) -> Event {
    Event::Phase { round, phase }
}

fn entry(daemon: &str, seq: u64, time: f64, kind: Kind) -> Entry {
    Entry {
        v: VERSION,
        seq,
        time,
        daemon: daemon.to_owned(),
        round: 5,
        kind,
    }
}

fn trained() -> Kind {
    Kind::Trained {
        steps: 1,
        samples: 1,
        loss: 1.0,
        train_s: 1.0,
    }
}

fn decided(contributors: &[&str]) -> Kind {
    Kind::Decided {
        fragment: 0,
        ballot: 0,
        contributors: contributors.iter().map(|&c| c.to_owned()).collect(),
    }
}

#[test]
fn logs_are_joined_by_cause_although_clocks_differ() {
    // The clock of b is ten minutes ahead.
    let a = vec![
        entry("a", 1, 100.0, trained()),
        entry("a", 2, 103.0, decided(&["a", "b"])),
        entry("a", 3, 104.0, Kind::Saved),
    ];
    let b = vec![
        entry("b", 1, 702.0, trained()),
        entry("b", 2, 703.1, decided(&["a", "b"])),
        entry("b", 3, 703.5, Kind::Saved),
    ];
    let order = |logs| {
        let joined = merge(logs);
        joined
            .iter()
            .map(|e| format!("{}{}", e.daemon, e.seq))
            .collect::<Vec<_>>()
    };
    for logs in [vec![a.clone(), b.clone()], vec![b, a.clone()]] {
        let mut order = order(logs);
        // Both saw the decision at the same moment.
        order[2..4].sort();
        assert_eq!(order, ["a1", "b1", "a2", "b2", "b3", "a3"]);
    }
    // A decision whose cause a torn log lacks still stands.
    assert_eq!(order(vec![a[1..].to_vec()]), ["a2", "a3"]);
}

#[test]
fn a_trace_has_a_bar_for_each_phase() {
    let mut log = EventLog::in_memory("abcdef0123456789");
    let recent = log.recent();
    for (ms, phase) in [
        (0, Phase::Train),
        (1500, Phase::Exchange),
        (2000, Phase::Apply),
    ] {
        log.observe(at(ms), 7, &self::phase(Round(7), phase));
    }
    log.observe(at(2100), 7, &Event::PeerDown(OTHER));
    let lines = recent.after(0, usize::MAX);
    let entries: Vec<Entry> = lines
        .iter()
        .map(|(_, l)| serde_json::from_str(l).unwrap())
        .collect();
    let trace = chrome_trace(&entries);
    let events = trace["traceEvents"].as_array().unwrap();
    let bars: Vec<_> = events.iter().filter(|e| e["ph"] == "X").collect();
    assert_eq!(bars.len(), 2);
    assert_eq!(
        (bars[0]["name"].as_str(), bars[0]["dur"].as_f64()),
        (Some("train"), Some(1.5e6))
    );
    assert_eq!(bars[1]["args"]["round"], 7);
    assert_eq!(events.iter().filter(|e| e["ph"] == "i").count(), 1);
}

#[test]
fn a_trace_has_rounds_waits_and_arrows_between_daemons_with_names() {
    let named = Kind::Named {
        peer: "b".to_owned(),
        name: "gpu-2".to_owned(),
    };
    let waited = Kind::Waited {
        what: "group".to_owned(),
        waited_s: 0.5,
        allowed_s: 1.0,
        expired: false,
    };
    let ended = Kind::RoundEnded {
        seconds: 2.0,
        digest: String::new(),
    };
    let log = [
        entry("a", 1, 100.0, named),
        entry("b", 1, 101.0, trained()),
        entry("a", 2, 102.0, waited),
        entry("a", 3, 102.5, decided(&["a", "b", "c"])),
        entry("a", 4, 103.0, ended),
    ];
    let trace = chrome_trace(&log);
    let events = trace["traceEvents"].as_array().unwrap();
    let of = |ph: &str| -> Vec<&serde_json::Value> {
        events.iter().filter(|event| event["ph"] == ph).collect()
    };
    let names = of("M");
    assert!(names.iter().any(|event| event["args"]["name"] == "gpu-2"));
    assert!(names.iter().any(|event| event["args"]["name"] == "waits"));
    let bars: Vec<_> = of("X")
        .iter()
        .map(|e| (&e["name"], &e["ts"], &e["dur"]))
        .map(|(n, t, d)| (n.clone(), t.as_f64(), d.as_f64()))
        .collect();
    assert_eq!(
        bars,
        [
            ("group".into(), Some(1.5e6), Some(0.5e6)),
            ("round 5".into(), Some(1e6), Some(2e6))
        ]
    );
    let (from, to) = (of("s"), of("f"));
    assert_eq!((from.len(), to.len()), (1, 1), "the log of c is not here");
    assert_eq!(
        (&from[0]["pid"], &from[0]["ts"], &to[0]["pid"]),
        (&2.into(), &1e6.into(), &1.into())
    );
    assert_eq!(from[0]["id"], to[0]["id"]);
}
