//! Which tensors are sent together to save time: the merge of MG-WFBP.

use super::super::StrategyError;
use super::super::tables::Overlap as Table;
use super::rules::{BACKWARD_MS, LATENCY_MS, MBIT_S};
use crate::parameter::Range as Values;
use std::ops::Range;

/// Elements below which a tensor is never sent alone.
const ALONE_LEAST: usize = 8192;

/// Measured times of links and the backward pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Times {
    /// Milliseconds that every exchange takes, however little it moves: alpha.
    pub(super) latency_ms: f64,
    /// Rate of the slowest link: 1 / beta.
    pub(super) mbit_s: f64,
    /// Milliseconds of a whole backward pass. A tensor's part of it is its share of the values.
    pub(super) backward_ms: f64,
}

impl Times {
    pub(super) fn read(table: &Table) -> Result<Self, StrategyError> {
        let above = |value| Values::Above.contains(value);
        Ok(Self {
            latency_ms: LATENCY_MS.given(table.latency_ms, above)?,
            mbit_s: MBIT_S.given(table.mbit_s, above)?,
            backward_ms: BACKWARD_MS.given(table.backward_ms, above)?,
        })
    }

    pub(super) fn write(self, table: &mut Table) {
        table.latency_ms = Some(self.latency_ms);
        table.mbit_s = Some(self.mbit_s);
        table.backward_ms = Some(self.backward_ms);
    }

    /// Milliseconds in which m bytes go out and come back: `T(m) = alpha + 2 beta m`.
    pub(super) fn exchange(self, bytes: u64) -> f64 {
        self.latency_ms + 2.0 * bytes as f64 / (self.mbit_s * 125.0)
    }
}

/// Neighbouring tensors that are exchanged as one, in ascending order.
///
/// Backward, from the last tensor l: `ready(l)` is the time at which the gradient of l is computed,
/// and the exchange of l begins at `t(l) = max(ready(l), end of the previous exchange)`. Tensor l
/// is merged with the next one, l - 1, if that is ready before the exchange of l would end, and
/// either before it would begin or less than alpha later. Tensors of fewer than 8192 values are
/// always merged.
///
/// `bytes(values)` is their size on the wire.
///
/// **Source:** Shi et al., MG-WFBP, INFOCOM 2019, section IV, theorem 1; the bound of 8192 is that
/// of the authors' code.
pub(super) fn merge(
    tensors: &[Range<usize>],
    times: Times,
    bytes: &dyn Fn(usize) -> u64,
) -> Vec<Range<usize>> {
    let len = tensors.last().map_or(0, |tensor| tensor.end).max(1);
    let ready =
        |tensor: &Range<usize>| times.backward_ms * (len - tensor.start) as f64 / len as f64;
    let mut merged: Vec<Range<usize>> = Vec::new();
    let mut free = 0.0_f64;
    let mut open: Option<Range<usize>> = None;
    for tensor in tensors.iter().rev().filter(|tensor| !tensor.is_empty()) {
        let Some(group) = open.take() else {
            open = Some(tensor.clone());
            continue;
        };
        let begin = free.max(ready(&group));
        let end = begin + times.exchange(bytes(group.len()));
        let next = ready(tensor);
        let hidden = next < end && (next < begin || next - begin < times.latency_ms);
        if hidden || group.len() < ALONE_LEAST {
            open = Some(tensor.start..group.end);
        } else {
            free = end;
            merged.push(group);
            open = Some(tensor.clone());
        }
    }
    merged.extend(open);
    merged.reverse();
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten tensors of 100,000 values.
    fn tensors() -> Vec<Range<usize>> {
        (0..10).map(|at| at * 100_000..(at + 1) * 100_000).collect()
    }

    /// Seconds and bytes per second, and a backward pass of a second.
    fn times(latency: f64, rate: f64) -> Times {
        Times {
            latency_ms: 1e3 * latency,
            mbit_s: rate / 125_000.0,
            backward_ms: 1e3,
        }
    }

    fn cuts(latency: f64, rate: f64) -> usize {
        let times = times(latency, rate);
        let merged = merge(&tensors(), times, &|values| 4 * values as u64);
        assert_eq!(merged.first().unwrap().start, 0);
        assert!(merged.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!(merged.last().unwrap().end, 1_000_000);
        merged.len()
    }

    #[test]
    fn links_that_answer_at_once_take_every_tensor_alone_and_slow_ones_few_together() {
        // An exchange of one tensor takes 80 microseconds, a tenth of a second is between two of
        // them.
        assert_eq!(cuts(1e-6, 1e10), 10);
        // What an exchange costs at least is more than what is between two tensors.
        assert_eq!(cuts(0.15, 1e10), 1);
        // The first alone, and under its exchange, of 0.86 s, all others come.
        assert_eq!(cuts(0.06, 1e6), 2);
    }

    #[test]
    fn the_merge_is_never_slower_than_all_together_or_each_alone() {
        let end = |cuts: &[Range<usize>], times: Times| {
            let len = 1_000_000.0;
            cuts.iter().rev().fold(0.0_f64, |free, cut| {
                let ready = times.backward_ms * (1.0 - cut.start as f64 / len);
                free.max(ready) + times.exchange(4 * cut.len() as u64)
            })
        };
        for latency in [1e-4, 1e-3, 1e-2, 0.1, 0.5] {
            for rate in [1e6, 1e7, 1e8, 1e9] {
                let times = times(latency, rate);
                let merged = merge(&tensors(), times, &|values| 4 * values as u64);
                let all = tensors();
                let best = end(&all, times).min(end(std::slice::from_ref(&(0..1_000_000)), times));
                let ours = end(&merged, times);
                assert!(ours <= best + 1e-9, "{latency} {rate}: {ours} and {best}");
            }
        }
    }

    #[test]
    fn small_tensors_never_go_alone() {
        let small = [0..1_000_000, 1_000_000..1_000_010, 1_000_010..1_000_020];
        let times = times(0.0, 1e12);
        let merged = merge(&small, times, &|values| 4 * values as u64);
        assert_eq!(merged.len(), 1);
    }
}
