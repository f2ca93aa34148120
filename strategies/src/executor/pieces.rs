//! A gradient that leaves fragment by fragment while the backward pass still runs: the pieces on the
//! train lane's side.

use murmurate_protocol::FragmentId;
use std::ops::Range;

/// The fragments of one gradient, as far as the backward pass is.
#[derive(Debug)]
pub(super) struct Pieces {
    fragments: Vec<Range<usize>>,
    /// Values of each fragment that are not there yet.
    missing: Vec<usize>,
    /// Each fragment's values, while some are missing.
    values: Vec<Vec<f32>>,
}

impl Pieces {
    /// Of a gradient that is cut into these, in order.
    pub(super) fn new(fragments: Vec<Range<usize>>) -> Self {
        let (missing, values) = (vec![0; fragments.len()], vec![Vec::new(); fragments.len()]);
        Self {
            fragments,
            missing,
            values,
        }
    }

    /// Begins a gradient.
    pub(super) fn begin(&mut self) {
        let lens = self.fragments.iter().map(Range::len);
        self.missing
            .iter_mut()
            .zip(lens)
            .for_each(|(m, len)| *m = len);
    }

    /// Takes room back that a fragment's values are no longer in.
    pub(super) fn recycle(&mut self, fragment: FragmentId, room: Vec<f32>) {
        if let Some(values) = self.values.get_mut(usize::from(fragment.0)) {
            *values = room;
        }
    }

    /// Takes one tensor's gradient in, which begins at `offset`; `whole(fragment, values)` is called for
    /// each fragment that is complete with it, the last first.
    ///
    /// # Panics
    /// When a value comes twice: the trainer's contract.
    pub(super) fn take(
        &mut self,
        offset: usize,
        gradient: &[f32],
        whole: &mut dyn FnMut(FragmentId, Vec<f32>),
    ) {
        let end = offset + gradient.len();
        let first = self.fragments.partition_point(|f| f.end <= offset);
        let last = self.fragments.partition_point(|f| f.start < end);
        for at in (first..last).rev() {
            let fragment = self.fragments[at].clone();
            let (from, to) = (offset.max(fragment.start), end.min(fragment.end));
            if from >= to {
                continue;
            }
            let values = &mut self.values[at];
            values.resize(fragment.len(), 0.0);
            values[from - fragment.start..to - fragment.start]
                .copy_from_slice(&gradient[from - offset..to - offset]);
            let left = self.missing[at].checked_sub(to - from);
            self.missing[at] = left.expect("a trainer hands every gradient out once");
            if left == Some(0) {
                whole(FragmentId(at as u16), std::mem::take(values));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which fragments come, in which order, and with which values.
    fn taken(pieces: &mut Pieces, tensors: &[Range<usize>]) -> Vec<(u16, Vec<f32>)> {
        let mut came = Vec::new();
        pieces.begin();
        for tensor in tensors {
            let gradient: Vec<f32> = tensor.clone().map(|at| at as f32).collect();
            pieces.take(tensor.start, &gradient, &mut |fragment, values| {
                came.push((fragment.0, values));
            });
        }
        came
    }

    #[test]
    fn a_fragment_comes_with_its_last_value_whatever_tensors_it_is_of() {
        let mut pieces = Pieces::new(vec![0..3, 3..4, 4..10]);
        let whole = |range: Range<usize>| range.map(|at| at as f32).collect::<Vec<f32>>();
        let expected = vec![(2, whole(4..10)), (1, whole(3..4)), (0, whole(0..3))];
        for _ in 0..2 {
            assert_eq!(taken(&mut pieces, &[5..10, 2..5, 0..2]), expected);
        }
        assert_eq!(taken(&mut pieces, &[4..10, 0..4]), expected);
    }

    #[test]
    #[should_panic(expected = "once")]
    fn a_value_that_comes_twice_is_a_bug_of_the_trainer() {
        taken(&mut Pieces::new(vec![0..4, 4..10]), &[0..6, 5..10]);
    }
}
