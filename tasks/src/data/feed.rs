//! The windows of tokens that one peer trains, from memory or as a stream, and what is held out.

use super::encoder::Encoder;
use super::error::{DataError, Problem, at};
use super::source::{Format, Source};
use super::stream::{Sizes, Stream, split};
use super::{BadRecords, Corpus, Dealt, Passes, ShardError, ShardKind, Shards, Tokens, corpus};
use crate::TaskError;
use murmurate_protocol::{Blocks, Digest, Participants, Pool};
use std::path::Path;

/// The most bytes of text that are kept in memory. The windows of larger data are streamed.
pub const MEMORY_BYTES_MAX: u64 = 16 << 20;

/// Which text to read, as which tokens.
pub(crate) struct Reading<'a> {
    pub(crate) path: &'a Path,
    /// The column or key with the text.
    pub(crate) column: Option<&'a str>,
    pub(crate) tokens: Tokens,
    /// The token after each document.
    pub(crate) end: Option<u32>,
    /// Number of the model's tokens.
    pub(crate) vocabulary: usize,
    /// Share of the text that is held out.
    pub(crate) held_out: f64,
    pub(crate) bad: BadRecords,
}

/// Windows for training, each of which shares its last token with the next one.
pub(crate) enum Feed {
    /// All of this peer's text.
    Memory(Box<Memory>),
    /// Text that is read while it is trained.
    Stream(Box<Stream>),
}

/// Windows of text in memory.
pub(crate) struct Memory {
    tokens: Vec<u32>,
    window: usize,
    batch: usize,
    passes: Passes,
    /// Only where the peers divide the text.
    dealt: Option<Dealt>,
}

impl Reading<'_> {
    fn encoder(self) -> Result<Encoder, DataError> {
        let mut source = Source::open(self.path, self.column)?;
        source.bad = self.bad;
        Ok(Encoder {
            source,
            tokens: self.tokens,
            end: self.end,
            vocabulary: self.vocabulary,
        })
    }

    /// Bytes and tokens of the text that is held out. `None` if the bytes are not known.
    ///
    /// # Errors
    /// If the text cannot be read or encoded.
    pub(crate) fn held_size(self) -> Result<Option<(usize, usize)>, DataError> {
        let held_out = self.held_out;
        let encoder = self.encoder()?;
        let (source, tokens) = (&encoder.source, &encoder.tokens);
        if source.bytes() <= MEMORY_BYTES_MAX && source.format() == Format::Text {
            return corpus::held_size(&encoder, held_out).map(Some);
        }
        let sizes = Sizes::of(source.bytes());
        let passages = source.passages(sizes.passage);
        let held = match source.bytes() <= MEMORY_BYTES_MAX {
            true => Corpus::halves(encoder.encode(&passages)?, held_out).1,
            false => encoder.encode(split(&passages, held_out, sizes).1)?,
        };
        let bytes = tokens.text_bytes(&held);
        Ok(bytes.map(|bytes| (bytes, held.len())))
    }
}

impl Feed {
    /// Windows of `window` tokens in batches of `batch`, and the tokens that are held out. The order of
    /// windows depends on seed and shard.
    ///
    /// # Errors
    /// If text or shard are wrong, or too short for one window.
    pub(crate) fn new(
        reading: Reading<'_>,
        shards: &Shards,
        seed: u64,
        window: usize,
        batch: usize,
    ) -> Result<(Self, Vec<u32>), TaskError> {
        let held_out = reading.held_out;
        let encoder = reading.encoder()?;
        if encoder.source.bytes() <= MEMORY_BYTES_MAX {
            let corpus = Corpus::read(&encoder, held_out, shards, window)?;
            let memory = Memory::new(corpus.train, shards, seed, window, batch)?;
            return Ok((Self::Memory(Box::new(memory)), corpus.held));
        }
        let sizes = Sizes::of(encoder.source.bytes());
        let passages = encoder.source.passages(sizes.passage);
        let (train, held) = split(&passages, held_out, sizes);
        let held = encoder.encode(held)?;
        let short = match (train.is_empty(), held.len() < window) {
            (false, false) => None,
            (true, _) => Some("what is not held out"),
            (false, true) => Some("what is held out"),
        };
        if let Some(part) = short {
            let short = Problem::NoWindow { part, window };
            return Err(at(encoder.source.path())(short).into());
        }
        let stream = Stream::new(encoder, train, sizes, shards, seed, window)?;
        Ok((Self::Stream(Box::new(stream)), held))
    }

    /// Takes this peer's part among these participants.
    pub(crate) fn deal(&mut self, participants: &Participants) {
        match self {
            Self::Memory(memory) => memory.deal(participants),
            Self::Stream(stream) => stream.deal(participants),
        }
    }

    /// The text, if the peers can divide it in blocks.
    pub(crate) fn pool(&self) -> Option<Pool> {
        match self {
            Self::Memory(memory) => memory.dealt.as_ref().map(Dealt::pool),
            Self::Stream(stream) => stream.pool(),
        }
    }

    /// Trains these blocks from now on.
    pub(crate) fn train_blocks(&mut self, blocks: &Blocks) {
        match self {
            Self::Memory(memory) => {
                if let Some(dealt) = &mut memory.dealt {
                    dealt.train_blocks(blocks);
                }
            }
            Self::Stream(stream) => stream.train_blocks(blocks),
        }
    }

    /// How many of them are finished.
    pub(crate) fn finished_blocks(&self) -> u64 {
        match self {
            Self::Memory(memory) => memory.dealt.as_ref().map_or(0, Dealt::finished),
            Self::Stream(stream) => stream.finished_blocks(),
        }
    }

    /// Number of windows in each of the batches of `batch`, of which there may be fewer in memory.
    pub(crate) fn batch_len(&self, batch: usize) -> usize {
        match self {
            Self::Memory(memory) => memory.passes.batch_len(),
            Self::Stream(_) => batch,
        }
    }

    /// The windows of a batch, one after the other. A stream gives its next ones.
    ///
    /// # Errors
    /// If the text cannot be read or encoded.
    pub(crate) fn batch(&mut self, number: u64, batch: usize) -> Result<Vec<u32>, DataError> {
        match self {
            Self::Memory(memory) => Ok(memory.batch(number)),
            Self::Stream(stream) => stream.next(batch),
        }
    }

    /// Where the next batch is; empty if its number says it.
    pub(crate) fn position(&self) -> Vec<u8> {
        match self {
            Self::Memory(memory) => memory.dealt.as_ref().map_or(Vec::new(), Dealt::position),
            Self::Stream(stream) => stream.position(),
        }
    }

    /// Goes to a position. `false` if the bytes are not one.
    pub(crate) fn seek(&mut self, position: &[u8]) -> bool {
        match self {
            Self::Memory(memory) => match &mut memory.dealt {
                Some(dealt) => dealt.seek(position),
                None => position.is_empty(),
            },
            Self::Stream(stream) => stream.seek(position),
        }
    }
}

impl Memory {
    fn new(
        tokens: Vec<u32>,
        shards: &Shards,
        seed: u64,
        window: usize,
        batch: usize,
    ) -> Result<Self, ShardError> {
        let windows = (tokens.len() - 1) / (window - 1);
        let dealt = (shards.kind == ShardKind::Dealt).then(|| {
            let bytes = tokens.iter().flat_map(|token| token.to_le_bytes());
            let bytes: Vec<u8> = bytes.collect();
            Dealt::new(windows, shards.seed, Digest::of(&bytes)).for_rank(shards)
        });
        let (dealt, seed) = (dealt.transpose()?, shards.order_seed(seed));
        let own = dealt.as_ref().map_or(windows, Dealt::count);
        Ok(Self {
            tokens,
            window,
            batch,
            passes: Passes::new(own, batch, seed),
            dealt,
        })
    }

    fn deal(&mut self, participants: &Participants) {
        let Some(dealt) = &mut self.dealt else { return };
        if dealt.deal(participants) {
            self.passes = Passes::new(dealt.count(), self.batch, dealt.order_seed());
        }
    }

    fn batch(&mut self, number: u64) -> Vec<u32> {
        let count = self.passes.batch_len();
        let told = self.dealt.as_mut().and_then(|dealt| dealt.next(count, 1));
        let dealt = self.dealt.as_ref();
        let window = |place: &u32| dealt.map_or(*place, |dealt| dealt.unit(*place));
        let windows: Vec<u32> = match told {
            Some(units) => units,
            None => self.passes.batch(number).iter().map(window).collect(),
        };
        let starts = windows
            .into_iter()
            .map(|window| window as usize * (self.window - 1));
        let windows = starts.flat_map(|start| &self.tokens[start..start + self.window]);
        windows.copied().collect()
    }
}
