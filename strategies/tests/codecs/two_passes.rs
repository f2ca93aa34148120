//! Codecs of two passes against references of their own in f64: what moves, what is left, and what is kept
//! in common. Nothing learned is lost when a member is left out, members whose data differ come to their common
//! optimum, and hostile bytes are refused.
#![allow(
    clippy::too_many_lines,
    clippy::needless_range_loop,
    clippy::useless_vec,
    reason = "a reference follows the algorithm of the paper line by line"
)]

use crate::numbers::{gradient_f32, quadratics, relative, wide};
use murmurate_strategies::compress::Bad;
use murmurate_strategies::compress::{CODECS, Codec, CodecKind, EncodeContext, Joined, Matrix};

use proptest::prelude::*;

const PEERS: usize = 5;
const DIM: usize = 96;
const ROWS: usize = 8;
const COLUMNS: usize = 11;
const RANK: usize = 2;

/// The whole of it but for the first eight values is a matrix.
const MATRICES: [Matrix; 1] = [Matrix {
    offset: DIM - ROWS * COLUMNS,
    rows: ROWS,
    columns: COLUMNS,
}];

fn power() -> CodecKind {
    CodecKind::new("power-sgd-mean", &[("rank", RANK as f64)]).unwrap()
}

fn sketched() -> CodecKind {
    let given = [("density", 0.1), ("width", 0.5), ("rows", 5.0)];
    CodecKind::new("sketched-sgd", &given).unwrap()
}

/// Members of a group, each with a codec of its own, as the Executors would have them.
struct Group {
    codecs: Vec<Box<dyn Codec>>,
    residuals: Vec<Vec<f32>>,
    shared: Vec<f32>,
    round: u64,
    /// Bytes of the last round: first contributions, the basis, second contributions, what was joined.
    firsts: Vec<Vec<u8>>,
    basis: Vec<u8>,
    seconds: Vec<Vec<u8>>,
    joined: Vec<u8>,
}

impl Group {
    fn new(kind: &CodecKind) -> Self {
        Self {
            codecs: (0..PEERS).map(|_| kind.build()).collect(),
            residuals: vec![vec![0.0; DIM]; PEERS],
            shared: Vec::new(),
            round: 0,
            firsts: Vec::new(),
            basis: Vec::new(),
            seconds: Vec::new(),
            joined: Vec::new(),
        }
    }

    /// A round to which `first` contribute once and `second`, who are among them, twice. Gives what moves.
    fn round(&mut self, values: &[Vec<f32>], first: &[usize], second: &[usize]) -> Vec<f32> {
        let (mut memory, shared) = (Vec::new(), self.shared.clone());
        let context = EncodeContext {
            shared_seed: self.round,
            round: self.round,
            matrices: &MATRICES,
            shared: &shared,
            ..EncodeContext::seeded(self.round, &mut memory)
        };
        self.firsts.clear();
        self.seconds.clear();
        for at in 0..PEERS {
            let (residual, mut bytes) = (&mut self.residuals[at], Vec::new());
            residual
                .iter_mut()
                .zip(&values[at])
                .for_each(|(e, v)| *e += v);
            let twice = self.codecs[at].two_passes().unwrap();
            twice.first(residual, &context, &mut bytes);
            self.firsts.push(bytes);
        }
        let weighed = self::weighed(&self.firsts, first);
        let owner = self.codecs[0].two_passes().unwrap();
        self.basis.clear();
        let made = owner.basis(&weighed, context.pass(DIM, &mut self.basis));
        made.unwrap();
        for at in 0..PEERS {
            let mut bytes = Vec::new();
            let twice = self.codecs[at].two_passes().unwrap();
            let residual = &self.residuals[at];
            let made = twice.second(residual, &self.basis, context.pass(DIM, &mut bytes));
            made.unwrap();
            self.seconds.push(bytes);
        }
        let weighed = self::weighed(&self.seconds, second);
        let owner = self.codecs[0].two_passes().unwrap();
        self.joined.clear();
        let (basis, joined) = (&self.basis, &mut self.joined);
        let made = owner.join(basis, &weighed, context.pass(DIM, joined));
        made.unwrap();
        let mut moved = vec![0.0; DIM];
        let aggregate = self.codecs[0].aggregate();
        aggregate.decode_add(&self.joined, 1.0, &mut moved).unwrap();
        for at in second {
            let own = Joined {
                basis: &self.basis,
                second: &self.seconds[*at],
                aggregate: &self.joined,
            };
            let twice = self.codecs[*at].two_passes().unwrap();
            twice
                .take_out(own, &context, &mut self.residuals[*at])
                .unwrap();
        }
        let mut next = Vec::new();
        for at in 0..PEERS {
            let mut own = Vec::new();
            let twice = self.codecs[at].two_passes().unwrap();
            twice.keep(&self.joined, DIM, &context, &mut own);
            assert!(next.is_empty() || next == own, "all keep the same");
            assert!(own.len() <= twice.shared_most(DIM));
            next = own;
        }
        self.shared = next;
        self.round += 1;
        moved
    }
}

/// The encodings of some members, with equal shares.
fn weighed<'a>(bytes: &'a [Vec<u8>], who: &[usize]) -> Vec<(&'a [u8], f32)> {
    let share = 1.0 / who.len() as f32;
    who.iter()
        .map(|at| (bytes[*at].as_slice(), share))
        .collect()
}

fn all() -> Vec<usize> {
    (0..PEERS).collect()
}

/// Values that differ between members, and have something in common.
fn values(round: u64) -> Vec<Vec<f32>> {
    let value = |who: usize, d: usize| {
        let common = ((d * 37 + round as usize * 11) % 41) as f32 / 8.0 - 2.5;
        common + ((d * 13 + who * 29 + round as usize * 7) % 17) as f32 / 16.0
    };
    let of = |who| (0..DIM).map(|d| value(who, d)).collect();
    (0..PEERS).map(of).collect()
}

#[test]
fn the_two_codecs_are_those_of_two_passes() {
    let names = CODECS.iter().filter(|spec| {
        let kind = crate::slice::kind(spec, 0.1);
        kind.build().two_passes().is_some()
    });
    let names: Vec<_> = names.map(|spec| spec.name).collect();
    assert_eq!(names, ["power-sgd-mean", "sketched-sgd"]);
}

/// Vogels et al., algorithm 1 with the residuals of algorithm 2, in f64: P = orth(mean M_i Q), Q_i = M_i^T P,
/// moved = P (mean Q_i)^T, e_i = M_i - P Q_i^T.
#[test]
fn power_sgd_mean_follows_the_paper() {
    let offset = MATRICES[0].offset;
    let mut group = Group::new(&power());
    let mut residuals = vec![vec![0.0f64; DIM]; PEERS];
    // The first Q is drawn: the reference takes it from the second round on.
    for round in 0..12 {
        let given = values(round);
        let kept = wide(&group.shared);
        let moved = group.round(&given, &all(), &all());
        if kept.is_empty() {
            residuals = group.residuals.iter().map(|e| wide(e)).collect();
            continue;
        }
        let m: Vec<Vec<f64>> = (0..PEERS)
            .map(|i| {
                (0..DIM)
                    .map(|d| residuals[i][d] + f64::from(given[i][d]))
                    .collect()
            })
            .collect();
        let at = |i: usize, row: usize, column: usize| m[i][offset + row * COLUMNS + column];
        let mean = |row, column| (0..PEERS).map(|i| at(i, row, column)).sum::<f64>() / PEERS as f64;
        let mut p = vec![[0.0f64; ROWS]; RANK];
        for r in 0..RANK {
            for row in 0..ROWS {
                p[r][row] = (0..COLUMNS)
                    .map(|c| mean(row, c) * kept[r * COLUMNS + c])
                    .sum();
            }
            for other in 0..r {
                let along: f64 = (0..ROWS).map(|row| p[r][row] * p[other][row]).sum();
                (0..ROWS).for_each(|row| p[r][row] -= along * p[other][row]);
            }
            let length = p[r].iter().map(|v| v * v).sum::<f64>().sqrt();
            p[r].iter_mut().for_each(|v| *v /= length);
        }
        let project = |i: Option<usize>, row: usize, column: usize| -> f64 {
            let value = |k| i.map_or_else(|| mean(k, column), |i| at(i, k, column));
            let q = |r: usize| (0..ROWS).map(|k| value(k) * p[r][k]).sum::<f64>();
            (0..RANK).map(|r| p[r][row] * q(r)).sum()
        };
        for row in 0..ROWS {
            for column in 0..COLUMNS {
                let d = offset + row * COLUMNS + column;
                // Rounding of the factors to f32, of values up to about 30.
                let close = |a: f32, b: f64| assert!((f64::from(a) - b).abs() < 3e-4, "{a} {b}");
                close(moved[d], project(None, row, column));
                for i in 0..PEERS {
                    residuals[i][d] = at(i, row, column) - project(Some(i), row, column);
                    close(group.residuals[i][d], residuals[i][d]);
                }
            }
        }
        for d in 0..offset {
            let mean = (0..PEERS).map(|i| m[i][d]).sum::<f64>() / PEERS as f64;
            assert!((f64::from(moved[d]) - mean).abs() < 1e-5);
            residuals.iter_mut().for_each(|e| e[d] = 0.0);
            assert!(group.residuals.iter().all(|e| e[d] == 0.0));
        }
        // The next round starts from the mean of Q_i, with columns of length one.
        let columns = group.shared.chunks(COLUMNS);
        let long = |c: &[f32]| c.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>();
        assert!(
            columns.clone().count() == RANK
                && columns.clone().all(|c| (long(c) - 1.0).abs() < 1e-5)
        );
    }
}

/// The same matrix at all members, again and again: the projection becomes that on its first singular
/// vectors, as the power iteration's warm start promises.
#[test]
fn the_warm_start_finds_a_matrix_of_low_rank() {
    let mut group = Group::new(&power());
    let (u, v) = (
        |row: usize| 1.0 + row as f32 * 0.25,
        |c: usize| 2.0 - c as f32 * 0.3,
    );
    let (s, t) = (
        |row: usize| (row % 3) as f32 - 1.0,
        |c: usize| (c % 4) as f32 - 1.5,
    );
    let mut matrix = vec![0.0; DIM];
    for row in 0..ROWS {
        for column in 0..COLUMNS {
            matrix[8 + row * COLUMNS + column] = u(row) * v(column) + s(row) * t(column);
        }
    }
    let moved = group.round(&vec![matrix.clone(); PEERS], &all(), &all());
    for (moved, value) in moved.iter().zip(&matrix) {
        assert!(
            (moved - value).abs() < 1e-4,
            "rank two is found in one round"
        );
    }
}

/// Ivkin et al., algorithm 2: of the candidates that the sum of sketches names, the k largest exact means
/// move, and there a member's residual is empty.
#[test]
fn sketched_sgd_moves_exact_means_of_the_largest_candidates() {
    let mut group = Group::new(&sketched());
    for round in 0..20 {
        let before = group.residuals.clone();
        let given = values(round);
        let moved = group.round(&given, &all(), &all());
        let mean = |d: usize| {
            let all = (0..PEERS).map(|i| f64::from(before[i][d] + given[i][d]));
            all.sum::<f64>() / PEERS as f64
        };
        let places: Vec<usize> = (0..DIM).filter(|d| moved[*d] != 0.0).collect();
        assert_eq!(places.len(), (0.1f64 * DIM as f64).ceil() as usize);
        for d in 0..DIM {
            match moved[d] == 0.0 {
                true => (0..PEERS).for_each(|i| {
                    assert_eq!(group.residuals[i][d], before[i][d] + given[i][d]);
                }),
                false => {
                    assert!((f64::from(moved[d]) - mean(d)).abs() < 1e-4);
                    assert!(group.residuals.iter().all(|e| e[d] == 0.0));
                }
            }
        }
        // Candidates are four times as many: the largest of all means is among them and moves.
        let largest = (0..DIM)
            .max_by(|a, b| mean(*a).abs().total_cmp(&mean(*b).abs()))
            .unwrap();
        assert!(places.contains(&largest), "round {round}");
    }
}

/// Where every place is a candidate and all are kept, the mean moves.
#[test]
fn with_all_places_as_candidates_the_mean_moves() {
    let given = [("density", 1.0), ("width", 0.1)];
    let mut group = Group::new(&CodecKind::new("sketched-sgd", &given).unwrap());
    let given = values(3);
    let moved = group.round(&given, &all(), &all());
    for (d, moved) in moved.iter().enumerate() {
        let mean = given.iter().map(|v| v[d]).sum::<f32>() / PEERS as f32;
        assert!((moved - mean).abs() < 1e-5);
    }
}

/// Whether a combination worked or names the second contribution as bad.
fn second_or_none(made: &Result<(), Bad>) -> bool {
    matches!(made, Ok(()) | Err(Bad { at: 1, .. }))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Any members may be left out of a pass: n times what moved and the residuals sum to what was learned, where n
    /// is the number of those in the second pass.
    #[test]
    fn nothing_learned_is_lost(drawn in proptest::collection::vec((0u8..32, 0u8..32), 1..8)) {
        for kind in [power(), sketched()] {
            let mut group = Group::new(&kind);
            let mut sum = vec![0.0f64; DIM];
            for (round, (first, second)) in drawn.iter().enumerate() {
                let (first, second) = (first | 1, (second & first) | 1);
                let of = |bits: u8| (0..PEERS).filter(|i| bits >> i & 1 == 1).collect::<Vec<_>>();
                let given = values(round as u64);
                let moved = group.round(&given, &of(first), &of(second));
                let count = of(second).len() as f64;
                for (d, sum) in sum.iter_mut().enumerate() {
                    let learned: f64 = given.iter().map(|v| f64::from(v[d])).sum();
                    *sum += learned - count * f64::from(moved[d]);
                }
            }
            for (d, sum) in sum.iter().enumerate() {
                let kept: f64 = group.residuals.iter().map(|e| f64::from(e[d])).sum();
                // f32 rounding of at most eight rounds, of values up to a hundred.
                prop_assert!((sum - kept).abs() < 5e-3, "{} {}: {sum} {kept}", kind.name(), d);
            }
        }
    }

    /// A byte more, less or another one: refused, or read as other finite values.
    #[test]
    fn hostile_bytes_are_refused_or_harmless(at in any::<prop::sample::Index>(), to in any::<u8>()) {
        for kind in [power(), sketched()] {
            let mut group = Group::new(&kind);
            group.round(&values(0), &all(), &all());
            let (mut memory, shared) = (Vec::new(), Vec::new());
            let context = EncodeContext {
                shared_seed: 0,
                matrices: &MATRICES,
                shared: &shared,
                ..EncodeContext::seeded(0, &mut memory)
            };
            let damage = |bytes: &[u8]| -> Vec<Vec<u8>> {
                let mut other = bytes.to_vec();
                let place = at.index(other.len());
                other[place] = to;
                let (mut short, mut long) = (bytes.to_vec(), bytes.to_vec());
                short.truncate(place);
                long.push(to);
                vec![other, short, long]
            };
            let mut codec = kind.build();
            let twice = codec.two_passes().unwrap();
            for first in damage(&group.firsts[1]) {
                let mut out = Vec::new();
                let inputs = [(group.firsts[0].as_slice(), 0.5), (first.as_slice(), 0.5)];
                let made = twice.basis(&inputs, context.pass(DIM, &mut out));
                prop_assert!(second_or_none(&made));
            }
            for basis in damage(&group.basis) {
                let mut out = Vec::new();
                let _ = twice.second(&values(0)[0], &basis, context.pass(DIM, &mut out));
            }
            for second in damage(&group.seconds[1]) {
                let (mut out, mut moved) = (Vec::new(), vec![0.0; DIM]);
                let inputs = [(group.seconds[0].as_slice(), 0.5), (second.as_slice(), 0.5)];
                let made = twice.join(&group.basis, &inputs, context.pass(DIM, &mut out));
                prop_assert!(second_or_none(&made));
                if made.is_ok() {
                    kind.build().decode_add(&out, 1.0, &mut moved).unwrap();
                    prop_assert!(moved.iter().all(|v| v.is_finite()));
                }
            }
        }
    }
}

/// A second contribution for another basis is not summed.
#[test]
fn contributions_for_another_basis_are_refused() {
    for kind in [power(), sketched()] {
        let mut group = Group::new(&kind);
        group.round(&values(0), &all(), &all());
        let late = group.seconds[2].clone();
        group.round(&values(1), &all(), &all());
        let (mut memory, mut out) = (Vec::new(), Vec::new());
        let context = EncodeContext {
            matrices: &MATRICES,
            ..EncodeContext::seeded(1, &mut memory)
        };
        let mut codec = kind.build();
        let twice = codec.two_passes().unwrap();
        let inputs = [(group.seconds[0].as_slice(), 0.5), (late.as_slice(), 0.5)];
        let made = twice.join(&group.basis, &inputs, context.pass(DIM, &mut out));
        assert!(matches!(made, Err(Bad { at: 1, .. })), "{}", kind.name());
    }
}

/// Gradient descent of members whose optima and curvatures differ.
#[test]
fn members_with_unequal_data_come_to_their_common_optimum() {
    for kind in [power(), sketched()] {
        let peers = quadratics(DIM, 1.0, PEERS, 3);
        let mut group = Group::new(&kind);
        let mut x = vec![0.0f32; DIM];
        for _ in 0..4000 {
            let gradients = peers.iter().map(|peer| gradient_f32(peer, &x));
            let moved = group.round(&gradients.collect::<Vec<_>>(), &all(), &all());
            x.iter_mut().zip(&moved).for_each(|(x, g)| *x -= 0.01 * g);
        }
        let far = relative(&x, peers[0].optimum());
        println!("{}: {far:.2e}", kind.name());
        assert!(far < 0.02, "{}: {far}", kind.name());
    }
}
