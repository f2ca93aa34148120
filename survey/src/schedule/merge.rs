//! MG-WFBP (Shi, Chu and Li, INFOCOM 2019, algorithm 1): which neighbouring gradients to merge, when
//! a collective of m bytes takes alpha + beta m.
//!
//! A gradient is merged with the next one if that is ready less than alpha after its own exchange
//! could begin: then one start is saved, and waiting costs less. The authors' code also merges what
//! is shorter than 8192 values. It does not measure alpha and beta in the run: it has a table of
//! them. On 10 GbE the table's alpha for 32 GPUs is 4 ms, so models of short layers are merged to
//! one message there.

use std::ops::Range;

/// Shorter groups are merged in any case: 8192 values of four bytes.
const SHORT: f64 = 4.0 * 8192.0;

/// What networks of more than 10 Gb/s carry at least, bytes per second.
const TEN_GBIT: f64 = 1.25e9;

/// Alpha in seconds and beta in seconds for a byte.
type Line = (f64, f64);

/// Number of GPUs; what a collective takes among them on 10 Gb/s and on 56 Gb/s.
///
/// **Source:** the code of the survey's runs (HKBU-HPML/ddl-benchmarks, run of 2020-05-29),
/// `mgwfbp/hv_distributed_optimizer.py`, `_generate_groups_mgwfbp`.
const TABLE: [(usize, Line, Line); 5] = [
    (
        4,
        (4.204_299e-5, 2.058_936e-10),
        (4.204_299e-5, 2.058_936e-10),
    ),
    (
        8,
        (5.230_273e-4, 8.570_747e-10),
        (9.753_672e-5, 3.056_823e-10),
    ),
    (
        16,
        (9.080_981e-4, 7.395_651e-10),
        (7.075_103e-4, 4.059_479e-10),
    ),
    (
        32,
        (4.042_923e-3, 8.643_301e-10),
        (4.063_208e-4, 4.906_886e-10),
    ),
    (
        64,
        (7.042_923e-3, 9.643_301e-10),
        (8.063_208e-4, 5.888_263e-10),
    ),
];

/// The alpha and beta that the method plans with, on a network of this rate; none for numbers of
/// GPUs that its table does not have.
pub(super) fn planned(ranks: usize, rate: f64) -> Option<Line> {
    let (_, ten, faster) = TABLE.iter().find(|(n, ..)| *n == ranks)?;
    Some(if rate > TEN_GBIT { *faster } else { *ten })
}

/// Groups of gradients, in the order in which they become ready.
///
/// With b = max(end of the group before, ready(i)), gradient i is merged with i + 1 if
/// ready(i + 1) < b + alpha. Otherwise its group ends at b + alpha + beta * bytes(group).
///
/// Shapes: `bytes: [L]`, `ready: [L]`, seconds, not decreasing.
///
/// Special cases: alpha = 0 merges short gradients only; gradients that are all ready at once form
/// one group.
pub(super) fn groups(bytes: &[f64], ready: &[f64], (alpha, beta): Line) -> Vec<Range<usize>> {
    let mut groups = Vec::new();
    let (mut first, mut free, mut carried) = (0, 0.0, 0.0);
    for (index, own) in bytes.iter().enumerate() {
        carried += own;
        let begin = f64::max(free, ready[index]);
        let joins = |next: &f64| *next < begin + alpha || carried < SHORT;
        if !ready.get(index + 1).is_some_and(joins) {
            groups.push(first..index + 1);
            free = begin + alpha + beta * carried;
            (first, carried) = (index + 1, 0.0);
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: f64 = 2.0 * SHORT;

    /// The authors' loop over layers, from the last to the second: `tb` is the backward time of
    /// each, `p` its bytes.
    fn reference(p: &[f64], tb: &[f64], (alpha, beta): Line) -> Vec<Vec<usize>> {
        let layers = p.len();
        let (mut p, mut groups, mut group) = (p.to_vec(), Vec::new(), Vec::new());
        let mut tc: Vec<f64> = p.iter().map(|bytes| alpha + beta * bytes).collect();
        let mut taob = vec![0.0; layers];
        for l in (0..layers - 1).rev() {
            taob[l] = taob[l + 1] + tb[l + 1];
        }
        let starts = |tc: &[f64]| {
            let mut taoc: Vec<f64> = taob.iter().zip(tb).map(|(begin, b)| begin + b).collect();
            for l in (0..layers - 1).rev() {
                taoc[l] = f64::max(taoc[l + 1] + tc[l + 1], taoc[l]);
            }
            taoc
        };
        let mut taoc = starts(&tc);
        for l in (1..layers).rev() {
            group.push(l);
            let next = taob[l - 1] + tb[l - 1];
            let late = next < taoc[l] + tc[l];
            let saves = taoc[l] > next || next - taoc[l] < alpha;
            if (late && saves) || p[l] < SHORT {
                tc[l] = 0.0;
                p[l - 1] += p[l];
                tc[l - 1] = alpha + beta * p[l - 1];
                taoc = starts(&tc);
            } else {
                groups.push(std::mem::take(&mut group));
            }
        }
        group.push(0);
        groups.push(group);
        groups
    }

    #[test]
    fn the_rule_is_that_of_the_authors() {
        let mut state = 7_u64;
        let mut draw = move |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            ((state >> 33) % below) as f64
        };
        for alpha in [0.0, 1.0, 4.0, 30.0] {
            for layers in [1, 2, 5, 20, 60] {
                let p: Vec<f64> = (0..layers).map(|_| SHORT * draw(8) / 4.0 + 1.0).collect();
                let tb: Vec<f64> = (0..layers).map(|_| draw(12)).collect();
                let model = (alpha, draw(5) / SHORT);
                let mut at = 0.0;
                let mut ready = Vec::new();
                for seconds in tb.iter().rev() {
                    at += seconds;
                    ready.push(at);
                }
                let bytes: Vec<f64> = p.iter().rev().copied().collect();
                let ours: Vec<Vec<usize>> = groups(&bytes, &ready, model)
                    .into_iter()
                    .map(|group| group.map(|index| layers - 1 - index).collect())
                    .collect();
                assert_eq!(ours, reference(&p, &tb, model), "{layers} {model:?}");
            }
        }
    }

    #[test]
    fn what_is_ready_at_once_is_one_group() {
        assert_eq!(groups(&[LONG; 5], &[3.0; 5], (1.0, 1.0)), vec![0..5]);
        assert!(groups(&[], &[], (1.0, 1.0)).is_empty());
    }

    #[test]
    fn what_costs_nothing_to_start_is_merged_only_if_it_is_short() {
        let ready = [1.0, 2.0, 3.0];
        assert_eq!(groups(&[LONG; 3], &ready, (0.0, 1e-9)).len(), 3);
        let short = [LONG, 1.0, LONG];
        assert_eq!(groups(&short, &ready, (0.0, 1e-9)), vec![0..1, 1..3]);
    }

    #[test]
    fn the_table_has_one_network_inside_a_machine_and_two_beyond() {
        assert_eq!(planned(4, 1e9), planned(4, 1e10));
        let alpha = |rate| planned(32, rate).unwrap().0;
        assert!(alpha(1.15e9) > 4e-3 && alpha(2e9) < 5e-4);
        assert_eq!(planned(24, 1e9), None);
    }
}
