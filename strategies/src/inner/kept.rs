//! The state that an inner optimizer keeps between inner steps.

/// Values for each parameter, and the count of inner steps.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Runs of the parameters' length, one after another.
    pub values: Vec<f32>,
    /// Values for each parameter.
    pub multiple: usize,
    /// Inner steps taken.
    pub steps: u64,
}

impl Kept {
    /// Zeros: `multiple` values for each of `len` parameters.
    pub fn zeros(len: usize, multiple: usize) -> Self {
        Self {
            values: vec![0.0; len * multiple],
            multiple,
            steps: 0,
        }
    }

    /// The two runs of a state with two values for each parameter, such as Adam's moments.
    pub fn halves(&mut self) -> (&mut [f32], &mut [f32]) {
        let len = self.values.len() / 2;
        self.values.split_at_mut(len)
    }
}
