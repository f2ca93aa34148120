//! `gradiveq` against the paper's equations in f64: components of the moves of exact rounds,
//! coefficients that are summed, and what it does where members do not hold the same.

use crate::gathered::{DIM, Group, MATRICES, PEERS, all, kind};
use murmurate_strategies::compress::{Agreed, Contributed};
use murmurate_strategies::compress::{CodecError, EncodeContext};

/// Values of a slice.
const SLICE: usize = 8;

/// Values before the matrix, which are sent exactly, and slices of the matrix.
const BEFORE: usize = 8;
const SLICES: usize = 11;

/// Bytes before the values: the codec's byte, slice and kept, the mode, and then the number of runs
/// and a run, or the hash of what is in common.
const EXACT: usize = 5 + 1 + 4 + 8 + 4 * DIM;
const fn compressed(kept: usize) -> usize {
    5 + 1 + 8 + 4 * (BEFORE + SLICES * kept)
}

/// Slices that depend on four hidden numbers each, of falling weight, and a little on chance.
fn deltas(round: usize) -> Vec<Vec<f32>> {
    let hidden = |at: usize, slice: usize, which: usize| {
        let place = (round * 131 + at * 37 + slice * 17) as f64;
        (place * (0.7 + 0.53 * which as f64)).sin() * 0.5f64.powi(which as i32)
    };
    let value = |at: usize, d: usize| {
        if d < BEFORE {
            return (d + at + round) as f32 * 0.25;
        }
        let (slice, place) = ((d - BEFORE) / SLICE, (d - BEFORE) % SLICE);
        let waves = (0..4)
            .map(|w| hidden(at, slice, w) * ((w + 1) as f64 * 0.6 * place as f64 + 0.3).cos());
        let chance = ((round * 53 + at * 29 + d * 31) % 97) as f64 / 97.0 - 0.5;
        (waves.sum::<f64>() + 0.02 * chance) as f32
    };
    let one = |at: usize| (0..DIM).map(|d| value(at, d)).collect();
    (0..PEERS).map(one).collect()
}

/// The eigenvectors of a symmetric matrix by Jacobi rotations, those of the largest eigenvalues
/// first.
fn eigenvectors(mut matrix: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let size = matrix.len();
    let mut vectors: Vec<Vec<f64>> = (0..size)
        .map(|row| {
            (0..size)
                .map(|column| f64::from(u8::from(row == column)))
                .collect()
        })
        .collect();
    for _ in 0..30 {
        for p in 0..size {
            for q in p + 1..size {
                if matrix[p][q] == 0.0 {
                    continue;
                }
                let angle = 0.5 * (2.0 * matrix[p][q]).atan2(matrix[q][q] - matrix[p][p]);
                let (sine, cosine) = angle.sin_cos();
                for row in &mut matrix {
                    (row[p], row[q]) = (
                        cosine * row[p] - sine * row[q],
                        sine * row[p] + cosine * row[q],
                    );
                }
                for column in 0..size {
                    let (a, b) = (matrix[p][column], matrix[q][column]);
                    (matrix[p][column], matrix[q][column]) =
                        (cosine * a - sine * b, sine * a + cosine * b);
                    let (a, b) = (vectors[p][column], vectors[q][column]);
                    (vectors[p][column], vectors[q][column]) =
                        (cosine * a - sine * b, sine * a + cosine * b);
                }
            }
        }
    }
    let mut order: Vec<usize> = (0..size).collect();
    order.sort_by(|a, b| matrix[*b][*b].total_cmp(&matrix[*a][*a]));
    order.into_iter().map(|at| vectors[at].clone()).collect()
}

/// The method as the paper has it, for one matrix, in f64.
struct Reference {
    kept: usize,
    sampled: usize,
    compressed: usize,
    moments: Vec<Vec<f64>>,
    components: Vec<Vec<f64>>,
    rounds: usize,
    errors: Vec<Vec<f64>>,
}

impl Reference {
    fn new(kept: usize, sampled: usize, compressed: usize) -> Self {
        Self {
            kept,
            sampled,
            compressed,
            moments: vec![vec![0.0; SLICE]; SLICE],
            components: Vec::new(),
            rounds: 0,
            errors: vec![vec![0.0; DIM]; PEERS],
        }
    }

    fn exact(&self) -> bool {
        self.rounds < self.sampled
    }

    /// `U U^T` of every slice.
    fn project(&self, values: &[f64]) -> Vec<f64> {
        let mut out = values[..BEFORE].to_vec();
        for slice in values[BEFORE..].chunks(SLICE) {
            let mut projected = vec![0.0; SLICE];
            for component in &self.components {
                let along: f64 = slice.iter().zip(component).map(|(a, b)| a * b).sum();
                projected
                    .iter_mut()
                    .zip(component)
                    .for_each(|(p, c)| *p += along * c);
            }
            out.extend(projected);
        }
        out
    }

    /// A round of these members; gives the move.
    fn round(&mut self, deltas: &[Vec<f32>], present: &[usize]) -> Vec<f64> {
        let mut moved = vec![0.0; DIM];
        for (at, delta) in deltas.iter().enumerate() {
            let sum = delta.iter().zip(&self.errors[at]);
            let v: Vec<f64> = sum.map(|(d, e)| f64::from(*d) + e).collect();
            let sent = if self.exact() {
                v.clone()
            } else {
                self.project(&v)
            };
            let counts = present.contains(&at);
            for d in 0..DIM {
                let gone = if counts { sent[d] } else { 0.0 };
                self.errors[at][d] = v[d] - gone;
                moved[d] += gone / present.len() as f64;
            }
        }
        if self.exact() {
            for slice in moved[BEFORE..].chunks(SLICE) {
                for (row, a) in self.moments.iter_mut().zip(slice) {
                    row.iter_mut().zip(slice).for_each(|(sum, b)| *sum += a * b);
                }
            }
        }
        self.rounds += 1;
        if self.rounds == self.sampled {
            self.components = eigenvectors(self.moments.clone());
            self.components.truncate(self.kept);
        }
        if self.rounds == self.sampled + self.compressed {
            *self = Self {
                errors: core::mem::take(&mut self.errors),
                ..Self::new(self.kept, self.sampled, self.compressed)
            };
        }
        moved
    }
}

#[test]
fn gradiveq_follows_the_paper() {
    for (kept, sampled, rounds) in [(3, 1, 4), (2, 3, 5)] {
        let given = [
            ("slice", SLICE as f64),
            ("kept", kept as f64),
            ("sampled", sampled as f64),
            ("compressed", rounds as f64),
        ];
        let mut group = Group::new(&kind("gradiveq", &given));
        let mut reference = Reference::new(kept, sampled, rounds);
        for round in 0..17 {
            // Now and then a member is left out, in exact rounds and in others.
            let absent = if round % 4 == 2 { round % PEERS } else { PEERS };
            let present: Vec<usize> = (0..PEERS).filter(|at| *at != absent).collect();
            let deltas = deltas(round);
            group.encode(&deltas);
            let size = if reference.exact() {
                EXACT
            } else {
                compressed(kept)
            };
            assert!(
                group.sent.iter().all(|bytes| bytes.len() == size),
                "round {round}"
            );
            let (moved, expected) = (group.gather(&present), reference.round(&deltas, &present));
            for d in 0..DIM {
                // f32 of values up to ten, over at most eight rounds of error feedback.
                assert!(
                    (f64::from(moved[d]) - expected[d]).abs() < 1e-4,
                    "round {round}, {d}"
                );
                for at in 0..PEERS {
                    let kept = group.residuals[at].as_ref().unwrap()[d];
                    let error = reference.errors[at][d];
                    assert!(
                        (f64::from(kept) - error).abs() < 1e-4,
                        "round {round}, {at}, {d}"
                    );
                }
            }
        }
    }
}

#[test]
fn more_components_leave_less_of_slices_that_are_correlated() {
    let mut lost = Vec::new();
    for kept in 1..SLICE {
        let given = [("slice", SLICE as f64), ("kept", kept as f64)];
        let mut group = Group::new(&kind("gradiveq", &given));
        group.encode(&deltas(0));
        group.gather(&all(0));
        let deltas = deltas(1);
        group.encode(&deltas);
        assert_eq!(group.sent[0].len(), compressed(kept));
        let moved = group.gather(&all(1));
        let mean = |d: usize| deltas.iter().map(|v| v[d]).sum::<f32>() / PEERS as f32;
        let squares = |of: &dyn Fn(usize) -> f32| -> f64 {
            (BEFORE..DIM).map(|d| f64::from(of(d)).powi(2)).sum()
        };
        lost.push((squares(&|d| moved[d] - mean(d)) / squares(&mean)).sqrt());
    }
    println!("{lost:?}");
    assert!(lost.is_sorted_by(|a, b| a > b), "{lost:?}");
    // Four hidden numbers make a slice: beyond these there is only chance.
    assert!(lost[0] > 0.1 && lost[2] > 5.0 * lost[3], "{lost:?}");
    assert!(lost[3] < 0.01, "{lost:?}");
}

#[test]
fn the_mean_of_reconstructions_is_the_reconstruction_of_the_mean() {
    let given = [("slice", SLICE as f64), ("kept", 3.0)];
    let mut group = Group::new(&kind("gradiveq", &given));
    group.encode(&deltas(0));
    group.gather(&all(0));
    group.encode(&deltas(1));
    let shared = group.shared.clone();
    let mut mean = vec![0.0f32; DIM];
    for bytes in &group.sent {
        let share = 1.0 / PEERS as f32;
        group.codecs[0]
            .decode_own(bytes, &shared, share, &mut mean)
            .unwrap();
    }
    let moved = group.gather(&all(1));
    // The same sums in another order.
    let off = moved.iter().zip(&mean).map(|(a, b)| (a - b).abs());
    assert!(off.fold(0.0, f32::max) < 1e-5);
}

#[test]
fn components_that_are_not_held_are_refused_and_who_holds_none_sends_exactly() {
    let given = [("slice", SLICE as f64), ("kept", 3.0)];
    let mut group = Group::new(&kind("gradiveq", &given));
    group.encode(&deltas(0));
    group.gather(&all(0));
    group.encode(&deltas(1));
    let (old, shared) = (group.sent[1].clone(), group.shared.clone());
    group.gather(&all(1));
    // The number of rounds is part of what is in common, so the hash of an old one is another.
    assert_ne!(shared, group.shared);
    let mut acc = vec![0.0; DIM];
    for other in [&[][..], &group.shared, &shared[..shared.len() - 1]] {
        let refused = group.codecs[0].decode_own(&old, other, 1.0, &mut acc);
        let field = "components";
        assert_eq!(refused, Err(CodecError::NotHeld { field }));
        assert!(acc.iter().all(|v| *v == 0.0));
    }

    // One member holds nothing, and one has no matrices: both send exactly, and both count.
    let deltas = deltas(2);
    group
        .residuals
        .iter_mut()
        .flatten()
        .for_each(|r| r.fill(0.0));
    group.encode(&deltas);
    for (at, shared, matrices) in [(1, &[][..], &MATRICES[..]), (2, &group.shared.clone(), &[])] {
        let (mut memory, mut bytes) = (Vec::new(), Vec::new());
        let mut context = EncodeContext {
            shared,
            matrices,
            ..EncodeContext::seeded(9, &mut memory)
        };
        group.codecs[at].encode(&deltas[at], &mut context, &mut bytes);
        assert_eq!(bytes.len(), EXACT);
        group.sent[at] = bytes;
    }
    let contributions = group.sent[1..3].iter().map(|bytes| Contributed {
        bytes,
        share: 0.5,
        held: &[],
    });
    let contributions: Vec<_> = contributions.collect();
    let agreed = Agreed {
        contributions: &contributions,
        own: None,
        round: 2,
        shared_seed: 2,
        shared: &group.shared,
    };
    let mut moved = vec![0.0; DIM];
    let gathering = group.codecs[0].gathering().unwrap();
    gathering.gather(&agreed, &mut moved).unwrap();
    for d in 0..DIM {
        assert_eq!(moved[d], 0.5 * deltas[1][d] + 0.5 * deltas[2][d]);
    }
}

#[test]
fn few_slices_and_as_many_components_as_values_are_sent_exactly_for_good() {
    for given in [
        [("slice", 10.0), ("kept", 3.0)],
        [("slice", 8.0), ("kept", 8.0)],
    ] {
        let mut group = Group::new(&kind("gradiveq", &given));
        for round in 0..3 {
            let deltas = deltas(round);
            group.encode(&deltas);
            assert_eq!(group.sent[0].len(), 5 + 1 + 4 + 4 * DIM);
            let moved = group.gather(&all(0));
            let mean = |d: usize| deltas.iter().map(|v| v[d]).sum::<f32>() / PEERS as f32;
            assert!((0..DIM).all(|d| (moved[d] - mean(d)).abs() < 1e-5));
            assert!(group.shared.is_empty());
        }
    }
}
