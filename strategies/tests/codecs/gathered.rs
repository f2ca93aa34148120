//! Codecs of gathered contributions: every one of them takes members whose data differ to their common
//! optimum, keeps the same bits in common at all of them, loses nothing, and refuses hostile bytes.

use crate::numbers::{gradient_f32, largest, only, quadratics, relative, wide};
use murmurate_strategies::compress::{Agreed, Contributed};
use murmurate_strategies::compress::{CODECS, Codec, CodecKind, EncodeContext, Matrix};

pub(crate) const PEERS: usize = 5;
pub(crate) const DIM: usize = 96;

/// The whole of it but for the first eight values is a matrix.
pub(crate) const MATRICES: [Matrix; 1] = [Matrix {
    offset: 8,
    rows: 8,
    columns: 11,
}];

pub(crate) fn kind(name: &str, given: &[(&str, f64)]) -> CodecKind {
    CodecKind::new(name, given).unwrap()
}

/// All codecs that make more of contributions than their mean, with a density at which 96 values are
/// learned in some hundred rounds.
fn kinds() -> Vec<CodecKind> {
    let mut all = vec![
        kind("ef21", &[("density", 0.1)]),
        kind("ef21", &[("of", 4.0)]),
        kind("diana", &[("density", 0.25)]),
        kind("diana", &[("of", 2.0)]),
        kind("lag", &[]),
        kind("lag", &[("of", 2.0), ("xi", 0.02)]),
        kind("lag", &[("rule", 1.0)]),
        kind("g-top-k", &[("density", 0.1)]),
        kind("ok-top-k", &[("density", 0.1), ("every", 8.0)]),
        kind("clt-k", &[("density", 0.1)]),
        kind("acp-sgd", &[("rank", 2.0)]),
        kind(
            "gradiveq",
            &[("slice", 8.0), ("kept", 4.0), ("compressed", 9.0)],
        ),
        kind(
            "fetch-sgd",
            &[("density", 0.05), ("width", 0.5), ("momentum", 0.5)],
        ),
    ];
    let listed = |name: &str| all.iter().any(|kind| kind.name() == name);
    for spec in CODECS {
        let given: Vec<_> = spec
            .parameters
            .iter()
            .filter(|p| p.default.is_none())
            .collect();
        let given: Vec<_> = given.iter().map(|p| (p.name, 0.1)).collect();
        let gathers = kind(spec.name, &given).build().gathering().is_some();
        assert_eq!(gathers, listed(spec.name), "{}", spec.name);
    }
    all.sort_by_key(CodecKind::name);
    all
}

/// Members of a group, each with a codec of its own, as the Executors would have them.
pub(crate) struct Group {
    pub(crate) codecs: Vec<Box<dyn Codec>>,
    pub(crate) residuals: Vec<Option<Vec<f32>>>,
    memories: Vec<Vec<f32>>,
    /// The first plane of each.
    planes: Vec<Vec<f32>>,
    /// The anchor of the next contributions.
    pub(crate) anchor: Vec<f32>,
    pub(crate) shared: Vec<f32>,
    held: Vec<Vec<f32>>,
    round: u64,
    /// Bytes of the last round, of each.
    pub(crate) sent: Vec<Vec<u8>>,
}

impl Group {
    pub(crate) fn new(kind: &CodecKind) -> Self {
        let codecs: Vec<_> = (0..PEERS).map(|_| kind.build()).collect();
        let feeds = codecs[0].properties().needs_feedback;
        let plane = DIM * codecs[0].properties().planes;
        Self {
            codecs,
            residuals: vec![feeds.then(|| vec![0.0; DIM]); PEERS],
            memories: vec![Vec::new(); PEERS],
            planes: vec![vec![0.0; plane]; PEERS],
            anchor: Vec::new(),
            shared: Vec::new(),
            held: vec![Vec::new(); PEERS],
            round: 0,
            sent: Vec::new(),
        }
    }

    pub(crate) fn encode(&mut self, values: &[Vec<f32>]) {
        self.sent.clear();
        for (at, values) in values.iter().enumerate() {
            let mut bytes = Vec::new();
            let mut context = EncodeContext {
                shared_seed: self.round,
                round: self.round,
                matrices: &MATRICES,
                shared: &self.shared,
                held: &self.held[at],
                anchor: &self.anchor,
                planes: [&mut self.planes[at], &mut []],
                ..EncodeContext::seeded(self.round * 16 + at as u64 + 1, &mut self.memories[at])
            };
            match &mut self.residuals[at] {
                Some(residual) => {
                    self.codecs[at].encode_residual(values, residual, &mut context, &mut bytes);
                }
                None => self.codecs[at].encode(values, &mut context, &mut bytes),
            }
            self.sent.push(bytes);
        }
    }

    /// Those present take the round in; the others' contributions are left out, at themselves too.
    pub(crate) fn gather(&mut self, present: &[usize]) -> Vec<f32> {
        let contributions: Vec<Contributed<'_>> = present
            .iter()
            .map(|at| Contributed {
                bytes: &self.sent[*at],
                share: 1.0 / present.len() as f32,
                held: &self.held[*at],
            })
            .collect();
        let mut outcome: Option<(Vec<f32>, Vec<f32>)> = None;
        for at in 0..PEERS {
            let own = present.iter().position(|p| *p == at);
            let agreed = Agreed {
                contributions: &contributions,
                own,
                round: self.round,
                shared_seed: self.round,
                shared: &self.shared,
            };
            let (mut moved, mut next) = (vec![0.0; DIM], Vec::new());
            let gathering = self.codecs[at].gathering().unwrap();
            let mut residual = self.residuals[at].as_deref_mut();
            if let (None, Some(residual)) = (own, &mut residual) {
                let sent = &self.sent[at];
                gathering.give_back(sent, &self.shared, residual).unwrap();
            }
            gathering.gather(&agreed, &mut moved).unwrap();
            if let Some(residual) = residual {
                gathering.take_back(&agreed, &moved, residual);
            }
            gathering.settle(&agreed, &moved, &mut next);
            assert!(next.len() <= gathering.shared_most(DIM));
            let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            if let Some((first, kept)) = &outcome {
                assert_eq!(bits(first), bits(&moved), "all move alike");
                assert_eq!(bits(kept), bits(&next), "all keep the same in common");
            }
            outcome = Some((moved, next));
        }
        let holds = self.codecs[0].gathering().unwrap().holds();
        for at in present.iter().filter(|_| holds) {
            self.held[*at].resize(DIM, 0.0);
            let gathering = self.codecs[0].gathering().unwrap();
            gathering
                .hold(&self.sent[*at], &mut self.held[*at])
                .unwrap();
        }
        let (moved, next) = outcome.unwrap();
        self.shared = next;
        self.round += 1;
        moved
    }
}

/// Gradient descent; gives the distance from the optimum in shares of the start's, and the bytes sent.
fn descend(
    kind: &CodecKind,
    rate: f32,
    rounds: u64,
    present: impl Fn(u64) -> Vec<usize>,
) -> (f64, usize) {
    let (peers, mut group) = (quadratics(DIM, 1.0, PEERS, 3), Group::new(kind));
    let (mut x, mut bytes) = (vec![0.0f32; DIM], 0);
    for round in 0..rounds {
        group.anchor.clone_from(&x);
        let gradients = peers.iter().map(|peer| gradient_f32(peer, &x));
        group.encode(&gradients.collect::<Vec<_>>());
        bytes += group.sent.iter().map(Vec::len).sum::<usize>();
        let moved = group.gather(&present(round));
        x.iter_mut().zip(&moved).for_each(|(x, g)| *x -= rate * g);
    }
    (relative(&x, peers[0].optimum()), bytes)
}

pub(crate) fn all(_: u64) -> Vec<usize> {
    (0..PEERS).collect()
}

/// Values of all members, by member and place.
fn each(value: impl Fn(usize, usize) -> f32) -> Vec<Vec<f32>> {
    let one = |at| (0..DIM).map(|d| value(at, d)).collect();
    (0..PEERS).map(one).collect()
}

#[test]
fn all_of_them_reach_the_common_optimum() {
    for kind in kinds() {
        // Where the members differ a residual never comes to rest: it is as large as the rate.
        let feeds = kind.build().properties().needs_feedback;
        let near = match kind.name() {
            "ef21" | "diana" | "lag" => 1e-4,
            _ => 0.05,
        };
        let rate = if feeds { 0.02 } else { 0.05 };
        let (off, _) = descend(&kind, rate, 3000, all);
        assert!(off < near, "{kind:?}: {off}");
    }
}

#[test]
fn a_smaller_rate_takes_what_a_residual_holds_nearer() {
    for kind in kinds() {
        if !kind.build().properties().needs_feedback {
            continue;
        }
        let (coarse, _) = descend(&kind, 0.04, 3000, all);
        let (fine, _) = descend(&kind, 0.005, 12_000, all);
        let exact = fine.max(coarse) < 1e-4;
        assert!(exact || fine < 0.5 * coarse, "{kind:?}: {coarse} {fine}");
    }
}

#[test]
fn members_that_are_left_out_now_and_then_do_no_harm() {
    // If the state of an absent member were lost, the optimum would be wrong for good.
    let some = |round: u64| {
        let absent = (round % 7) as usize;
        (0..PEERS).filter(|at| *at != absent).collect()
    };
    for kind in kinds() {
        let feeds = kind.build().properties().needs_feedback;
        let rate = if feeds { 0.02 } else { 0.05 };
        let exact = descend(&kind_of_f32(), rate, 3000, some).0;
        let (off, _) = descend(&kind, rate, 3000, some);
        assert!(
            off < exact + 0.1,
            "{kind:?}: {off}, exact gradients {exact}"
        );
    }
}

/// Exact contributions, which go the way of gathered ones.
fn kind_of_f32() -> CodecKind {
    kind("lag", &[("xi", 0.0)])
}

#[test]
fn a_sketch_that_is_too_crowded_diverges() {
    let crowded = [
        ("density", 0.1),
        ("width", 0.5),
        ("rows", 3.0),
        ("momentum", 0.5),
    ];
    let (off, _) = descend(&kind("fetch-sgd", &crowded), 0.05, 3000, all);
    assert!(off > 100.0, "{off}");
}

#[test]
fn lazy_members_send_less_and_reach_the_same() {
    let (off, bytes) = descend(&kind("lag", &[]), 0.05, 2000, all);
    let (exact, every) = descend(&kind_of_f32(), 0.05, 2000, all);
    assert!(off < 1e-4 && exact < 1e-4, "{off} {exact}");
    assert!(2 * bytes < every, "{bytes} of {every}");
}

#[test]
fn nothing_is_lost() {
    // sum of moves + mean of residuals = sum of the mean deltas, also where contributions do not count.
    for kind in kinds() {
        if !kind.build().properties().needs_feedback {
            continue;
        }
        let mut group = Group::new(&kind);
        let (mut moved, mut learned) = (vec![0.0f64; DIM], vec![0.0f64; DIM]);
        for round in 0..40usize {
            let value =
                |at: usize, d: usize| ((round * 37 + at * 17 + d * 11) % 41) as f32 / 8.0 - 2.5;
            let deltas = each(value);
            for (d, learned) in learned.iter_mut().enumerate() {
                *learned += (0..PEERS).map(|at| f64::from(deltas[at][d])).sum::<f64>();
            }
            group.encode(&deltas);
            let absent = if round % 5 == 3 { round % PEERS } else { PEERS };
            let present: Vec<usize> = (0..PEERS).filter(|at| *at != absent).collect();
            let count = present.len() as f64;
            for (sum, m) in moved.iter_mut().zip(group.gather(&present)) {
                *sum += count * f64::from(m);
            }
        }
        for d in 0..DIM {
            let left: f64 = group
                .residuals
                .iter()
                .flatten()
                .map(|r| f64::from(r[d]))
                .sum();
            let (found, expected) = (moved[d] + left, learned[d]);
            assert!(
                (found - expected).abs() < 2e-2,
                "{kind:?}: {found} {expected}"
            );
        }
    }
}

#[test]
fn of_the_sum_the_largest_move_and_the_rest_goes_back() {
    let kind = kind("g-top-k", &[("density", 0.1)]);
    let mut group = Group::new(&kind);
    let kept = (DIM as f64 * 0.1).ceil() as usize;
    let value = |at: usize, d: usize| ((d * 31 + at * 57) % 97) as f32 - 48.0;
    let deltas = each(value);
    group.encode(&deltas);
    let moved = group.gather(&all(0));
    // In f64: top-k of each, mean, top-k of that.
    let top = |values: &[f64]| only(values, &largest(values, kept));
    let wide: Vec<Vec<f64>> = deltas.iter().map(|v| wide(v)).collect();
    let tops: Vec<Vec<f64>> = wide.iter().map(|v| top(v)).collect();
    let mean: Vec<f64> = (0..DIM)
        .map(|d| tops.iter().map(|t| t[d]).sum::<f64>() / PEERS as f64)
        .collect();
    let expected = top(&mean);
    for d in 0..DIM {
        assert!((f64::from(moved[d]) - expected[d]).abs() < 1e-5, "{d}");
        for at in 0..PEERS {
            let left = f64::from(group.residuals[at].as_ref().unwrap()[d]);
            let own = if expected[d] == 0.0 {
                wide[at][d]
            } else {
                wide[at][d] - tops[at][d]
            };
            assert!((left - own).abs() < 1e-5, "{at} {d}");
        }
    }
}

#[test]
fn the_leader_chooses_for_all_and_the_lead_goes_round() {
    let mut group = Group::new(&kind("clt-k", &[("density", 0.1)]));
    let kept = (DIM as f64 * 0.1).ceil() as usize;
    let mut leaders = Vec::new();
    let mut chosen: Option<Vec<usize>> = None;
    for round in 0..12usize {
        let value = |at: usize, d: usize| ((d * 31 + at * 57 + round * 13) % 97) as f32 - 47.5;
        let deltas = each(value);
        group.encode(&deltas);
        let shortest = group.sent.iter().map(Vec::len).min().unwrap();
        let leader = group.sent.iter().position(|bytes| bytes.len() > shortest);
        let proposed =
            leader.map(|leader| largest(&wide(group.residuals[leader].as_ref().unwrap()), kept));
        leaders.extend(leader);
        let moved = group.gather(&all(0));
        let places: Vec<usize> = (0..DIM).filter(|d| moved[*d] != 0.0).collect();
        if let Some(chosen) = &chosen {
            assert!(places.iter().all(|place| chosen.contains(place)), "{round}");
            assert!(places.len() + 2 >= kept, "all but means of zero");
        }
        chosen = proposed;
    }
    // No member leads the first round. Then all take turns.
    let expected: Vec<usize> = (1..12).map(|round| round % PEERS).collect();
    assert_eq!(leaders, expected);
}

#[test]
fn factors_take_turns_and_the_mean_of_products_is_the_product_of_the_mean() {
    let kind = kind("acp-sgd", &[("rank", 2.0)]);
    let mut group = Group::new(&kind);
    // Members' matrices have a common row space of rank two: two rounds find it.
    let value = |at: usize, row: usize, column: usize| {
        let (a, b) = ((row * 3 + at) as f32, (row * 5 + 2 * at) as f32);
        a.sin() * (column as f32 * 0.7).cos() + b.cos() * (column as f32 * 1.3).sin()
    };
    let one = |at: usize| -> Vec<f32> {
        let edge = (0..8).map(|d| d as f32 + at as f32);
        edge.chain((0..88).map(|d| value(at, d / 11, d % 11)))
            .collect()
    };
    let deltas: Vec<Vec<f32>> = (0..PEERS).map(one).collect();
    let mut sizes = Vec::new();
    let mut lost = Vec::new();
    for _ in 0..8 {
        // Without what was left out before: each round by itself.
        group
            .residuals
            .iter_mut()
            .flatten()
            .for_each(|r| r.fill(0.0));
        group.encode(&deltas);
        sizes.push(group.sent[0].len());
        let moved = group.gather(&all(0));
        let mean = |d: usize| deltas.iter().map(|v| v[d]).sum::<f32>() / PEERS as f32;
        for (d, moved) in moved.iter().enumerate().take(8) {
            assert!(
                (moved - mean(d)).abs() < 1e-5,
                "what is no matrix goes exactly"
            );
        }
        let far = (8..DIM)
            .map(|d| f64::from(moved[d] - mean(d)).powi(2))
            .sum::<f64>();
        let all = (8..DIM).map(|d| f64::from(mean(d)).powi(2)).sum::<f64>();
        lost.push((far / all).sqrt());
    }
    // Header 2, side 1, name 8, count 4, matrix 12, values 8; a factor of 8 or of 11 rows and two columns.
    let of = |rows: usize| 2 + 1 + 8 + 4 + 12 + 4 * (8 + 2 * rows);
    assert_eq!(sizes[..4], [of(8), of(11), of(8), of(11)]);
    assert!(lost[7] < 0.3 * lost[0] + 1e-6, "{lost:?}");
}

#[test]
fn sums_of_sketches_are_sketches_of_sums() {
    // With classes enough nothing collides in the median: what moves is the largest of u and e, exactly.
    let kind = kind(
        "fetch-sgd",
        &[
            ("density", 0.05),
            ("width", 1.0),
            ("rows", 7.0),
            ("momentum", 0.5),
        ],
    );
    let mut group = Group::new(&kind);
    let kept = (DIM as f64 * 0.05).ceil() as usize;
    let (mut u, mut e) = (vec![0.0f64; DIM], vec![0.0f64; DIM]);
    for round in 0..3usize {
        // Few large values: a sketch finds these.
        let value = |at: usize, d: usize| match d % 19 {
            3 => (d + 10 * at + round) as f32,
            _ => 0.0,
        };
        let deltas = each(value);
        group.encode(&deltas);
        let moved = group.gather(&all(0));
        for d in 0..DIM {
            let mean = (0..PEERS).map(|at| f64::from(deltas[at][d])).sum::<f64>() / PEERS as f64;
            u[d] = 0.5 * u[d] + mean;
            e[d] += u[d];
        }
        for d in largest(&e, kept) {
            let off = (f64::from(moved[d]) - e[d]).abs();
            assert!(off < 1e-3 * e[d].abs(), "{round} {d}");
            e[d] = 0.0;
        }
    }
}

#[test]
fn hostile_contributions_are_named_or_harmless() {
    for kind in kinds() {
        let mut group = Group::new(&kind);
        for round in 0..6usize {
            let value = |at: usize, d: usize| ((d * 31 + at * 57 + round * 13) % 97) as f32 - 47.5;
            let deltas = each(value);
            group.encode(&deltas);
            let good = group.sent[2].clone();
            let mut tried: Vec<Vec<u8>> = (0..good.len()).map(|len| good[..len].to_vec()).collect();
            tried.push([&good[..], &[0]].concat());
            tried.extend((0..8 * good.len()).map(|bit| {
                let mut bad = good.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                bad
            }));
            let cut = good.len() + 1;
            for (index, bytes) in tried.iter().enumerate() {
                let mut contributions: Vec<Contributed<'_>> = (0..PEERS)
                    .map(|at| Contributed {
                        bytes: &group.sent[at],
                        share: 0.2,
                        held: &group.held[at],
                    })
                    .collect();
                contributions[2].bytes = bytes;
                let agreed = Agreed {
                    contributions: &contributions,
                    own: None,
                    round: group.round,
                    shared_seed: group.round,
                    shared: &group.shared,
                };
                let mut moved = vec![0.0; DIM];
                let gathered = group.codecs[0]
                    .gathering()
                    .unwrap()
                    .gather(&agreed, &mut moved);
                match gathered {
                    Err(bad) => assert_eq!(bad.at, 2, "{kind:?}: {bad:?}"),
                    // `lag` may say nothing at all: that is two bytes and a word of no more.
                    Ok(()) => {
                        assert!(
                            index >= cut || kind.name() == "lag",
                            "{kind:?}: cut to {index}"
                        );
                        assert!(moved.iter().all(|v| v.is_finite()), "{kind:?}");
                    }
                }
            }
            let _ = group.gather(&all(0));
        }
    }
}
