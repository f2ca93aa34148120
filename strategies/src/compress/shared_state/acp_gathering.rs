//! The reduction of `acp-sgd`: the mean of a factor, from which the next round starts.

use super::acp_sgd::{AcpSgd, Side, draw};
use crate::compress::CodecError;
use crate::compress::gathering::{Agreed, Bad, Gathering};
use crate::compress::low_rank::power_sgd::orthonormalize;
use crate::compress::raw::add_f32s;

impl Gathering for AcpSgd {
    fn shared_most(&self, len: usize) -> usize {
        // A factor is shorter than its matrix.
        1 + len
    }

    fn gather(&mut self, agreed: &Agreed<'_>, moved: &mut [f32]) -> Result<(), Bad> {
        for (at, one) in agreed.contributions.iter().enumerate() {
            let added = self.add(one.bytes, agreed.shared, one.share, moved);
            added.map_err(|error| Bad { at, error })?;
        }
        Ok(())
    }

    fn settle(
        &mut self,
        agreed: &Agreed<'_>,
        moved: &[f32],
        _: Option<&mut [f32]>,
        shared: &mut Vec<f32>,
    ) {
        let scratch = self.scratch.get_mut();
        let mut scratch = core::mem::take(scratch);
        self.mean.clear();
        self.matrices.clear();
        let mut sides = None;
        for one in agreed.contributions {
            let read = self.read(one.bytes, moved.len(), agreed.shared, &mut scratch);
            let Ok((side, values)) = read else {
                continue;
            };
            let new = match side {
                Side::Right => Side::Left,
                Side::Left => Side::Right,
            };
            if self.mean.is_empty() {
                self.matrices.clone_from(&scratch.matrices);
                self.mean.resize(self.sizes(&scratch.matrices, new), 0.0);
                sides = Some(new);
            }
            // Who named other matrices than the first that named any has no part in the factor.
            if scratch.matrices == self.matrices && sides == Some(new) {
                add_f32s(values, one.share, &mut self.mean);
            }
        }
        self.scratch.replace(scratch);
        let Some(side) = sides.filter(|_| !self.mean.is_empty()) else {
            return;
        };
        shared.push(if side == Side::Right { 1.0 } else { 0.0 });
        let mut rest = self.mean.as_mut_slice();
        for matrix in &self.matrices {
            let long = if side == Side::Right {
                matrix.columns
            } else {
                matrix.rows
            };
            let (own, after) = rest.split_at_mut(self.rank * long);
            rest = after;
            orthonormalize(own, long);
            for (at, column) in (0..).zip(own.chunks_mut(long)) {
                if column.iter().all(|v| *v == 0.0) {
                    draw(agreed.shared_seed.wrapping_add(at), column);
                }
            }
            // What was drawn is not orthogonal yet.
            orthonormalize(own, long);
        }
        shared.extend_from_slice(&self.mean);
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
