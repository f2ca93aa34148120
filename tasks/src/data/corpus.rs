//! Documents as one stream of tokens: the part of one shard, and the held-out part.

use super::encoder::Encoder;
use super::error::{DataError, Problem, at};
use super::source::{Format, lines};
use super::text::each_document;
use super::{BadRecords, ShardError, Shards, split_text};
use crate::TaskError;
use std::ops::Range;
use std::path::Path;

/// Tokens of one peer's documents.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Corpus {
    /// Those to train on: of one shard.
    pub train: Vec<u32>,
    /// Those held out, the same for all shards.
    pub held: Vec<u32>,
}

/// A text of several documents.
struct Documents {
    /// All of them, each followed by a newline.
    text: String,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Corpus {
    /// Reads all of a source. The last `held_out` share is held out; of the rest, each shard has a
    /// contiguous part. Train and held-out tokens are at least `window` each.
    ///
    /// Text files are cut between lines, and their parts encoded. JSON and Parquet are encoded first and
    /// cut between tokens.
    ///
    /// # Errors
    /// If the source cannot be read, encoded or divided, or is too short.
    pub(crate) fn read(
        encoder: &Encoder,
        held_out: f64,
        shards: &Shards,
        window: usize,
    ) -> Result<Self, TaskError> {
        let path = encoder.source.path();
        let corpus = match encoder.source.format() {
            Format::Text => {
                let documents = Documents::read(path, &encoder.source.bad)?;
                let text = &documents.text;
                let encode = |range| documents.encode(range, encoder);
                let held = documents.held(held_out);
                let mine = shards.range(held.start.max(1), 1)?;
                let most = held.start / shards.of.max(1) as usize / 2;
                let cut = |at| cut_after(text, at, most).min(held.start);
                let mine = cut(mine.start)..cut(mine.end);
                Self {
                    train: encode(mine)?,
                    held: encode(held)?,
                }
            }
            Format::Json | Format::Parquet => {
                let passages = encoder.source.passages(u64::MAX);
                let row = encoder.row();
                let (mut train, held) = Self::halves(encoder.encode(&passages)?, held_out, row);
                let (unit, last) = (row.unwrap_or(1), usize::from(row.is_some()));
                let mine = shards.range(((train.len() - last) / unit).max(1), 1)?;
                train.truncate(mine.end * unit + last);
                train.drain(..(mine.start * unit).min(train.len()));
                Self { train, held }
            }
        };
        corpus.long_enough(path, shards, window)
    }

    /// All tokens as those to train on and those to hold out. Rows stay whole, and one more token follows the
    /// last row of each part.
    pub(crate) fn halves(
        mut tokens: Vec<u32>,
        held_out: f64,
        row: Option<usize>,
    ) -> (Vec<u32>, Vec<u32>) {
        let (train, _) = split_text(tokens.len(), held_out);
        let Some(row) = row else {
            let held = tokens.split_off(train.end);
            return (tokens, held);
        };
        let held = tokens.split_off(train.end / row * row);
        tokens.extend(held.first());
        (tokens, held)
    }

    fn long_enough(self, path: &Path, shards: &Shards, window: usize) -> Result<Self, TaskError> {
        let corpus = self;
        if shards.of > 1 && corpus.held.len() >= window && corpus.train.len() < window {
            return Err(ShardError::TooFew {
                index: shards.index,
                of: shards.of,
                found: corpus.train.len(),
                needed: window,
            }
            .into());
        }
        let shortest = corpus.train.len().min(corpus.held.len());
        if shortest < window {
            let (train, held) = (corpus.train.len(), corpus.held.len());
            return Err(at(path)(Problem::TooFewTokens {
                train,
                held,
                window,
            })
            .into());
        }
        Ok(corpus)
    }
}

/// Bytes and tokens that [`Corpus::read`] holds out of text files.
///
/// # Errors
/// If the text cannot be read, is not UTF-8 or cannot be encoded.
pub(super) fn held_size(encoder: &Encoder, held_out: f64) -> Result<(usize, usize), DataError> {
    let documents = Documents::read(encoder.source.path(), &encoder.source.bad)?;
    let held = documents.held(held_out);
    let bytes = held.len();
    Ok((bytes, documents.encode(held, encoder)?.len()))
}

impl Documents {
    /// The text that is held out: complete lines, if they are short enough.
    fn held(&self, held_out: f64) -> Range<usize> {
        let (_, held) = split_text(self.text.len(), held_out);
        cut_after(&self.text, held.start, held.len() / 2)..self.text.len()
    }

    fn read(path: &Path, bad: &BadRecords) -> Result<Self, DataError> {
        let mut all = Self {
            text: String::new(),
            ends: Vec::new(),
        };
        each_document(path, &mut |file, bytes| {
            let text = lines(file, 0, bytes, bad)?;
            all.text.push_str(&text);
            if !text.ends_with('\n') {
                all.text.push('\n');
            }
            all.ends.push(all.text.len());
            Ok(())
        })?;
        Ok(all)
    }

    /// The tokens of a part of the text, with `end` after each document that ends in it.
    fn encode(&self, range: Range<usize>, encoder: &Encoder) -> Result<Vec<u32>, DataError> {
        let tokens = |text: &str| {
            let encoded = encoder.tokens.encode(text).map_err(Problem::Encoding);
            encoded.map_err(at(encoder.source.path()))
        };
        let mut all = Vec::new();
        let mut at = range.start;
        let ends = self.ends.iter().copied();
        for stop in ends.filter(|&stop| stop > range.start && stop <= range.end) {
            all.extend(tokens(&self.text[at..stop])?);
            all.extend(encoder.end);
            at = stop;
        }
        all.extend(tokens(&self.text[at..range.end.max(at)])?);
        Ok(all)
    }
}

/// Where the line after this position begins. A position at the beginning of a line stays. If no line ends
/// in the next `most` bytes, it is the next space there, or else the end of a character.
fn cut_after(text: &str, at: usize, most: usize) -> usize {
    if at == 0 || at >= text.len() {
        return at.min(text.len());
    }
    let bytes = &text.as_bytes()[..text.len().min(at + most)];
    let found = |from: usize, wanted: u8| bytes[from..].iter().position(|&byte| byte == wanted);
    match (found(at - 1, b'\n'), found(at, b' ')) {
        (Some(line), _) => at + line,
        (None, Some(space)) => at + space,
        (None, None) => text.ceil_char_boundary(at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::source::Source;
    use crate::data::{ShardKind, Tokens};

    fn read(dir: &Path, end: Option<u32>, shards: &Shards) -> Result<Corpus, String> {
        let encoder = Encoder {
            source: Source::open(dir, None).unwrap(),
            tokens: Tokens::Bytes.into(),
            end,
            vocabulary: 256,
        };
        Corpus::read(&encoder, 0.2, shards, 8).map_err(|e| e.to_string())
    }

    #[test]
    fn shards_and_held_text_are_disjoint_and_cover_the_text() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            let lines: Vec<String> = (0..40).map(|i| format!("{name} line {i}")).collect();
            std::fs::write(dir.path().join(name), lines.join("\n")).unwrap();
        }
        let whole = read(dir.path(), Some(7), &Shards::whole()).unwrap();
        let mut joined = Vec::new();
        for index in 0..3 {
            let shards = Shards {
                kind: ShardKind::Iid,
                index,
                of: 3,
                ..Shards::whole()
            };
            let part = read(dir.path(), Some(7), &shards).unwrap();
            assert_eq!(part.held, whole.held);
            joined.extend(part.train);
        }
        assert_eq!(joined, whole.train);
        let ends = |tokens: &[u32]| tokens.iter().filter(|token| **token == 7).count();
        assert_eq!(ends(&whole.train) + ends(&whole.held), 3);
    }

    #[test]
    fn what_is_no_text_or_too_short_is_refused_in_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("novel.txt");
        std::fs::write(&file, b"abcd\xff\xfe").unwrap();
        let line = read(&file, None, &Shards::whole()).unwrap_err();
        assert!(line.contains("novel.txt: byte 4 is no UTF-8"), "{line}");
        std::fs::write(&file, "short").unwrap();
        let line = read(&file, None, &Shards::whole()).unwrap_err();
        assert!(line.contains("novel.txt: "), "{line}");
        assert!(line.contains("a window is 8"), "{line}");
    }

    #[test]
    fn a_text_of_one_line_is_cut_inside_it() {
        let dir = tempfile::tempdir().unwrap();
        let sentence = "A sentence without a line break. ";
        for text in [
            sentence.repeat(400),
            "\u{f6}".repeat(9_000),
            sentence.repeat(400) + "\n",
        ] {
            std::fs::write(dir.path().join("a.txt"), &text).unwrap();
            let whole = read(dir.path(), None, &Shards::whole()).unwrap();
            let share = whole.held.len() as f64 / (whole.held.len() + whole.train.len()) as f64;
            assert!((0.19..0.21).contains(&share), "{share}");
            let mut joined = Vec::new();
            for index in 0..3 {
                let shards = Shards {
                    kind: ShardKind::Iid,
                    index,
                    of: 3,
                    ..Shards::whole()
                };
                let part = read(dir.path(), None, &shards).unwrap();
                assert!(part.train.len() * 4 > whole.train.len());
                joined.extend(part.train);
            }
            assert_eq!(joined, whole.train);
            let bytes = [whole.train, whole.held].concat();
            let bytes: Vec<u8> = bytes.iter().map(|&token| token as u8).collect();
            assert_eq!(
                String::from_utf8(bytes).unwrap().trim_end(),
                text.trim_end()
            );
        }
    }
}
