//! The order in which a peer uses its samples: shuffled epochs that depend only on the seed and the
//! number of the batch, so a resumed trainer needs only this number.

use crate::rng;

/// Batches of shuffled epochs over the samples. Samples that do not fill the last batch of an epoch
/// are left out of it; the next epoch has another order.
#[derive(Clone, Debug)]
pub(super) struct Epochs {
    samples: usize,
    batch: usize,
    seed: u64,
    epoch: u64,
    order: Vec<u32>,
}

impl Epochs {
    /// Epochs over `samples` in batches of `batch`. With fewer samples, every batch has all of
    /// them.
    ///
    /// # Panics
    /// If there are no samples or `batch` is zero.
    pub(super) fn new(samples: usize, batch: usize, seed: u64) -> Self {
        assert!(samples > 0 && batch > 0, "a batch needs samples");
        let mut epochs = Self {
            samples,
            batch: batch.min(samples),
            seed,
            epoch: 0,
            order: Vec::new(),
        };
        epochs.shuffle(0);
        epochs
    }

    /// Number of samples in each batch.
    pub(super) fn batch_len(&self) -> usize {
        self.batch
    }

    /// Indices of the samples of a batch.
    pub(super) fn batch(&mut self, number: u64) -> &[u32] {
        let per_epoch = (self.samples / self.batch) as u64;
        let epoch = number / per_epoch;
        if epoch != self.epoch {
            self.shuffle(epoch);
        }
        let start = (number % per_epoch) as usize * self.batch;
        &self.order[start..start + self.batch]
    }

    fn shuffle(&mut self, epoch: u64) {
        let mut rng = rng::stream(self.seed, rng::PASSES, epoch);
        self.order = rng::permutation(self.samples, &mut rng);
        self.epoch = epoch;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_sees_every_sample_once_and_the_next_has_another_order() {
        let mut epochs = Epochs::new(12, 4, 1);
        let epoch = |epochs: &mut Epochs, start: u64| -> Vec<u32> {
            (start..start + 3)
                .flat_map(|number| epochs.batch(number).to_vec())
                .collect()
        };
        let (first, second) = (epoch(&mut epochs, 0), epoch(&mut epochs, 3));
        assert_ne!(first, second);
        assert_eq!(
            epoch(&mut epochs, 0),
            first,
            "a batch follows from its number"
        );
        for mut order in [first, second] {
            order.sort_unstable();
            assert!(order.into_iter().eq(0..12));
        }
    }
}
