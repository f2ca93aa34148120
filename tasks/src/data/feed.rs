//! The windows of tokens that one peer trains, from memory or as a stream, and the held-out text.

use super::dataset::{Dataset, Units};
use super::encoder::Encoder;
use super::error::{DataError, Problem, at};
use super::source::{Format, Source};
use super::stream::{Sizes, Stream, split};
use super::tokens::SEEN;
use super::{BadRecords, Chat, Corpus, ShardError, Shards, Template, Tokens, corpus};
use crate::TaskError;
use murmurate_protocol::Digest;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most bytes of text that are kept in memory. The windows of larger data are streamed.
pub const MEMORY_BYTES_MAX: u64 = 16 << 20;

/// Which text to read, as which tokens.
pub(crate) struct Reading<'a> {
    pub(crate) path: &'a Path,
    /// The column or key with the text.
    pub(crate) column: Option<&'a str>,
    pub(crate) tokens: Tokens,
    /// Folder of the tokenizer, which may have a chat template.
    pub(crate) folder: Option<PathBuf>,
    /// Tokens that the model sees at once.
    pub(crate) context: usize,
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
    units: Units,
}

impl Reading<'_> {
    fn encoder(self) -> Result<Encoder, TaskError> {
        let mut source = Source::open(self.path, self.column)?;
        source.bad = self.bad;
        let tokens = Arc::new(self.tokens);
        if source.has_conversations() {
            let Some(folder) = &self.folder else {
                return Err(at(self.path)(Problem::NoTemplate).into());
            };
            let template = Template::open(folder)?;
            let chat = Chat::new(template, tokens.clone(), self.context);
            source.chat = Some(Arc::new(chat));
        }
        Ok(Encoder {
            source,
            tokens,
            end: self.end,
            vocabulary: self.vocabulary,
        })
    }

    /// Bytes and tokens of the text that is held out. `None` if the bytes are not known.
    ///
    /// # Errors
    /// If the text cannot be read or encoded.
    pub(crate) fn held_size(self) -> Result<Option<(usize, usize)>, TaskError> {
        let held_out = self.held_out;
        let encoder = self.encoder()?;
        let (source, tokens) = (&encoder.source, &encoder.tokens);
        if source.bytes() <= MEMORY_BYTES_MAX && source.format() == Format::Text {
            return Ok(corpus::held_size(&encoder, held_out).map(Some)?);
        }
        let sizes = Sizes::of(source.bytes());
        let passages = source.passages(sizes.passage);
        let held = if source.bytes() <= MEMORY_BYTES_MAX {
            Corpus::halves(encoder.encode(&passages)?, held_out, encoder.row()).1
        } else {
            encoder.encode(split(&passages, held_out, sizes).1)?
        };
        // What a model is told it does not predict.
        let said: Vec<u32> = held.into_iter().filter(|token| token & SEEN == 0).collect();
        let bytes = tokens.text_bytes(&said);
        Ok(bytes.map(|bytes| (bytes, said.len())))
    }
}

impl Feed {
    /// Windows of `window` tokens in batches of `batch`, and the tokens that are held out with the step from
    /// one window of them to the next. The order of windows depends on seed and shard.
    ///
    /// # Errors
    /// If text or shard are wrong, or too short for one window.
    pub(crate) fn new(
        reading: Reading<'_>,
        shards: &Shards,
        seed: u64,
        window: usize,
        batch: usize,
    ) -> Result<(Self, Vec<u32>, usize), TaskError> {
        let held_out = reading.held_out;
        let encoder = reading.encoder()?;
        let chat = encoder.source.chat.clone();
        let (feed, held) = Self::read(encoder, held_out, shards, seed, [window, batch])?;
        let step = chat.map_or(1, |chat| chat.context());
        Ok((feed, held, step))
    }

    fn read(
        encoder: Encoder,
        held_out: f64,
        shards: &Shards,
        seed: u64,
        [window, batch]: [usize; 2],
    ) -> Result<(Self, Vec<u32>), TaskError> {
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

    /// The data that peers divide, with this one's place in it.
    pub(crate) fn dataset(&self) -> &dyn Dataset {
        match self {
            Self::Memory(memory) => &memory.units,
            Self::Stream(stream) => &**stream,
        }
    }

    /// The same, to change.
    pub(crate) fn dataset_mut(&mut self) -> &mut dyn Dataset {
        match self {
            Self::Memory(memory) => &mut memory.units,
            Self::Stream(stream) => &mut **stream,
        }
    }

    /// Number of windows in each of the batches of `batch`, of which there may be fewer in memory.
    pub(crate) fn batch_len(&self, batch: usize) -> usize {
        match self {
            Self::Memory(memory) => memory.units.batch_len(),
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
        let fingerprint = || {
            let bytes = tokens.iter().flat_map(|token| token.to_le_bytes());
            Digest::of(&bytes.collect::<Vec<u8>>())
        };
        Ok(Self {
            units: Units::new(windows, batch, shards, seed, fingerprint)?,
            tokens,
            window,
        })
    }

    fn batch(&mut self, number: u64) -> Vec<u32> {
        let units = self.units.batch(number).into_iter();
        let starts = units.map(|unit| unit as usize * (self.window - 1));
        let windows = starts.flat_map(|start| &self.tokens[start..start + self.window]);
        windows.copied().collect()
    }
}
