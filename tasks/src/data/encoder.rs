//! From the documents of a source to one stream of tokens.

use super::error::{DataError, Problem, at};
use super::source::{Passage, Piece, Source};
use super::tokens::{SEEN, START, Tokens};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of text that are encoded together, so that short documents use all cores.
const TOGETHER: usize = 1 << 20;

/// A source with the tokens that it is read as.
pub(crate) struct Encoder {
    pub(crate) source: Source,
    pub(crate) tokens: Arc<Tokens>,
    /// The token after each document; `None` for a newline. Documents that are tokens already are
    /// taken as they are.
    pub(crate) end: Option<u32>,
    /// Number of the model's tokens.
    pub(crate) vocabulary: usize,
}

/// Texts that wait to be encoded, and all tokens so far. Conversations lie in rows: none is cut by a row's end.
struct Encoding<'a> {
    encoder: &'a Encoder,
    newline: Vec<u32>,
    waiting: Vec<(String, bool)>,
    waiting_bytes: usize,
    file: PathBuf,
    tokens: Vec<u32>,
}

impl Encoder {
    /// The tokens of passages.
    ///
    /// # Errors
    /// If the source cannot be read or encoded.
    pub(crate) fn encode<'a>(
        &self,
        passages: impl IntoIterator<Item = &'a Passage> + Clone,
    ) -> Result<Vec<u32>, DataError> {
        self.encode_until(passages, &AtomicBool::new(false))
    }

    /// As [`Encoder::encode`]. If `stop` becomes true, the rest is left out.
    ///
    /// # Errors
    /// If the source cannot be read or encoded.
    pub(crate) fn encode_until<'a>(
        &self,
        passages: impl IntoIterator<Item = &'a Passage> + Clone,
        stop: &AtomicBool,
    ) -> Result<Vec<u32>, DataError> {
        let mut encoding = Encoding {
            encoder: self,
            newline: Vec::new(),
            waiting: Vec::new(),
            waiting_bytes: 0,
            file: PathBuf::new(),
            tokens: Vec::new(),
        };
        let bytes: u64 = passages
            .clone()
            .into_iter()
            .map(|passage| passage.bytes)
            .sum();
        encoding
            .tokens
            .reserve((bytes / self.bytes_per_token()) as usize);
        encoding.newline = encoding.all(&["\n"])?.concat();
        let wanted = passages
            .into_iter()
            .take_while(|_| !stop.load(Ordering::Relaxed));
        self.source
            .read(wanted, Some(self.vocabulary), &mut |file, piece| {
                encoding.push(file, piece)
            })?;
        encoding.flush()?;
        if let Some(row) = self.row() {
            encoding.fill_row(row);
            // What the last token of the last row is followed by.
            encoding.tokens.push(START | SEEN);
        }
        if let Some(text) = self.source.chat.as_ref().and_then(|chat| chat.untold_cut()) {
            self.source.bad.report().say(text);
        }
        Ok(encoding.tokens)
    }

    /// Tokens of a row, where the documents are conversations. One more token follows the last row.
    pub(crate) fn row(&self) -> Option<usize> {
        self.source.chat.as_ref().map(|chat| chat.context())
    }

    /// A guess that is rather too large, so that memory for many tokens is seldom allocated twice.
    fn bytes_per_token(&self) -> u64 {
        match *self.tokens {
            Tokens::Bytes => 1,
            Tokens::File(_) => 4,
        }
    }
}

impl Encoding<'_> {
    fn push(&mut self, file: &Path, piece: Piece) -> Result<(), DataError> {
        if self.file != file {
            self.flush()?;
            self.file = file.into();
        }
        match piece {
            Piece::Text { text, ends } => {
                self.waiting_bytes += text.len();
                self.waiting.push((text, ends));
                if self.waiting_bytes >= TOGETHER {
                    self.flush()?;
                }
            }
            Piece::Tokens(tokens) => {
                self.flush()?;
                if let Some(row) = self.encoder.row() {
                    let left = row - self.tokens.len() % row;
                    if tokens.len() > left {
                        self.fill_row(row);
                    }
                }
                self.tokens.extend(tokens);
            }
        }
        Ok(())
    }

    /// Fills the present row with tokens that are not trained.
    fn fill_row(&mut self, row: usize) {
        let end = self.tokens.len().next_multiple_of(row);
        if end > self.tokens.len() {
            self.tokens.push(START | SEEN);
            self.tokens.resize(end, SEEN);
        }
    }

    fn flush(&mut self) -> Result<(), DataError> {
        let waiting = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        let texts: Vec<&str> = waiting.iter().map(|(text, _)| text.as_str()).collect();
        let encoded = self.all(&texts)?;
        for ((text, ends), tokens) in waiting.iter().zip(encoded) {
            self.tokens.extend(tokens);
            match self.encoder.end {
                Some(end) if *ends => self.tokens.push(end),
                None if *ends && !text.ends_with('\n') => self.tokens.extend(&self.newline),
                _ => {}
            }
        }
        Ok(())
    }

    fn all(&self, texts: &[&str]) -> Result<Vec<Vec<u32>>, DataError> {
        let encoded = self.encoder.tokens.encode_all(texts);
        encoded.map_err(|reason| at(&self.file)(Problem::Encoding(reason)))
    }
}
