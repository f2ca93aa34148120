//! Tests of streams of bytes, with passages and legs that are small enough to count.

use super::*;
use crate::data::Tokens;
use crate::data::source::Source;
use crate::tests::assert_has;
use murmurate_protocol::{Blocks, PeerId, Run};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const WINDOW: usize = 9;

const SIZES: Sizes = Sizes {
    passage: 400,
    leg: 2000,
    held: 700,
};

/// 3,000 lines of JSON, each a document of one number; as bytes, each is eight tokens and a newline.
fn numbers(dir: &Path) {
    let lines: Vec<String> = (0..3000)
        .map(|i| format!("{{\"text\":\"{i:08}\"}}"))
        .collect();
    fs::write(dir.join("a.jsonl"), lines[..1000].join("\n")).unwrap();
    fs::write(dir.join("b.jsonl"), lines[1000..].join("\n")).unwrap();
}

fn encoder(dir: &Path) -> Encoder {
    Encoder {
        source: Source::open(dir, None).unwrap(),
        tokens: Tokens::Bytes.into(),
        end: None,
        vocabulary: 256,
    }
}

fn stream(dir: &Path, shards: &Shards) -> Stream {
    let encoder = encoder(dir);
    let passages = encoder.source.passages(SIZES.passage);
    let (train, _) = split(&passages, 0.01, SIZES);
    Stream::new(encoder, train, SIZES, shards, 7, WINDOW).unwrap()
}

/// The numbers that lie in windows, which may be cut at both ends.
fn numbers_in(tokens: &[u32]) -> Vec<u32> {
    let mut found = Vec::new();
    for window in tokens.chunks(WINDOW) {
        let text: Vec<u8> = window.iter().map(|&token| token as u8).collect();
        let text = String::from_utf8(text).unwrap();
        found.extend(
            text.split('\n')
                .filter(|t| t.len() == 8)
                .map(|t| t.parse::<u32>().unwrap()),
        );
    }
    found
}

fn participants(me: u8, all: u8) -> Participants {
    let peer = |number: u8| PeerId::from_bytes([number; 32]);
    Participants::new(peer(me), (1..=all).map(peer))
}

/// Windows until the second pass begins.
fn pass(stream: &mut Stream) -> Vec<u32> {
    let mut tokens = Vec::new();
    loop {
        let next = stream.next(1).unwrap();
        if stream.position.leg.pass > 0 {
            return tokens;
        }
        tokens.extend(next);
    }
}

#[test]
fn a_pass_has_every_window_once_and_the_next_has_another_order() {
    let dir = tempfile::tempdir().unwrap();
    numbers(dir.path());
    let mut own = stream(dir.path(), &Shards::whole());
    let first = pass(&mut own);
    let found = numbers_in(&first);
    let distinct: BTreeSet<u32> = found.iter().copied().collect();
    assert_eq!(found.len(), distinct.len(), "no number is read twice");
    // Of nine windows in a row, which begin every eight tokens, two hold a complete number.
    assert!((700..800).contains(&found.len()), "{}", found.len());
    let legs = own.passages.iter().map(|p| p.bytes).sum::<u64>() / SIZES.leg;
    assert!(legs > 20, "{legs}");
    let ascending = found.windows(2).filter(|pair| pair[0] < pair[1]).count();
    assert!(
        (found.len() / 3..found.len() * 2 / 3).contains(&ascending),
        "{ascending}"
    );
    let again = pass(&mut stream(dir.path(), &Shards::whole()));
    assert_eq!(
        first, again,
        "what is read ahead does not change what is read"
    );
    let second = own.next(first.len() / WINDOW / 2).unwrap();
    assert_ne!(second, first[..second.len()]);
}

#[test]
fn peers_read_disjoint_passages_that_cover_the_data() {
    let dir = tempfile::tempdir().unwrap();
    numbers(dir.path());
    let tokens_of = |me: u8| {
        let mut mine = stream(dir.path(), &Shards::default());
        mine.deal(&participants(me, 3));
        let mut passages = BTreeSet::new();
        let windows = std::iter::from_fn(|| {
            mine.next(1).unwrap();
            passages.extend(mine.position.leg.passages.iter().copied());
            (mine.position.leg.pass == 0).then_some(())
        });
        let windows = windows.count();
        assert!(windows > 500, "{windows}");
        // The first leg of the second pass is this peer's too.
        passages
    };
    let all: Vec<BTreeSet<u32>> = (1..=3).map(tokens_of).collect();
    let union: BTreeSet<u32> = all.iter().flatten().copied().collect();
    assert_eq!(union.len(), all.iter().map(BTreeSet::len).sum::<usize>());
    let passages = stream(dir.path(), &Shards::default()).course.passages();
    assert!(union.into_iter().eq(0..passages as u32));
}

#[test]
fn the_ranks_of_an_island_take_the_blocks_in_turn_and_read_each_window_once() {
    let dir = tempfile::tempdir().unwrap();
    numbers(dir.path());
    let of_rank = |rank| stream(dir.path(), &Shards::default().for_rank(rank));
    let mut ranks: Vec<Stream> = Rank::all(3).map(of_rank).collect();
    let (mut windows, mut owners) = (BTreeSet::new(), BTreeMap::new());
    let (mut first, mut done) = (0, None);
    // Each round ends within a block of every rank. After some, the finished blocks are told no more.
    for round in 0..12 {
        for (rank, stream) in ranks.iter_mut().enumerate() {
            let runs = vec![Run::new(first, 60)];
            stream.train_blocks(&Blocks { runs, done });
            for _ in 0..7 {
                stream.next(1).unwrap();
                let (block, window) = (stream.position.leg.end - 1, stream.position.window);
                assert!(
                    windows.insert((block, window)),
                    "round {round}, block {block}"
                );
                assert_eq!(*owners.entry(block).or_insert(rank), rank);
            }
        }
        let finished = ranks.iter().map(Stream::finished_blocks).min().unwrap();
        done = Some(finished);
        if round % 2 == 0 {
            (first, done) = (first + finished, Some(0));
        }
    }
    let finished = first + done.unwrap_or(0);
    assert!(finished > 2, "{finished}");
    assert!(
        (0..finished).all(|block| owners.contains_key(&block)),
        "{owners:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn a_restart_gives_the_windows_of_the_run_without_it(
        rounds in proptest::collection::vec(1..30_usize, 1..7),
        restart in 0..7_usize,
    ) {
        let dir = tempfile::tempdir().unwrap();
        numbers(dir.path());
        let run = |restart: Option<usize>| {
            let fresh = || stream(dir.path(), &Shards::default());
            let (mut stream, mut first, mut all) = (fresh(), 3, Vec::new());
            for (round, taken) in rounds.iter().enumerate() {
                if restart == Some(round) {
                    let place = stream.position();
                    stream = fresh();
                    assert!(stream.seek(&place));
                }
                let (runs, done) = (vec![Run::new(first, 9)], Some(0));
                stream.train_blocks(&Blocks { runs, done });
                all.extend(stream.next(*taken).unwrap());
                first += stream.finished_blocks();
            }
            all
        };
        prop_assert_eq!(run(None), run(Some(restart)));
    }
}

#[test]
fn a_stream_goes_on_where_its_checkpoint_was() {
    let dir = tempfile::tempdir().unwrap();
    numbers(dir.path());
    for steps in [0, 1, 7, 40, 41, 150] {
        let mut first = stream(dir.path(), &Shards::default());
        first.deal(&participants(1, 2));
        for step in 0..steps {
            // One peer less while a leg is in the middle, as seen at the same step after the restart.
            if step == 30 {
                first.deal(&participants(1, 1));
            }
            first.next(5).unwrap();
        }
        let position = first.position();
        let mut second = stream(dir.path(), &Shards::default());
        assert!(second.seek(&position));
        second.deal(&participants(1, if steps > 30 { 1 } else { 2 }));
        for _ in 0..200 {
            assert_eq!(first.next(5).unwrap(), second.next(5).unwrap());
            assert_eq!(first.position(), second.position());
        }
    }
    let mut other = stream(dir.path(), &Shards::default());
    assert!(!other.seek(&[1, 2, 3]));
    let first = other.next(5).unwrap();
    assert!(other.seek(&[]));
    assert_eq!(other.next(5).unwrap(), first);
}

#[test]
fn what_is_dealt_again_continues_at_the_same_place_of_the_pass() {
    let dir = tempfile::tempdir().unwrap();
    numbers(dir.path());
    let mut stream = stream(dir.path(), &Shards::default());
    stream.deal(&participants(1, 2));
    stream.next(400).unwrap();
    let (leg, end) = (stream.position.leg.clone(), stream.position.leg.end);
    stream.deal(&participants(1, 1));
    assert_eq!(stream.position.leg, leg, "the leg that was begun goes on");
    while stream.position.leg == leg {
        stream.next(1).unwrap();
    }
    // Alone, the peer takes every passage of the order from there on.
    let next = &stream.position.leg;
    assert_eq!(next.passages.len() as u64, next.end - end);
}

#[test]
fn the_end_is_held_out_up_to_a_bound() {
    let dir = tempfile::tempdir().unwrap();
    numbers(dir.path());
    let encoder = encoder(dir.path());
    let passages = encoder.source.passages(SIZES.passage);
    let (train, held) = split(&passages, 0.01, SIZES);
    assert_eq!((train.len() + held.len(), held.len()), (passages.len(), 2));
    assert_eq!(split(&passages, 0.5, SIZES).1, held);
    let text: Vec<u8> = encoder
        .encode(held)
        .unwrap()
        .iter()
        .map(|&t| t as u8)
        .collect();
    assert!(text.ends_with(b"00002999\n"));
}

#[test]
fn text_without_a_window_and_damaged_text_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.jsonl");
    fs::write(&file, "{\"text\":\"abc\"}\n".repeat(100)).unwrap();
    let encoder = encoder(dir.path());
    let passages = encoder.source.passages(SIZES.passage);
    let whole = Shards::whole();
    let mut short = Stream::new(encoder, &passages, SIZES, &whole, 7, 1000).unwrap();
    let error = short.next(1).unwrap_err().to_string();
    assert_has(&error, "less than a window of 1000 tokens");
    numbers(dir.path());
    let mut damaged = stream(dir.path(), &whole);
    let mut bytes = fs::read(dir.path().join("b.jsonl")).unwrap();
    // Each line has 20 bytes.
    bytes[20 * 1000] = b'!';
    fs::write(dir.path().join("b.jsonl"), bytes).unwrap();
    let error = std::iter::repeat_with(|| damaged.next(10).err())
        .take(600)
        .flatten()
        .next();
    let error = error.unwrap().to_string();
    assert_has(&error, "b.jsonl: line 1001 is not a JSON object");
}
