//! A gradient that leaves fragment by fragment while the backward pass runs: the train lane's side.

use murmurate_protocol::FragmentId;
use std::ops::Range;

/// The fragments of one gradient, as far as the backward pass has computed them.
#[derive(Debug)]
pub(super) struct Pieces {
    fragments: Vec<Range<usize>>,
    /// Number of values of each fragment that are still to come.
    missing: Vec<usize>,
    /// Each fragment's values until it is complete.
    values: Vec<Vec<f32>>,
}

impl Pieces {
    /// For a gradient that is cut into these fragments, in order.
    pub(super) fn new(fragments: Vec<Range<usize>>) -> Self {
        let (missing, values) = (vec![0; fragments.len()], vec![Vec::new(); fragments.len()]);
        Self {
            fragments,
            missing,
            values,
        }
    }

    pub(super) fn begin(&mut self) {
        let lens = self.fragments.iter().map(Range::len);
        self.missing
            .iter_mut()
            .zip(lens)
            .for_each(|(m, len)| *m = len);
    }

    /// Takes back the buffer of a fragment.
    pub(super) fn recycle(&mut self, fragment: FragmentId, room: Vec<f32>) {
        if let Some(values) = self.values.get_mut(usize::from(fragment.0)) {
            *values = room;
        }
    }

    /// Takes in one tensor's gradient, which begins at `offset`. `whole(fragment, values)` is
    /// called for each fragment that it completes, in descending order.
    ///
    /// # Panics
    /// When a value arrives twice, which the trainer's contract excludes.
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

    /// The fragments that are handed out, in order, with their values.
    fn taken(pieces: &mut Pieces, tensors: &[Range<usize>]) -> Vec<(u16, Vec<f32>)> {
        let mut handed = Vec::new();
        pieces.begin();
        for tensor in tensors {
            let gradient: Vec<f32> = tensor.clone().map(|at| at as f32).collect();
            pieces.take(tensor.start, &gradient, &mut |fragment, values| {
                handed.push((fragment.0, values));
            });
        }
        handed
    }

    #[test]
    fn a_fragment_is_handed_out_with_its_last_value() {
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
    fn a_value_that_arrives_twice_is_a_bug_of_the_trainer() {
        taken(&mut Pieces::new(vec![0..4, 4..10]), &[0..6, 5..10]);
    }
}
