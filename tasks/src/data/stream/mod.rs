//! Windows of tokens from a source of any size, in bounded memory.

mod ahead;
mod course;

use super::dataset::Dataset;
use super::dealt::name_of;
use super::encoder::Encoder;
use super::error::{DataError, Problem, at};
use super::source::Passage;
use super::{Dealt, ShardError, ShardKind, Shards};
use crate::rng;
use ahead::Ahead;
use course::{Course, Leg, Own, Position};
use murmurate_protocol::{Blocks, Digest, Participants, Pool};
use murmurate_strategies::{BlockFeed, Rank};
use std::sync::Arc;

/// Opens the position of a stream that reads blocks. No data has that number of passages.
const MARK: u64 = u64::MAX;

/// Bytes of text that a stream reads at once. They bound its memory: a token takes four bytes, and
/// there are two legs, one that is trained and one that is read ahead.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Of a passage.
    pub(crate) passage: u64,
    /// Of the passages of a leg, whose windows are shuffled together.
    pub(crate) leg: u64,
    /// The most that is held out.
    pub(crate) held: u64,
}

impl Sizes {
    /// For a source of this size. Small sources have smaller passages, so that there are enough of them
    /// to deal out.
    pub(crate) const fn of(bytes: u64) -> Self {
        let (least, most, usual) = (256 << 10, 1 << 20, bytes / 1024);
        let passage = match usual {
            _ if usual < least => least,
            _ if usual > most => most,
            _ => usual,
        };
        Self {
            passage,
            leg: 8 << 20,
            held: 4 << 20,
        }
    }
}

/// The windows of one peer: runs of `window` tokens, the last of which is the first of the next window.
/// Every pass has another order of passages, and windows within a leg of several passages.
pub(crate) struct Stream {
    encoder: Arc<Encoder>,
    /// Those to train on, of all peers.
    passages: Arc<[Passage]>,
    course: Course,
    seed: u64,
    window: usize,
    position: Position,
    /// The leg of the position, once it is read.
    loaded: Option<Loaded>,
    ahead: Option<Ahead>,
    /// Only where the peers divide the text.
    pool: Option<Pool>,
    /// The blocks that it was told to read, if it was. A rank of an island reads its own of them.
    told: Option<BlockFeed>,
    rank: Rank,
}

/// A leg's tokens.
struct Loaded {
    tokens: Vec<u32>,
    /// Its windows in random order: the one at place p begins at token `windows[p] * (window - 1)`.
    windows: Vec<u32>,
}

/// The passages to train on and those held out: the last ones, up to the share and up to the bound.
pub(crate) fn split(passages: &[Passage], held_out: f64, sizes: Sizes) -> (&[Passage], &[Passage]) {
    let all: u64 = passages.iter().map(|passage| passage.bytes).sum();
    let wanted = ((all as f64 * held_out).ceil() as u64).clamp(1, sizes.held);
    let (mut at, mut bytes) = (passages.len(), 0);
    while at > 0 && bytes < wanted {
        at -= 1;
        bytes += passages[at].bytes;
    }
    passages.split_at(at)
}

impl Stream {
    /// The windows of one shard of these passages.
    ///
    /// # Errors
    /// If the shard is invalid or has no passage.
    pub(crate) fn new(
        encoder: Encoder,
        passages: &[Passage],
        sizes: Sizes,
        shards: &Shards,
        seed: u64,
        window: usize,
    ) -> Result<Self, ShardError> {
        let mine = shards.range(passages.len(), 1)?;
        let lengths = passages.iter().flat_map(|p| p.bytes.to_le_bytes());
        let lengths: Vec<u8> = lengths.chain((window as u64).to_le_bytes()).collect();
        let data = Digest::of(&lengths);
        let pool = (shards.kind == ShardKind::Dealt).then(|| Pool {
            name: name_of(&data, passages.len(), shards.seed),
            blocks: passages.len() as u32,
        });
        let (own, seed) = match shards.kind {
            // The order of passages is the same at all peers.
            ShardKind::Dealt => {
                let dealt = Dealt::new(passages.len(), shards.seed, data).for_rank(shards)?;
                (Own::Dealt(Box::new(dealt)), shards.seed)
            }
            _ => (Own::Fixed(mine), shards.order_seed(seed)),
        };
        Ok(Self {
            course: Course::new(own, seed, passages, sizes.leg),
            encoder: Arc::new(encoder),
            passages: passages.into(),
            seed,
            window,
            position: Position::start_of(0),
            loaded: None,
            ahead: None,
            pool,
            told: None,
            rank: shards.rank,
        })
    }

    /// The next windows, one after the other.
    ///
    /// # Errors
    /// If the source cannot be read or encoded, or has less than a window.
    pub(crate) fn next(&mut self, windows: usize) -> Result<Vec<u32>, DataError> {
        let mut tokens = Vec::with_capacity(windows * self.window);
        // The pass of a first leg without a window. One complete pass of such legs will have none.
        let mut barren = None;
        while tokens.len() < windows * self.window {
            let loaded = self.loaded.as_ref();
            let place = self.position.window as usize;
            match loaded.and_then(|loaded| loaded.window(place, self.window)) {
                Some(window) => {
                    tokens.extend_from_slice(window);
                    self.position.window += 1;
                    barren = None;
                }
                None => {
                    self.advance()?;
                    let pass = self.position.leg.pass;
                    if pass > *barren.get_or_insert(pass) + 1 {
                        let (part, window) = ("each leg of this daemon", self.window);
                        let short = Problem::NoWindow { part, window };
                        return Err(at(self.encoder.source.path())(short));
                    }
                }
            }
        }
        Ok(tokens)
    }

    /// The leg that is read next: that of a position in a checkpoint, or the one after the current one.
    fn upcoming(&mut self) -> Leg {
        if let Some(leg) = self.told_leg(self.loaded.is_some()) {
            return leg;
        }
        let leg = &self.position.leg;
        if self.loaded.is_none() && !leg.passages.is_empty() {
            return leg.clone();
        }
        self.course.leg(leg.pass, leg.end)
    }

    fn advance(&mut self) -> Result<(), DataError> {
        let leg = self.upcoming();
        self.leg_is_read();
        let ahead = self.ahead.take();
        let ahead = ahead.filter(|ahead| ahead.passages() == leg.passages);
        let same = self.position.leg.passages == leg.passages;
        let tokens = match (self.loaded.take(), ahead.and_then(Ahead::wait)) {
            (Some(loaded), _) if same => Ok(loaded.tokens),
            (_, Some(tokens)) => tokens,
            (_, None) => {
                let passages = leg.passages.iter();
                self.encoder
                    .encode(passages.map(|&p| &self.passages[p as usize]))
            }
        };
        // After an error the leg has no windows, and the next call goes on behind it.
        let (tokens, failed) = match tokens {
            Ok(tokens) => (tokens, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        self.loaded = Some(Loaded::new(tokens, self.window, self.seed, &leg));
        if self.position.leg != leg {
            self.position = Position { leg, window: 0 };
        }
        self.look_ahead();
        failed.map_or(Ok(()), Err)
    }

    /// Begins to read the next leg, if it is not being read or at hand already.
    fn look_ahead(&mut self) {
        let leg = self.upcoming();
        let at_hand = self.loaded.is_some() && self.position.leg.passages == leg.passages;
        let reading = self.ahead.as_ref().map(Ahead::passages);
        if !at_hand && reading != Some(&leg.passages) {
            self.ahead = Some(Ahead::of(&self.encoder, &self.passages, &leg.passages));
        }
    }

    /// All windows of the present leg are read: where it is a block, that is finished.
    fn leg_is_read(&mut self) {
        if self.loaded.is_some()
            && let Some(told) = &mut self.told
        {
            told.finish();
            pass_over(told, self.rank);
        }
    }

    /// Of a stream that was told its blocks: the leg of the present block, or of the one after it once
    /// that is loaded.
    fn told_leg(&mut self, next: bool) -> Option<Leg> {
        let mut told = self.told.clone()?;
        if next {
            told.finish();
            pass_over(&mut told, self.rank);
        }
        Some(self.course.passage_of(told.block()?))
    }

    /// The blocks in front of a position.
    fn told_position(&self, position: Vec<u8>) -> Vec<u8> {
        let Some(told) = &self.told else {
            return position;
        };
        let told = told.to_bytes();
        let head = [MARK, told.len() as u64].map(u64::to_le_bytes);
        [head.concat(), told, position].concat()
    }

    /// Takes the blocks in front of a position, and gives the rest; none if they are none.
    fn seek_told<'a>(&mut self, position: &'a [u8]) -> Option<&'a [u8]> {
        self.told = None;
        let Some(rest) = position.strip_prefix(&MARK.to_le_bytes()) else {
            return Some(position);
        };
        let (length, rest) = rest.split_first_chunk::<8>()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let (told, rest) = rest.split_at_checked(length)?;
        self.told = Some(BlockFeed::from_bytes(told)?);
        Some(rest)
    }
}

/// Peers agree on who reads which passage: each passage is a block.
impl Dataset for Stream {
    /// A leg that was begun is finished first.
    fn deal(&mut self, participants: &Participants) {
        self.told = None;
        self.course.deal(participants);
        self.look_ahead();
    }

    fn pool(&self) -> Option<Pool> {
        self.pool
    }

    /// The passages are read in their order. A passage that is no longer among them is left.
    fn train_blocks(&mut self, blocks: &Blocks) {
        let rank = self.rank;
        let told = self.told.get_or_insert_default();
        if rank.is_alone() {
            told.take(blocks);
        } else {
            told.take_ahead(blocks);
        }
        pass_over(told, rank);
        let leg = told.block().map(|block| self.course.passage_of(block));
        let stays = leg.as_ref() == Some(&self.position.leg);
        if !stays {
            self.loaded = None;
        }
        if let (Some(leg), true) = (leg, !stays || blocks.done.is_none()) {
            self.position = Position { leg, window: 0 };
        }
        self.look_ahead();
    }

    fn finished_blocks(&self) -> u64 {
        self.told.as_ref().map_or(0, BlockFeed::finished)
    }

    fn position(&self) -> Vec<u8> {
        self.told_position(self.position.to_bytes(self.course.passages()))
    }

    fn seek(&mut self, position: &[u8]) -> bool {
        let position = self.seek_told(position);
        let found = match position.unwrap_or(&[0]) {
            [] => Some(Position::start_of(0)),
            bytes => Position::from_bytes(bytes, self.course.passages()),
        };
        let valid = found.is_some();
        self.position = found.unwrap_or_else(|| Position::start_of(0));
        (self.loaded, self.ahead) = (None, None);
        valid
    }
}

/// Goes on to the next block of this rank: the ranks of an island take the blocks in turn.
fn pass_over(told: &mut BlockFeed, rank: Rank) {
    while told.block().is_some_and(|block| !rank.has(block)) {
        told.finish();
    }
}

impl Loaded {
    fn new(tokens: Vec<u32>, window: usize, seed: u64, leg: &Leg) -> Self {
        let count = tokens.len().saturating_sub(1) / (window - 1);
        let number = (leg.pass << 32) ^ leg.end;
        let windows = rng::permutation(count, &mut rng::stream(seed, rng::WINDOWS, number));
        Self { tokens, windows }
    }

    fn window(&self, place: usize, window: usize) -> Option<&[u32]> {
        let start = *self.windows.get(place)? as usize * (window - 1);
        Some(&self.tokens[start..start + window])
    }
}

#[cfg(test)]
mod tests;
