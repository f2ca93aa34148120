//! MG-WFBP's problem (Shi, Chu and Li, INFOCOM 2019): which neighbouring gradients to merge so that
//! the last collective ends first, when one of m bytes takes alpha + beta m.
//!
//! Solved exactly by dynamic programming over the ends of the groups, in O(L^2). The paper's greedy
//! rule merges two gradients if the later one is ready within alpha of the earlier one; on a chain
//! of short layers it merges all of them.

use std::ops::Range;

/// Groups of gradients, in the order in which they become ready.
///
/// f(j) = min over i < j of max(f(i), ready(j)) + alpha + beta * bytes(i..j), with f(0) = 0: the
/// end of the exchange of the first j gradients. A later f(i) never leads to an earlier end, so the
/// optimum for a prefix does not depend on the rest.
///
/// Shapes: `bytes: [L]`, `ready: [L]`, seconds, not decreasing. Ties go to the longer group.
///
/// Special cases: alpha = 0 merges no gradients that become ready at different times; gradients
/// that are all ready at once form one group.
pub(super) fn groups(bytes: &[f64], ready: &[f64], (alpha, beta): (f64, f64)) -> Vec<Range<usize>> {
    let mut ends = vec![0.0; bytes.len() + 1];
    let mut cuts = vec![0; bytes.len() + 1];
    for last in 1..=bytes.len() {
        let mut best = f64::INFINITY;
        let mut carried: f64 = bytes[..last].iter().sum();
        for first in 0..last {
            let begin = f64::max(ends[first], ready[last - 1]);
            let end = begin + alpha + beta * carried;
            if end < best {
                (best, cuts[last]) = (end, first);
            }
            carried -= bytes[first];
        }
        ends[last] = best;
    }
    let mut groups = Vec::new();
    let mut end = bytes.len();
    while end > 0 {
        groups.push(cuts[end]..end);
        end = cuts[end];
    }
    groups.reverse();
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(bytes: &[f64], ready: &[f64], model: (f64, f64), groups: &[Range<usize>]) -> f64 {
        groups.iter().fold(0.0, |free: f64, group| {
            let begin = free.max(ready[group.end - 1]);
            begin + model.0 + model.1 * bytes[group.clone()].iter().sum::<f64>()
        })
    }

    #[test]
    fn what_is_ready_at_once_is_one_group() {
        assert_eq!(
            groups(&[1.0; 5], &[3.0; 5], (1.0, 1.0)).first(),
            Some(&(0..5))
        );
        assert!(groups(&[], &[], (1.0, 1.0)).is_empty());
    }

    #[test]
    fn what_costs_nothing_to_start_is_not_merged() {
        let ready = [1.0, 2.0, 3.0];
        assert_eq!(groups(&[1.0; 3], &ready, (0.0, 0.1)).len(), 3);
    }

    #[test]
    fn no_other_way_to_cut_ends_sooner() {
        let bytes = [4.0, 1.0, 1.0, 7.0, 2.0, 3.0, 1.0, 9.0];
        let ready = [0.5, 1.0, 2.5, 3.0, 5.0, 5.1, 9.0, 9.5];
        for model in [(0.1, 0.2), (0.5, 0.5), (2.0, 0.1), (3.0, 1.0)] {
            let found = groups(&bytes, &ready, model);
            let ours = end(&bytes, &ready, model, &found);
            // Each of the seven gaps is a cut or none.
            for mask in 0u32..1 << 7 {
                let mut cut = vec![0];
                cut.extend((1..8).filter(|gap| mask >> (gap - 1) & 1 == 1));
                cut.push(8);
                let other: Vec<_> = cut.windows(2).map(|w| w[0]..w[1]).collect();
                let theirs = end(&bytes, &ready, model, &other);
                assert!(ours <= theirs + 1e-9, "{model:?}: {ours} against {theirs}");
            }
        }
    }
}
