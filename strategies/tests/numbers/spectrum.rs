//! Mixing matrices and their spectra: how fast peers converge.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "helpers of tests; every test program uses its own part of them"
)]

use murmurate_protocol::{Round, Topology};

/// The mixing matrix of a round, row by row: `W[j][i]` is the share of i's mass that goes to j.
/// Peers only ever ask for their own partners.
pub fn mixing_matrix(topology: &dyn Topology, round: Round, count: usize) -> Vec<Vec<f64>> {
    let mut matrix = vec![vec![0.0; count]; count];
    let sends: Vec<_> = (0..count)
        .map(|rank| topology.partners(round, rank, count).send)
        .collect();
    for (rank, send) in sends.into_iter().enumerate() {
        let kept = 1.0 - send.iter().map(|(_, share)| share).sum::<f64>();
        for (to, share) in send.into_iter().chain([(rank, kept)]) {
            matrix[to][rank] += share;
        }
    }
    matrix
}

/// The factor by which one round with W shrinks the distance from the mean, at worst:
/// `max ||W x|| / ||x||` over x of mean zero, the largest singular value of `W - (1/n) 1 1^T`.
///
/// For a symmetric (or any normal, such as circulant) doubly stochastic W that is the second
/// largest modulus among its eigenvalues, and one minus it is the spectral gap. By the Jacobi
/// method on `A^T A`: exact to rounding, `O(n^3)` a sweep.
pub fn contraction(w: &[Vec<f64>]) -> f64 {
    let n = w.len();
    let mean = 1.0 / n.max(1) as f64;
    let centred: Vec<Vec<f64>> = w
        .iter()
        .map(|row| row.iter().map(|share| share - mean).collect())
        .collect();
    let entry = |i: usize, j: usize| centred.iter().map(|row| row[i] * row[j]).sum::<f64>();
    let gram = (0..n)
        .map(|i| (0..n).map(|j| entry(i, j)).collect())
        .collect();
    eigenvalues(gram).into_iter().fold(0.0, f64::max).sqrt()
}

/// The eigenvalues of a symmetric matrix, in no order: cyclic Jacobi rotations until only the
/// diagonal is left. Source: Golub and Van Loan, "Matrix computations", section 8.5.
pub fn eigenvalues(mut a: Vec<Vec<f64>>) -> Vec<f64> {
    let n = a.len();
    for _sweep in 0..60 {
        let beside: f64 = (0..n)
            .flat_map(|i| (0..i).map(move |j| (i, j)))
            .map(|(i, j)| a[i][j] * a[i][j])
            .sum();
        if beside < 1e-26 {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                rotate(&mut a, p, q);
            }
        }
    }
    (0..n).map(|i| a[i][i]).collect()
}

/// One rotation that makes `a[p][q]` zero.
fn rotate(a: &mut [Vec<f64>], p: usize, q: usize) {
    if a[p][q].abs() < 1e-300 {
        return;
    }
    let tau = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
    let t = tau.signum() / (tau.abs() + (1.0 + tau * tau).sqrt());
    let t = if tau == 0.0 { 1.0 } else { t };
    let c = 1.0 / (1.0 + t * t).sqrt();
    let s = t * c;
    for row in a.iter_mut() {
        (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
    }
    let (head, tail) = a.split_at_mut(q);
    for (x, y) in head[p].iter_mut().zip(&mut tail[0]) {
        (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
    }
}
