//! Hyper-hypercubes: exact averaging by mixed radix, the building block of `base-k`. Not a topology
//! of its own: it exists only where the factors are small.

/// The fewest factors of `count`, each at most `most`, in ascending order; `None` where a prime
/// factor is larger.
pub(super) fn factors(count: usize, most: usize) -> Option<Vec<usize>> {
    if count < 2 {
        return Some(Vec::new());
    }
    let mut best: Option<Vec<usize>> = None;
    for factor in (2..=most.min(count))
        .rev()
        .filter(|f| count.is_multiple_of(*f))
    {
        if let Some(mut rest) = factors(count / factor, factor)
            && best.as_ref().is_none_or(|best| rest.len() + 1 < best.len())
        {
            rest.push(factor);
            best = Some(rest);
        }
    }
    best
}

/// The places with which place `at` of `0..product(factors)` averages in round `round`, with equal
/// shares: those that differ from it only in that digit of the mixed radix. None after the last
/// digit.
///
/// After all digits every peer has the mean. Source: Takezawa et al., "Beyond exponential graph"
/// (NeurIPS 2023), algorithm 1 (k-peer hyper-hypercube).
pub(super) fn partners(at: usize, factors: &[usize], round: usize) -> Vec<(usize, f64)> {
    let Some(factor) = factors.get(round) else {
        return Vec::new();
    };
    let stride: usize = factors[..round].iter().product();
    let digit = at / stride % factor;
    let share = 1.0 / *factor as f64;
    (0..*factor)
        .filter(|other| *other != digit)
        .map(|other| (at + other * stride - digit * stride, share))
        .collect()
}
