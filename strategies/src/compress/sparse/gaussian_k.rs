//! Codec `gaussian-k`: top-k by the threshold of a normal distribution. Biased: needs error feedback.

use super::estimated::{Estimate, Estimated};
use super::pick::{DECAY, DENSITY, Picked, kept};
use super::select::{RUN, Source, magnitude};
use super::sidco::ln;
use super::values::VALUES;
use crate::compress::CodecSpec;
use crate::compress::simd::{kernel, to_finite, two_sums};

pub(in crate::compress) const SPEC: CodecSpec = CodecSpec {
    name: "gaussian-k",
    tag: 27,
    summary: "about the largest values, by the threshold of a normal distribution",
    equation: "C(x)_i = x_i where |x_i| >= tau, tau = Phi^-1(1 - density / 2) sigma + mu, corrected three times",
    source: "Shi et al., arXiv 1911.08772",
    parameters: &[DENSITY, VALUES, DECAY],
    build: |kind| Picked::of(kind, Estimated::new(Gaussian, kind.number("density"))),
};

/// The threshold of a normal distribution with the mean and the deviation of the values.
///
/// ```text
/// tau     = Phi^-1(1 - density / 2) sigma + mu
/// three times at most: tau halves where fewer than 2/3 k values are kept, and grows by half where
///                      more than 4/3 k are
/// C(x)_i  = x_i where |x_i| >= tau, 0 elsewhere
/// ```
///
/// Two passes over memory, and two more if the first threshold is corrected. [`Estimated`] bounds
/// how many values are kept. The quantile is the rational approximation of Abramowitz and Stegun,
/// 26.2.23 (within 4.5e-4). With a deviation of zero, values as large as the mean are kept.
///
/// Size and layout: as `top-k`.
///
/// Source: Shi et al., "Understanding top-k sparsification in distributed deep learning" (arXiv
/// 1911.08772), algorithm 1 (number not verified).
#[derive(Clone, Copy, Debug)]
struct Gaussian;

kernel! {
    fn moments<'a>(values: &'a [f32]) -> (f64, f64) {
        two_sums(values, f64::from, |v| f64::from(v) * f64::from(v))
    }
}

/// The x that a normal variable exceeds with probability p in (0, 0.5].
fn exceeded(p: f64) -> f64 {
    let t = (-2.0 * ln(p)).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    (t - above / below).max(0.0)
}

impl Estimate for Gaussian {
    fn guess(&mut self, source: &mut Source<'_>, density: f64, _: u64, chosen: &mut Vec<u32>) {
        let len = source.len();
        let wanted = kept(density, len);
        let (sum, square) = moments(source.values());
        let mean = sum / len.max(1) as f64;
        let deviation = (square / len.max(1) as f64 - mean * mean).max(0.0).sqrt();
        let first = exceeded(density / 2.0) * deviation + mean.abs();
        let mut moves = Moves::default();
        source.select(moves.threshold(first), chosen);
        let (mut found, mut counts) = (chosen.len(), None);
        for _ in 0..MOVES {
            if 3 * found < 2 * wanted {
                moves.halved += 1;
            } else if 3 * found > 4 * wanted {
                moves.grown += 1;
            } else {
                break;
            }
            // All thresholds that corrections can lead to are counted in one pass.
            let counts = counts.get_or_insert_with(|| {
                counts_of(
                    source.values(),
                    Moves::ALL.map(|moves| moves.threshold(first)),
                )
            });
            found = moves.of(counts);
        }
        if moves == Moves::default() {
            return;
        }
        match 2 * found < wanted || found > 2 * wanted {
            // The guard refuses such a count: it finds the largest exactly.
            true => chosen.clear(),
            false => source.select(moves.threshold(first), chosen),
        }
    }
}

/// The most corrections.
const MOVES: usize = 3;

/// How often a threshold was halved and grew by half.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Moves {
    halved: usize,
    grown: usize,
}

impl Moves {
    /// All of one to three corrections.
    const ALL: [Self; 9] = {
        let mut all = [Self {
            halved: 0,
            grown: 0,
        }; 9];
        let (mut at, mut sum) = (0, 1);
        while sum <= MOVES {
            let mut halved = 0;
            while halved <= sum {
                let grown = sum - halved;
                all[at] = Self { halved, grown };
                (at, halved) = (at + 1, halved + 1);
            }
            sum += 1;
        }
        all
    };

    /// The threshold after them, as bits. Halving is exact, so that their order does not matter.
    fn threshold(self, first: f64) -> u32 {
        let grown = (0..self.grown).fold(first, |threshold, _| threshold * 1.5);
        let threshold = (0..self.halved).fold(grown, |threshold, _| threshold * 0.5);
        magnitude(to_finite(threshold)).max(1)
    }

    /// The one of [`Moves::ALL`] that is for these.
    fn of(self, counts: &[usize; 9]) -> usize {
        let mut all = Self::ALL.iter().zip(counts);
        all.find(|(moves, _)| **moves == self)
            .map_or(0, |(_, count)| *count)
    }
}

kernel! {
    /// How many magnitudes are at least `from`, for each of these.
    fn counts_of<'a>(values: &'a [f32], from: [u32; 9]) -> [usize; 9] {
        let mut counts = [0; 9];
        // A run stays in the first-level cache.
        for run in values.chunks(RUN) {
            for (count, from) in counts.iter_mut().zip(from) {
                let those = run.iter().map(|v| u32::from(magnitude(*v) >= from));
                *count += those.sum::<u32>() as usize;
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (p, x) in [
            (0.5, 0.0),
            (0.25, 0.67449),
            (0.05, 1.64485),
            (0.005, 2.57583),
            (5e-5, 3.89059),
        ] {
            assert!((exceeded(p) - x).abs() < 5e-4, "{p}: {}", exceeded(p));
        }
    }
}
