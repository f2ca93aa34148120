//! Written files are decoded, with all CRCs, and bounded.

use super::event_file::{crc, masked};
use super::*;
use murmurate_protocol::{Digest, Round, SortedMap};
use murmurate_strategies::inner::Rate;
use std::fs;

/// The payloads of an event file, with all CRCs checked.
fn payloads(bytes: &[u8]) -> Vec<Vec<u8>> {
    let (mut rest, mut all) = (bytes, Vec::new());
    let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
    while !rest.is_empty() {
        let (head, after) = rest.split_at(12);
        assert_eq!(number(&head[8..]), masked(&head[..8]));
        let len = u64::from_le_bytes(head[..8].try_into().unwrap()) as usize;
        let (payload, after) = after.split_at(len);
        assert_eq!(number(&after[..4]), masked(payload));
        all.push(payload.to_vec());
        rest = &after[4..];
    }
    all
}

/// The fields of a protobuf message: number, and the value's bytes.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let (byte, rest) = bytes.split_first().unwrap();
            (*bytes, value) = (rest, value | u64::from(byte & 0x7f) << shift);
            shift += 7;
            if byte & 0x80 == 0 {
                return value;
            }
        }
    }
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let len = match key & 7 {
            0 => {
                all.push((key >> 3, varint(&mut bytes).to_le_bytes().to_vec()));
                continue;
            }
            1 => 8,
            5 => 4,
            _ => varint(&mut bytes) as usize,
        };
        let (value, rest) = bytes.split_at(len);
        all.push((key >> 3, value.to_vec()));
        bytes = rest;
    }
    all
}

/// Step and values of an event; `None` for the opening.
fn decoded(payload: &[u8]) -> Option<(u64, SortedMap<String, f32>)> {
    let event = fields(payload);
    let of = |number| event.iter().find(|(field, _)| *field == number);
    assert!(f64::from_le_bytes(of(1)?.1.clone().try_into().unwrap()) > 1.6e9);
    if let Some((_, version)) = of(3) {
        assert_eq!(version, b"brain.Event:2");
        return None;
    }
    let step = u64::from_le_bytes(of(2)?.1.clone().try_into().unwrap());
    let values = fields(&of(5)?.1).into_iter().map(|(_, value)| {
        let value = fields(&value);
        let tag = String::from_utf8(value[0].1.clone()).unwrap();
        (
            tag,
            f32::from_le_bytes(value[1].1.clone().try_into().unwrap()),
        )
    });
    Some((step, values.collect()))
}

fn event_files(dir: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains("tfevents"))
        .collect();
    all.sort();
    all
}

fn metrics(dir: &Path) -> Metrics {
    let unit = Unit {
        bytes_per_token: Some(2.0),
    };
    let rate = RateFact {
        lr: Some(0.5),
        factor: Rate::CONSTANT,
    };
    let peer = "0123456789abcdef";
    Metrics::start(dir, peer, unit, rate, Figures::default()).unwrap()
}

fn ended(round: u64) -> Event {
    Event::RoundEnded {
        round: Round(round),
        digest: Digest::of(b""),
        seconds: 2.5,
    }
}

fn evaluated(round: u64, loss: f64) -> Event {
    let evaluation = Evaluation {
        loss,
        top_5: Some(0.75),
        ..Evaluation::default()
    };
    Event::Evaluated {
        round: Round(round),
        evaluation,
    }
}

fn figures(rounds: u64) -> Figures {
    Figures {
        inner_steps: 8 * rounds,
        samples: 64 * rounds,
        train_s: 2.0 * rounds as f64,
        loss: Some(1.0 / rounds as f64),
        bytes_sent: 1000 * rounds,
        bytes_received: 900 * rounds,
        peers: 3,
    }
}

#[test]
fn the_crc_is_that_of_the_standard() {
    // RFC 3720, appendix B.4.
    assert_eq!(crc(&[0; 32]), 0x8a91_36aa);
    assert_eq!(crc(&[0xff; 32]), 0x62a8_ab43);
    assert_eq!(crc(b"123456789"), 0xe306_9283);
}

#[test]
fn every_finished_round_is_a_line_and_an_event() {
    let dir = tempfile::tempdir().unwrap();
    let mut metrics = metrics(dir.path());
    metrics.observe(&ended(0), || figures(1));
    metrics.observe(&evaluated(1, 2.0), || unreachable!("the round is open"));
    metrics.observe(&ended(1), || figures(2));
    let begins = Event::Phase {
        round: Round(2),
        phase: Phase::Train,
    };
    metrics.observe(&begins, || unreachable!("nothing to read"));
    metrics.observe(&evaluated(9, 1.0), || figures(2));
    assert_eq!(metrics.finish(), None);

    let home = dir.path().join("01234567");
    let text = fs::read_to_string(home.join("metrics.jsonl")).unwrap();
    let lines: Vec<Line> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let rounds: Vec<u64> = lines.iter().map(|line| line.round).collect();
    assert_eq!(rounds, [1, 2, 9]);
    let first = &lines[0];
    assert_eq!((first.step, first.samples, first.bytes_sent), (8, 64, 1000));
    assert_eq!((first.round_s, first.train_s), (Some(2.5), 2.0));
    assert_eq!(
        (first.exchange_s, first.test_top_5),
        (Some(0.5), Some(0.75))
    );
    assert_eq!(first.learning_rate, Some(0.5));
    assert_eq!(first.perplexity, Some(2f64.exp()));
    assert_eq!(first.bits_per_byte, Some(1.0 / std::f64::consts::LN_2));
    assert_eq!((lines[1].test_loss, lines[1].bytes_sent), (None, 1000));
    assert_eq!((lines[2].round_s, lines[2].bytes_sent), (None, 0));

    let [file] = &event_files(&home)[..] else {
        panic!("one start, one event file");
    };
    let events: Vec<_> = payloads(&fs::read(file).unwrap())
        .iter()
        .filter_map(|payload| decoded(payload))
        .collect();
    assert_eq!(events.len(), 3);
    assert_eq!((events[0].0, events[0].1["loss/test"]), (1, 2.0));
    assert_eq!(events[1].1["loss/train"], 0.5);
    assert!(!events[1].1.contains_key("loss/test"));
    assert_eq!(events[2].0, 9);
}

#[test]
fn files_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::bounded(dir.path(), 1.7e9, 4096).unwrap();
    let line = Line {
        loss: Some(0.125),
        unix_s: 1.7e9,
        ..Line::default()
    };
    for round in 0..500 {
        files
            .write(&Line {
                round,
                ..line.clone()
            })
            .unwrap();
    }
    let sizes = |path: &Path| fs::metadata(path).unwrap().len();
    for name in ["metrics.jsonl", "metrics.1.jsonl"] {
        assert!(sizes(&dir.path().join(name)) <= 4096, "{name}");
    }
    let events = event_files(dir.path());
    assert_eq!(events.len(), 16);
    assert!(events.iter().all(|path| sizes(path) <= 4096));
    // The newest is the last by name, and the last line is in it.
    let newest = payloads(&fs::read(&events[15]).unwrap());
    assert_eq!(decoded(newest.last().unwrap()).unwrap().0, 499);
}

#[test]
fn a_disk_that_fails_ends_the_files_with_one_message() {
    let dir = tempfile::tempdir().unwrap();
    let mut metrics = metrics(dir.path());
    // The full device refuses every write.
    let full = fs::OpenOptions::new().write(true).open("/dev/full");
    let Ok(full) = full else {
        return;
    };
    let mut files = Files::bounded(dir.path(), 1.7e9, 4096).unwrap();
    files.fill(full);
    let (queue, lines) = sync_channel(4);
    metrics.end();
    metrics.queue = Some(queue);
    metrics.writer = Some(std::thread::spawn(move || write_all(files, &lines)));
    metrics.observe(&ended(0), || figures(1));
    metrics.observe(&ended(1), || figures(2));
    while !metrics.writer.as_ref().unwrap().is_finished() {
        std::thread::yield_now();
    }
    let line = metrics.trouble().unwrap();
    assert!(line.contains("training goes on without them"), "{line}");
    assert_eq!(metrics.trouble(), None);
    // Later rounds are dropped.
    metrics.observe(&ended(2), || figures(3));
    assert_eq!(metrics.finish(), None);
}
