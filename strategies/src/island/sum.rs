//! The weighted mean of a tensor.

/// Sums in f64. With equal values, and with one contributor, the mean is exact: a weight is a number of
/// samples, and its product with an f32 fits an f64.
#[derive(Default)]
pub(super) struct Sum {
    sums: Vec<f64>,
    values: Vec<f32>,
}

impl Sum {
    /// A mean of tensors of this length begins.
    pub(super) fn begin(&mut self, len: usize) {
        self.sums.clear();
        self.sums.resize(len, 0.0);
        self.values.resize(len, 0.0);
    }

    /// Where the next contribution goes.
    pub(super) fn room(&mut self) -> &mut [f32] {
        &mut self.values
    }

    /// Adds what is there.
    pub(super) fn add(&mut self, weight: u64) {
        let weight = weight as f64;
        for (sum, value) in self.sums.iter_mut().zip(&self.values) {
            *sum += weight * f64::from(*value);
        }
    }

    /// The mean, for weights of this sum.
    pub(super) fn mean(&mut self, total: u64) -> &mut [f32] {
        let total = total as f64;
        for (value, sum) in self.values.iter_mut().zip(&self.sums) {
            *value = (*sum / total) as f32;
        }
        &mut self.values
    }
}
