//! Windows of text for language models: those of a batch, and those of the part that is held out.

use super::Score;
use crate::loss;
use burn::tensor::{Device, Int, Tensor, TensorData};

/// Most windows of held-out text to evaluate, spread evenly over it.
const HELD_WINDOWS: usize = 512;

/// The text that is held out, the same for all shards.
pub(super) struct Held<T> {
    pub(super) tokens: Vec<T>,
    /// Tokens that the model sees at once.
    pub(super) context: usize,
}

impl<T: Copy + Into<u32>> Held<T> {
    fn windows(&self) -> usize {
        (self.tokens.len() / (self.context + 1)).clamp(1, HELD_WINDOWS)
    }

    /// Number of batches of `batch` windows.
    pub(super) fn batches(&self, batch: usize) -> usize {
        self.windows().div_ceil(batch)
    }

    /// The score of a model, given by its logits, on one of these batches.
    pub(super) fn score(
        &self,
        index: usize,
        batch: usize,
        device: &Device,
        logits: impl FnOnce(Tensor<2, Int>) -> Tensor<2>,
    ) -> Score {
        let (windows, last) = (self.windows(), self.tokens.len() - (self.context + 1));
        let first = index * batch;
        let starts: Vec<usize> = (first..windows.min(first + batch))
            .map(|place| last * place / (windows - 1).max(1))
            .collect();
        let (tokens, next) = tensors(&self.tokens, &starts, self.context, device);
        let samples = next.dims()[0] as u64;
        let (loss_sum, _) = loss::score(logits(tokens), next);
        Score {
            loss_sum,
            samples,
            ..Score::default()
        }
    }
}

/// Windows of `context` tokens from these positions `[starts, context]`, and the token after each token.
pub(super) fn tensors<T: Copy + Into<u32>>(
    tokens: &[T],
    starts: &[usize],
    context: usize,
    device: &Device,
) -> (Tensor<2, Int>, Tensor<1, Int>) {
    let windows = |shift: usize| {
        let all = starts
            .iter()
            .flat_map(|start| &tokens[start + shift..start + shift + context]);
        all.map(|&token| token.into() as i32).collect::<Vec<_>>()
    };
    let (shape, count) = ([starts.len(), context], [starts.len() * context]);
    (
        Tensor::from_data(TensorData::new(windows(0), shape), device),
        Tensor::from_data(TensorData::new(windows(1), count), device),
    )
}
