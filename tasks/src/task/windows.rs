//! Windows of text for language models: those of a batch, and those of the part that is held out.

use crate::data::{SEEN, START, number};
use crate::model::Row;
use burn::tensor::{Device, Int, Tensor, TensorData};
use std::sync::Arc;

/// Most windows of held-out text to evaluate, spread evenly over it.
const HELD_WINDOWS: usize = 512;

/// The text that is held out, the same for all shards.
pub(super) struct Held<T> {
    pub(super) tokens: Vec<T>,
    /// Tokens that the model sees at once.
    pub(super) context: usize,
    /// A window begins at a multiple of this.
    pub(super) step: usize,
}

impl<T> Held<T> {
    fn windows(&self) -> usize {
        let count = match self.step {
            1 => self.tokens.len() / (self.context + 1),
            // Rows, each of which ends with the first token of the next.
            _ => (self.tokens.len() - 1) / self.context,
        };
        count.clamp(1, HELD_WINDOWS)
    }

    /// Number of batches of `batch` windows.
    pub(super) fn batches(&self, batch: usize) -> usize {
        self.windows().div_ceil(batch)
    }

    /// Where the windows of one of these batches begin.
    pub(super) fn starts(&self, index: usize, batch: usize) -> Vec<usize> {
        let (windows, last) = (self.windows(), self.tokens.len() - (self.context + 1));
        let first = index * batch;
        let places = first..windows.min(first + batch);
        let place = |place: usize| last * place / (windows - 1).max(1);
        places.map(|at| place(at) / self.step * self.step).collect()
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

/// Windows of tokens with marks: the tokens that a model reads, and those that it learns to say.
pub struct Windows {
    pub(super) row: Row,
    /// The token after each one that is trained.
    pub(super) targets: Arc<[u32]>,
    /// The places of these; none if all are trained.
    places: Option<Tensor<1, Int>>,
}

impl Windows {
    /// Windows of `context` tokens from these positions.
    pub(super) fn new(tokens: &[u32], starts: &[usize], context: usize, device: &Device) -> Self {
        let window = |shift: usize| {
            let all = starts.iter().copied();
            all.flat_map(move |start| &tokens[start + shift..start + shift + context])
        };
        let seen: Vec<i32> = window(0).map(|&token| number(token) as i32).collect();
        let shape = [starts.len(), context];
        let trained = window(1).enumerate().filter(|(_, next)| **next & SEEN == 0);
        let (places, targets): (Vec<i32>, Vec<u32>) = trained
            .map(|(place, next)| (place as i32, number(*next)))
            .unzip();
        let every = targets.len() == seen.len();
        let count = [targets.len()];
        Self {
            row: Row {
                tokens: Tensor::from_data(TensorData::new(seen, shape), device),
                starts: documents(window(0), context),
            },
            places: (!every).then(|| Tensor::from_data(TensorData::new(places, count), device)),
            targets: targets.into(),
        }
    }

    /// The tokens that the model reads, `[windows, context]`.
    pub const fn tokens(&self) -> &Tensor<2, Int> {
        &self.row.tokens
    }

    /// Of activations `[windows * context, width]`, those whose next token is trained.
    pub(super) fn trained(&self, x: Tensor<2>) -> Tensor<2> {
        match &self.places {
            Some(places) => x.select(0, places.clone()),
            None => x,
        }
    }
}

/// Position in its window at which the document of each token begins; none if no token has a mark.
fn documents<'a>(tokens: impl Iterator<Item = &'a u32>, context: usize) -> Option<Arc<[u32]>> {
    let (mut start, mut any) = (0, false);
    let starts = tokens.enumerate().map(|(place, token)| {
        let place = place % context;
        let begins = token & START != 0;
        any |= begins;
        if begins || place == 0 {
            start = place as u32;
        }
        start
    });
    let starts: Arc<[u32]> = starts.collect();
    any.then_some(starts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_that_is_held_out_is_measured() {
        let held = |rows: usize| Held {
            tokens: vec![0_u32; rows * 8 + 1],
            context: 8,
            step: 8,
        };
        for rows in [1, 2, 3, 30] {
            let held = held(rows);
            let starts: Vec<usize> = (0..held.batches(4))
                .flat_map(|at| held.starts(at, 4))
                .collect();
            let expected: Vec<usize> = (0..rows).map(|row| row * 8).collect();
            assert_eq!(starts, expected);
        }
    }

    #[test]
    fn what_is_seen_is_no_target_and_documents_begin_where_they_are_marked() {
        let tokens = [
            START | SEEN | 5,
            6,
            7 | SEEN,
            START | SEEN | 8,
            9,
            START | SEEN,
        ];
        let windows = Windows::new(&tokens, &[0], 5, &Device::flex());
        assert_eq!(&*windows.targets, [6, 9]);
        assert_eq!(windows.row.starts.as_deref(), Some(&[0, 0, 0, 3, 3][..]));
        let read = windows.tokens().to_data();
        assert_eq!(read.iter::<i64>().collect::<Vec<_>>(), [5, 6, 7, 8, 9]);
        let plain = Windows::new(&[1, 2, 3], &[0], 2, &Device::flex());
        assert!(plain.row.starts.is_none() && plain.places.is_none());
    }
}
