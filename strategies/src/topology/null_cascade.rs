//! Topology `null-cascade`: circulant rounds that each remove a few frequencies, until only the
//! mean remains, for any number of peers.

use super::TopologySpec;
use super::weights::circulant;
use murmurate_protocol::{Partners, Round, Topology};
use std::f64::consts::PI;

pub(super) const SPEC: TopologySpec = TopologySpec {
    name: "null-cascade",
    summary: "exact in finitely many commuting rounds for any n",
    equation: "W_u = w_0 I + w_1 (S^(u s) + S^(-u s)), w_0 = cos(pi/p) / (1 + cos(pi/p)), w_1 = (1 - w_0) / 2, p a prime factor of n",
    source: "NeurIPS 2025",
    symmetric: false,
    ..TopologySpec::symmetric(|_, _| Box::new(NullCascade))
};

/// One round for each pair of frequencies.
///
/// A circulant W has the Fourier modes as eigenvectors. Write `n = p_1 p_2 ...` in primes and let
/// `s = p_1 ... p_(i-1)`. For factor 2 one round `W = (I + S^s) / 2`; for an odd factor p the
/// rounds
///
/// ```text
/// W_u = w_0 I + w_1 (S^(u s) + S^(-u s)),   u = 1 .. (p - 1) / 2
/// w_0 = cos(pi/p) / (1 + cos(pi/p)),        w_1 = 1 / (2 (1 + cos(pi/p)))
/// ```
///
/// with S the shift by one. `W_u` is zero at the frequencies with `u m = (p +- 1) / 2 (mod p)`, so
/// those of one factor null all m from 1 to p - 1, and all factors together everything but the
/// mean: the product over [`NullCascade::rounds`] rounds is exactly `(1/n) 1 1^T`. All W are
/// nonnegative, doubly stochastic, and commute, so any order and any first round will do. One
/// partner in a round of factor 2, two in the others; `log2 n` rounds for powers of two, `(n - 1) /
/// 2` for a prime: where that is long, [`BaseK`](super::BaseK) is shorter but does not commute.
///
/// Source: the idea and the name of "null-cascade graph" (NeurIPS 2025: finite-time averaging for
/// any n with commuting matrices); these weights are derived here from that property. Special case:
/// powers of two are [`OnePeerExponential`](super::OnePeerExponential), three peers the mean.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullCascade;

/// The prime factors of `count` in ascending order.
fn primes(mut count: usize) -> Vec<usize> {
    let mut primes = Vec::new();
    let mut at = 2;
    while at * at <= count {
        while count.is_multiple_of(at) {
            primes.push(at);
            count /= at;
        }
        at += 1;
    }
    if count > 1 {
        primes.push(count);
    }
    primes
}

/// Rounds of one prime factor.
const fn rounds_of(prime: usize) -> u64 {
    (prime / 2) as u64
}

impl NullCascade {
    /// Rounds after which every peer holds the mean of `count` peers.
    pub fn rounds(count: usize) -> u64 {
        primes(count).into_iter().map(rounds_of).sum()
    }
}

impl Topology for NullCascade {
    fn partners(&self, round: Round, rank: usize, count: usize) -> Partners {
        if count < 2 {
            return Partners::default();
        }
        let mut at = round.0 % Self::rounds(count);
        let mut stride = 1;
        for prime in primes(count) {
            if at >= rounds_of(prime) {
                at -= rounds_of(prime);
                stride *= prime;
                continue;
            }
            if prime == 2 {
                return circulant(rank, count, &[(stride, 0.5)]);
            }
            let shift = (at as usize + 1) * stride;
            let share = 0.5 / (1.0 + (PI / prime as f64).cos());
            return circulant(rank, count, &[(shift, share), (count - shift, share)]);
        }
        Partners::default()
    }
}
