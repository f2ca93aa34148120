//! The order in which a peer uses its samples: shuffled passes that depend only on the seed and the
//! number of the batch, so a resumed trainer needs only this number.

use crate::rng;

/// Batches of shuffled passes over the samples. Samples that do not fill the last batch of a pass
/// are left out of it; the next pass has another order.
#[derive(Clone, Debug)]
pub(super) struct Passes {
    samples: usize,
    batch: usize,
    seed: u64,
    pass: u64,
    order: Vec<u32>,
}

impl Passes {
    /// Passes over `samples` in batches of `batch`. With fewer samples, every batch has all of
    /// them.
    ///
    /// # Panics
    /// If there are no samples or `batch` is zero.
    pub(super) fn new(samples: usize, batch: usize, seed: u64) -> Self {
        assert!(samples > 0 && batch > 0, "a batch needs samples");
        let mut passes = Self {
            samples,
            batch: batch.min(samples),
            seed,
            pass: 0,
            order: Vec::new(),
        };
        passes.shuffle(0);
        passes
    }

    /// Number of samples in each batch.
    pub(super) fn batch_len(&self) -> usize {
        self.batch
    }

    /// Indices of the samples of a batch.
    pub(super) fn batch(&mut self, number: u64) -> &[u32] {
        let per_pass = (self.samples / self.batch) as u64;
        let pass = number / per_pass;
        if pass != self.pass {
            self.shuffle(pass);
        }
        let start = (number % per_pass) as usize * self.batch;
        &self.order[start..start + self.batch]
    }

    fn shuffle(&mut self, pass: u64) {
        let mut rng = rng::stream(self.seed, rng::PASSES, pass);
        self.order = rng::permutation(self.samples, &mut rng);
        self.pass = pass;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_sees_every_sample_once_and_the_next_has_another_order() {
        let mut passes = Passes::new(12, 4, 1);
        let pass = |passes: &mut Passes, start: u64| -> Vec<u32> {
            (start..start + 3)
                .flat_map(|number| passes.batch(number).to_vec())
                .collect()
        };
        let (first, second) = (pass(&mut passes, 0), pass(&mut passes, 3));
        assert_ne!(first, second);
        assert_eq!(
            pass(&mut passes, 0),
            first,
            "a batch follows from its number"
        );
        for mut order in [first, second] {
            order.sort_unstable();
            assert!(order.into_iter().eq(0..12));
        }
    }
}
