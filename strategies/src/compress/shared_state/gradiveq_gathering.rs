//! The reduction of `gradiveq`: the sum of coefficients, and components from the moves of exact
//! rounds.

use super::gradiveq::{GradiVeQ, Sent};
use super::gradiveq_standing::{DIGIT, HEAD, NAMED};
use super::principal::{add_second_moments, push_components};
use crate::compress::gathering::{Agreed, Bad, Gathering};
use crate::compress::raw::add_f32s;
use crate::compress::{CodecError, Matrix};

impl GradiVeQ {
    /// The runs that the first exact contribution names.
    fn first_named(&self, agreed: &Agreed<'_>, len: usize) -> Vec<Matrix> {
        for one in agreed.contributions {
            let mut runs = Vec::new();
            let body = self.header().expect(one.bytes);
            let body = body.ok().and_then(|body| body.strip_prefix(&[0]));
            let read = body.map(|body| self.exact(body, len, |run| runs.push(run)));
            if matches!(read, Some(Ok(_))) {
                return runs;
            }
        }
        Vec::new()
    }
}

impl Gathering for GradiVeQ {
    fn shared_most(&self, len: usize) -> usize {
        // A run has at least `slice` slices, and moments take more than components.
        let runs = len / (self.slices.size * self.slices.size);
        HEAD + runs * (NAMED + self.slices.in_common(false))
    }

    fn gather(&mut self, agreed: &Agreed<'_>, moved: &mut [f32]) -> Result<(), Bad> {
        let standing = self.slices.standing(agreed.shared, moved.len());
        let mut sum = core::mem::take(self.scratch.get_mut());
        sum.clear();
        for (at, one) in agreed.contributions.iter().enumerate() {
            let sent = self.read(one.bytes, moved.len(), standing.as_ref());
            match sent.map_err(|error| Bad { at, error })? {
                Sent::Exact(values) => add_f32s(values, one.share, moved),
                Sent::Compressed(values, _) => {
                    sum.resize(values.len() / 4, 0.0);
                    add_f32s(values, one.share, &mut sum);
                }
            }
        }
        if let Some(standing) = standing.filter(|_| !sum.is_empty()) {
            self.add_compressed(&standing, &sum, 1.0, moved);
        }
        self.scratch.replace(sum);
        Ok(())
    }

    fn settle(
        &mut self,
        agreed: &Agreed<'_>,
        moved: &[f32],
        _: Option<&mut [f32]>,
        shared: &mut Vec<f32>,
    ) {
        let standing = self.slices.standing(agreed.shared, moved.len());
        let rounds = standing.as_ref().map_or(0, |standing| standing.rounds) + 1;
        let (runs, sums) = match standing {
            Some(standing) if standing.found => {
                if rounds < self.compressed {
                    shared.extend_from_slice(agreed.shared);
                    shared[1] = rounds as f32;
                }
                return;
            }
            Some(standing) => (standing.runs, standing.values),
            None => (self.first_named(agreed, moved.len()), &[][..]),
        };
        if runs.is_empty() {
            return;
        }
        let found = rounds >= self.sampled;
        let (state, age) = if found { (1.0, 0) } else { (0.0, rounds) };
        shared.extend([state, age as f32, runs.len() as f32]);
        for number in runs.iter().flat_map(|run| [run.offset, run.rows]) {
            shared.extend([number / DIGIT, number % DIGIT].map(|digit| digit as f32));
        }
        let mut sums = sums.chunks(self.slices.in_common(false));
        for run in &runs {
            let mut moments = vec![0.0; self.slices.in_common(false)];
            let before = sums.next().unwrap_or_default();
            let pairs = moments.iter_mut().zip(before);
            pairs.for_each(|(moment, before)| *moment = f64::from(*before));
            add_second_moments(&moved[run.range()], self.slices.size, &mut moments);
            if found {
                push_components(&moments, self.slices.size, self.slices.kept, shared);
            } else {
                let most = f64::from(f32::MAX);
                shared.extend(moments.iter().map(|m| m.clamp(-most, most) as f32));
            }
        }
    }

    fn give_back(
        &self,
        bytes: &[u8],
        shared: &[f32],
        residual: &mut [f32],
    ) -> Result<(), CodecError> {
        self.add(bytes, shared, 1.0, residual)
    }
}
