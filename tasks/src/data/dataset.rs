//! What all data have in common that a task trains: peers divide it, and checkpoints keep a place in it.

use super::{Dealt, Epochs, ShardError, ShardKind, Shards};
use murmurate_protocol::{Blocks, Digest, Participants, Pool};

/// Data that one peer trains: its own, or its part of what the peers divide.
pub trait Dataset {
    /// Takes this peer's part among these participants, if they divide it. Batches are of that part from now
    /// on.
    fn deal(&mut self, participants: &Participants);

    /// The data set, if the peers can divide it in blocks.
    fn pool(&self) -> Option<Pool>;

    /// Trains these blocks from now on, instead of the part of [`Dataset::deal`]. Batches then follow from
    /// the blocks, and not from their numbers.
    fn train_blocks(&mut self, blocks: &Blocks);

    /// How many of them are finished.
    fn finished_blocks(&self) -> u64;

    /// Where the next batch is; empty if its number says it. Checkpoints keep it.
    fn position(&self) -> Vec<u8>;

    /// Goes to a position, perhaps of an earlier process; an empty one is the beginning. The next batch is
    /// the one that followed it then. `false` if the bytes are not one.
    fn seek(&mut self, position: &[u8]) -> bool;
}

/// The units (images, rows, windows) of data that is here as a whole, in the order of training.
pub(crate) struct Units {
    /// Only where the peers divide them.
    dealt: Option<Dealt>,
    batch: usize,
    seed: u64,
    epochs: Epochs,
    /// The same epochs, for batches that are read ahead. None before the first of these.
    upcoming: Option<Epochs>,
    /// Set if the last batch followed from blocks, and not from its number.
    in_blocks: bool,
}

impl Units {
    /// This many units in batches of `batch`. Peers that divide data have the same if `fingerprint` is.
    ///
    /// # Errors
    /// If there are fewer units than ranks of an island.
    pub(crate) fn new(
        count: usize,
        batch: usize,
        shards: &Shards,
        seed: u64,
        fingerprint: impl FnOnce() -> Digest,
    ) -> Result<Self, ShardError> {
        let dealt = (shards.kind == ShardKind::Dealt)
            .then(|| Dealt::new(count, shards.seed, fingerprint()).for_rank(shards))
            .transpose()?;
        let seed = shards.order_seed(seed);
        let own = dealt.as_ref().map_or(count, Dealt::count);
        Ok(Self {
            dealt,
            batch,
            seed,
            epochs: Epochs::new(own, batch, seed),
            upcoming: None,
            in_blocks: false,
        })
    }

    /// This peer's part, if the peers divide the units.
    pub(crate) const fn dealt(&self) -> Option<&Dealt> {
        self.dealt.as_ref()
    }

    /// The seed of the random draws in training.
    pub(crate) const fn seed(&self) -> u64 {
        self.seed
    }

    /// Number of units in each batch.
    pub(crate) fn batch_len(&self) -> usize {
        self.epochs.batch_len()
    }

    /// The next units of the blocks to train, each `times` in a row; none where there are no blocks.
    pub(crate) fn of_blocks(&mut self, units: usize, times: u64) -> Option<Vec<u32>> {
        self.dealt.as_mut()?.next(units, times)
    }

    /// The units of a batch: of the blocks to train, or those that follow from its number.
    pub(crate) fn batch(&mut self, number: u64) -> Vec<u32> {
        let told = self.of_blocks(self.batch_len(), 1);
        self.in_blocks = told.is_some();
        told.unwrap_or_else(|| own(self.dealt.as_ref(), self.epochs.batch(number)))
    }

    /// The batches behind the one that was taken last, which had this number: `later(number)(k)` is the
    /// one k + 1 after it.
    pub(crate) fn later(&mut self, number: u64) -> impl FnMut(usize) -> Option<Vec<u32>> {
        let count = self.batch_len();
        let blocks = self.dealt.as_ref().filter(|_| self.in_blocks);
        let mut blocks = blocks.cloned();
        let epochs = self.upcoming.get_or_insert_with(|| self.epochs.clone());
        let dealt = self.dealt.as_ref();
        move |k| match &mut blocks {
            Some(blocks) => blocks.next(count, 1),
            None => Some(own(dealt, epochs.batch(number + 1 + k as u64))),
        }
    }
}

/// The units at these places of this peer's part.
fn own(dealt: Option<&Dealt>, places: &[u32]) -> Vec<u32> {
    let unit = |place: &u32| dealt.map_or(*place, |dealt| dealt.unit(*place));
    places.iter().map(unit).collect()
}

impl Dataset for Units {
    fn deal(&mut self, participants: &Participants) {
        let Some(dealt) = &mut self.dealt else { return };
        if dealt.deal(participants) {
            self.seed = dealt.order_seed();
            self.epochs = Epochs::new(dealt.count(), self.batch, self.seed);
            self.upcoming = None;
        }
    }

    fn pool(&self) -> Option<Pool> {
        self.dealt.as_ref().map(Dealt::pool)
    }

    fn train_blocks(&mut self, blocks: &Blocks) {
        if let Some(dealt) = &mut self.dealt {
            dealt.train_blocks(blocks);
        }
    }

    fn finished_blocks(&self) -> u64 {
        self.dealt.as_ref().map_or(0, Dealt::finished)
    }

    fn position(&self) -> Vec<u8> {
        self.dealt.as_ref().map_or(Vec::new(), Dealt::position)
    }

    fn seek(&mut self, position: &[u8]) -> bool {
        match &mut self.dealt {
            Some(dealt) => dealt.seek(position),
            None => position.is_empty(),
        }
    }
}
