//! Documents as one stream of tokens: the part of one shard, and what is held out.

use super::encoder::Encoder;
use super::source::Format;
use super::text::{TextError, each_document};
use super::tokens::Tokens;
use super::{ShardError, Shards, split_text};
use crate::TaskError;
use std::ops::Range;
use std::path::Path;

/// Tokens of one peer's documents.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Corpus {
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
                let documents = Documents::read(path)?;
                let text = &documents.text;
                let encode = |range: Range<usize>| {
                    let encoded = documents.encode(range, &encoder.tokens, encoder.end);
                    encoded.map_err(|reason| {
                        let file = path.to_path_buf();
                        TextError::Encoding { file, reason }
                    })
                };
                let held = documents.held(held_out);
                let mine = shards.range(held.start.max(1), 1)?;
                let mine = line_after(text, mine.start)..line_after(text, mine.end).min(held.start);
                Self {
                    train: encode(mine)?,
                    held: encode(held)?,
                }
            }
            Format::Json | Format::Parquet => {
                let passages = encoder.source.passages(u64::MAX);
                let (mut train, held) = Self::halves(encoder.encode(&passages)?, held_out);
                let mine = shards.range(train.len().max(1), 1)?;
                train.truncate(mine.end);
                train.drain(..mine.start.min(train.len()));
                Self { train, held }
            }
        };
        corpus.long_enough(path, shards, window)
    }

    /// All tokens as those to train on and those to hold out.
    pub(crate) fn halves(mut tokens: Vec<u32>, held_out: f64) -> (Vec<u32>, Vec<u32>) {
        let (train, _) = split_text(tokens.len(), held_out);
        let held = tokens.split_off(train.end);
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
            return Err(TextError::TooFewTokens {
                file: path.to_path_buf(),
                train: corpus.train.len(),
                held: corpus.held.len(),
                window,
            }
            .into());
        }
        Ok(corpus)
    }
}

/// Bytes and tokens that [`Corpus::read`] holds out of text files.
///
/// # Errors
/// If the text cannot be read, is not UTF-8 or cannot be encoded.
pub(super) fn held_size(
    path: &Path,
    tokens: &Tokens,
    end: Option<u32>,
    held_out: f64,
) -> Result<(usize, usize), TextError> {
    let documents = Documents::read(path)?;
    let held = documents.held(held_out);
    let bytes = held.len();
    let encoded = documents.encode(held, tokens, end).map_err(|reason| {
        let file = path.to_path_buf();
        TextError::Encoding { file, reason }
    })?;
    Ok((bytes, encoded.len()))
}

impl Documents {
    /// The text that is held out: complete lines.
    fn held(&self, held_out: f64) -> Range<usize> {
        let (_, held) = split_text(self.text.len(), held_out);
        line_after(&self.text, held.start)..self.text.len()
    }

    fn read(path: &Path) -> Result<Self, TextError> {
        let mut all = Self {
            text: String::new(),
            ends: Vec::new(),
        };
        each_document(path, &mut |file, bytes| {
            let text = str::from_utf8(&bytes).map_err(|error| TextError::NotText {
                file: file.to_path_buf(),
                at: error.valid_up_to(),
            })?;
            all.text.push_str(text);
            if !text.ends_with('\n') {
                all.text.push('\n');
            }
            all.ends.push(all.text.len());
            Ok(())
        })?;
        Ok(all)
    }

    /// The tokens of a part of the text, with `end` after each document that ends in it.
    fn encode(
        &self,
        range: Range<usize>,
        tokens: &Tokens,
        end: Option<u32>,
    ) -> Result<Vec<u32>, String> {
        let mut all = Vec::new();
        let mut at = range.start;
        let ends = self.ends.iter().copied();
        for stop in ends.filter(|&stop| stop > range.start && stop <= range.end) {
            all.extend(tokens.encode(&self.text[at..stop])?);
            all.extend(end);
            at = stop;
        }
        all.extend(tokens.encode(&self.text[at..range.end.max(at)])?);
        Ok(all)
    }
}

/// Where the line after this position begins, so that no line and no character is cut. A position
/// at the beginning of a line stays.
fn line_after(text: &str, at: usize) -> usize {
    if at == 0 {
        return 0;
    }
    let from = (at - 1).min(text.len());
    let newline = text.as_bytes()[from..]
        .iter()
        .position(|&byte| byte == b'\n');
    newline.map_or(text.len(), |newline| from + newline + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::ShardKind;
    use crate::data::source::Source;

    fn read(dir: &Path, end: Option<u32>, shards: &Shards) -> Result<Corpus, String> {
        let encoder = Encoder {
            source: Source::open(dir, None).unwrap(),
            tokens: Tokens::Bytes,
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
}
