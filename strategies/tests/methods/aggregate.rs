//! Aggregation rules against their papers: a reference in f64 for each, and what f liars among n can do.

use crate::numbers::wide;
use murmurate_strategies::aggregate::{
    AggregationKind, Aggregator, Bucketing, CenteredClip, GeometricMedian, Input, Krum, Median,
    TrimmedMean,
};

type Vectors = Vec<Vec<f32>>;

const LENGTHS: [usize; 11] = [0, 1, 7, 8, 9, 63, 64, 65, 1024, 1025, 4097];

/// A cheap reproducible draw in [-1, 1).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> f32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((self.0 >> 40) as f32) / (1u64 << 23) as f32 - 1.0
    }

    /// Sum of four: nearly normal, variance 4/3.
    fn normal(&mut self) -> f32 {
        (0..4).map(|_| self.next()).sum()
    }
}

fn vectors(count: usize, len: usize, seed: u64) -> Vectors {
    let mut draw = Draw(seed);
    (0..count)
        .map(|_| {
            (0..len)
                .map(|d| 1.5 - (d % 5) as f32 + draw.normal())
                .collect()
        })
        .collect()
}

/// Random inputs and the awkward ones.
fn cases(count: usize, len: usize) -> Vec<Vectors> {
    let mut huge = vectors(count, len, 5);
    let mut tiny = vectors(count, len, 6);
    if let Some(x) = huge[0].first_mut() {
        *x = 1e5;
    }
    tiny.iter_mut().flatten().for_each(|x| *x *= 1e-40);
    let same = vec![vectors(1, len, 7).remove(0); count];
    let signs = vectors(count, len, 8);
    let signs = signs
        .into_iter()
        .map(|v| v.into_iter().map(f32::signum).collect());
    vec![
        vectors(count, len, 1),
        huge,
        tiny,
        vec![vec![0.0; len]; count],
        same,
        signs.collect(),
    ]
}

fn weight(k: usize) -> f32 {
    [32.0, 64.0, 8.0, 128.0][k % 4]
}

fn inputs(vectors: &Vectors) -> Vec<Input<'_>> {
    let numbered = vectors.iter().enumerate();
    numbered.map(|(k, v)| (v.as_slice(), weight(k))).collect()
}

fn aggregate(rule: &mut dyn Aggregator, vectors: &Vectors) -> Vec<f32> {
    let mut out = vec![9.0; vectors[0].len()];
    rule.aggregate(&inputs(vectors), &mut out);
    out
}

fn kind(name: &str, given: &[(&str, f64)]) -> AggregationKind {
    AggregationKind::new(name, given).expect("the values are in range")
}

fn built(kind: AggregationKind) -> Box<dyn Aggregator> {
    kind.build().expect("a rule that needs decoded copies")
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).powi(2))
        .sum::<f64>()
        .sqrt()
}

fn column(vectors: &[Vec<f64>], d: usize) -> Vec<f64> {
    let mut column: Vec<f64> = vectors.iter().map(|v| v[d]).collect();
    column.sort_by(f64::total_cmp);
    column
}

fn mean_of(vectors: &[Vec<f64>]) -> Vec<f64> {
    let len = vectors.first().map_or(0, Vec::len);
    (0..len)
        .map(|d| vectors.iter().map(|v| v[d]).sum::<f64>() / vectors.len() as f64)
        .collect()
}

fn krum_order(x: &[Vec<f64>], f: usize) -> Vec<usize> {
    let score = |k: usize| {
        let others = (0..x.len()).filter(|j| *j != k);
        let mut row: Vec<f64> = others.map(|j| distance(&x[k], &x[j]).powi(2)).collect();
        row.sort_by(f64::total_cmp);
        row[..(x.len() - f).saturating_sub(2).max(1).min(row.len())]
            .iter()
            .sum::<f64>()
    };
    let mut order: Vec<usize> = (0..x.len()).collect();
    order.sort_by(|i, j| score(*i).total_cmp(&score(*j)));
    order
}

fn middle(column: &[f64]) -> f64 {
    (column[(column.len() - 1) / 2] + column[column.len() / 2]) / 2.0
}

fn bulyan(x: &[Vec<f64>], f: usize) -> Vec<f64> {
    let (n, mut left, mut chosen) = (x.len(), x.to_vec(), Vec::new());
    while chosen.len() < n - 2 * f {
        chosen.push(left.remove(krum_order(&left, f)[0]));
    }
    let coordinate = |d: usize| {
        let mut near = column(&chosen, d);
        let m = middle(&near);
        near.sort_by(|p, q| (p - m).abs().total_cmp(&(q - m).abs()));
        near.truncate(n - 4 * f);
        near.iter().sum::<f64>() / near.len() as f64
    };
    (0..x[0].len()).map(coordinate).collect()
}

fn medians(x: &[Vec<f64>]) -> Vec<f64> {
    (0..x[0].len()).map(|d| middle(&column(x, d))).collect()
}

fn centered_clip(x: &[Vec<f64>], radius: f64, iterations: u32) -> Vec<f64> {
    let mut v = medians(x);
    for _ in 0..iterations {
        let cut: Vec<f64> = x
            .iter()
            .map(|x| (radius / distance(x, &v)).min(1.0))
            .collect();
        let pull = |d: usize| (0..x.len()).map(|k| cut[k] * (x[k][d] - v[d])).sum::<f64>();
        v = (0..v.len())
            .map(|d| v[d] + pull(d) / x.len() as f64)
            .collect();
    }
    v
}

fn weiszfeld(x: &[Vec<f64>], weights: &[f64]) -> Vec<f64> {
    let mut v = medians(x);
    for _ in 0..2000 {
        let pairs = x.iter().zip(weights);
        let pull: Vec<f64> = pairs.map(|(x, a)| a / distance(x, &v).max(1e-9)).collect();
        let total: f64 = pull.iter().sum();
        let sum = |d: usize| (0..x.len()).map(|k| pull[k] * x[k][d]).sum::<f64>();
        v = (0..v.len()).map(|d| sum(d) / total).collect();
    }
    v
}

fn trimmed_mean(x: &[Vec<f64>], liars: usize) -> Vec<f64> {
    let coordinate = |d: usize| {
        let kept = column(x, d)[liars..x.len() - liars].to_vec();
        kept.iter().sum::<f64>() / kept.len() as f64
    };
    (0..x[0].len()).map(coordinate).collect()
}

fn nearest_trimmed_mean(x: &[Vec<f64>], liars: usize) -> Vec<f64> {
    let near = |k: usize| {
        let mut order: Vec<usize> = (0..x.len()).collect();
        order.sort_by(|i, j| distance(&x[k], &x[*i]).total_cmp(&distance(&x[k], &x[*j])));
        let near = order[..x.len() - liars].iter().map(|i| x[*i].clone());
        mean_of(&near.collect::<Vec<_>>())
    };
    trimmed_mean(&(0..x.len()).map(near).collect::<Vec<_>>(), liars)
}

fn clipped_gossip(x: &[Vec<f64>], weights: &[f64], liars: usize) -> Vec<f64> {
    let lengths: Vec<f64> = x.iter().map(|v| distance(v, &x[0])).collect();
    let mut sorted = lengths[1..].to_vec();
    sorted.sort_by(f64::total_cmp);
    let tau = match sorted.len() > liars {
        true => sorted[sorted.len() - liars - 1],
        false => 0.0,
    };
    let total: f64 = weights.iter().sum();
    let cut = |k: usize| {
        if lengths[k] > tau {
            tau / lengths[k]
        } else {
            1.0
        }
    };
    let coordinate = |d: usize| {
        let pull = (1..x.len()).map(|k| weights[k] / total * cut(k) * (x[k][d] - x[0][d]));
        x[0][d] + pull.sum::<f64>()
    };
    (0..x[0].len()).map(coordinate).collect()
}

/// Each rule as its paper has it, in f64.
fn reference(kind: &AggregationKind, vectors: &Vectors) -> Vec<f64> {
    let x: Vec<Vec<f64>> = vectors.iter().map(|v| wide(v)).collect();
    let (n, len) = (x.len(), x[0].len());
    let a: Vec<f64> = (0..n).map(|k| f64::from(weight(k))).collect();
    let weighted = |shares: &[f64]| -> Vec<f64> {
        let total: f64 = a.iter().sum();
        (0..len)
            .map(|d| (0..n).map(|k| a[k] / total * shares[k] * x[k][d]).sum())
            .collect()
    };
    let liars = || kind.count("liars");
    match kind.name() {
        "median" => (0..len).map(|d| middle(&column(&x, d))).collect(),
        "trimmed-mean" => trimmed_mean(&x, liars()),
        "nearest-trimmed-mean" => nearest_trimmed_mean(&x, liars()),
        "clipped-gossip" => clipped_gossip(&x, &a, liars()),
        "fed-nova" => {
            let mean_of_steps = a.iter().sum::<f64>() / n as f64;
            let normalized: Vec<Vec<f64>> = (0..n)
                .map(|k| x[k].iter().map(|x| mean_of_steps * x / a[k]).collect())
                .collect();
            mean_of(&normalized)
        }
        "krum" => x[krum_order(&x, liars())[0]].clone(),
        "multi-krum" => {
            let best = krum_order(&x, liars())[..n - liars()].to_vec();
            mean_of(&best.iter().map(|k| x[*k].clone()).collect::<Vec<_>>())
        }
        "bulyan" => bulyan(&x, liars()),
        "centered-clip" => {
            let iterations = kind.count("iterations") as u32;
            centered_clip(&x, kind.number("radius"), iterations)
        }
        "geometric-median" => weiszfeld(&x, &a),
        "norm-clip" => {
            let radius = kind.number("radius");
            let zero = vec![0.0; len];
            let cut: Vec<f64> = x
                .iter()
                .map(|x| (radius / distance(x, &zero)).min(1.0))
                .collect();
            weighted(&cut)
        }
        "sign-majority" => (0..len)
            .map(|d| {
                let sign = |x: f64| f64::from(i8::from(x > 0.0) - i8::from(x < 0.0));
                sign(x.iter().map(|x| sign(x[d])).sum())
            })
            .collect(),
        // Whom members admit is settled before: what is left is the mean.
        _ => weighted(&vec![1.0; n]),
    }
}

/// Every rule for `n` inputs, with as many liars as it allows.
fn kinds(n: usize) -> Vec<AggregationKind> {
    let among = |name, liars: usize| kind(name, &[("liars", liars as f64)]);
    let clip = |radius, iterations| {
        let given = [
            ("radius", radius),
            ("iterations", iterations),
            ("bucket", 1.0),
        ];
        kind("centered-clip", &given)
    };
    vec![
        among("bulyan", n.saturating_sub(3) / 4),
        clip(3.0, 1.0),
        clip(30.0, 5.0),
        kind("fed-nova", &[]),
        kind("geometric-median", &[("iterations", 100.0)]),
        among("krum", n.saturating_sub(3) / 2),
        kind("median", &[]),
        among("multi-krum", n.saturating_sub(3) / 2),
        kind("norm-clip", &[("radius", 4.0)]),
        kind("sign-majority", &[]),
        among("trimmed-mean", (n - 1) / 3),
        among("nearest-trimmed-mean", (n - 1) / 3),
        among("clipped-gossip", n / 3),
    ]
}

#[test]
fn rules_follow_their_papers() {
    for n in [1usize, 2, 3, 4, 7, 8, 11, 15] {
        for len in LENGTHS {
            for (case, vectors) in cases(n, len).into_iter().enumerate() {
                for kind in kinds(n) {
                    let ties = matches!(case, 2 | 5) || n < 7;
                    let by_distance = matches!(
                        kind.name(),
                        "bulyan"
                            | "krum"
                            | "multi-krum"
                            | "nearest-trimmed-mean"
                            | "clipped-gossip"
                    );
                    // Equal scores, and squares of denormals that f32 has not: any choice is right.
                    if by_distance && (ties || len < 7) {
                        continue;
                    }
                    // A few points on a line have a whole segment of minima.
                    if kind.name() == "geometric-median" && (len != 1024 || case != 0) {
                        continue;
                    }
                    let mut rule = built(kind);
                    if kind.name() == "geometric-median" {
                        // The reference is the limit, which takes more than a configuration may ask for.
                        rule = Box::new(GeometricMedian::new(1e-6, 2000));
                    }
                    let found = aggregate(&mut *rule, &vectors);
                    let expected = reference(&kind, &vectors);
                    let size = vectors.iter().flatten().fold(0.0f32, |m, x| m.max(x.abs()));
                    for (f, e) in found.iter().zip(&expected) {
                        // f32 sums of n values; shares rounded to f32.
                        let tolerance = 4e-6 * f64::from(size) * (1.0 + n as f64 / 4.0) + 1e-40;
                        assert!(
                            (f64::from(*f) - e).abs() <= tolerance,
                            "{kind:?} n {n} len {len} case {case}: {f} is not {e}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn coordinate_rules_give_the_same_by_sub_slices() {
    let vectors = vectors(9, 1000, 3);
    for kind in kinds(9)
        .into_iter()
        .filter(AggregationKind::is_coordinate_wise)
    {
        let whole = aggregate(&mut *built(kind), &vectors);
        let mut rule = built(kind);
        let mut out = vec![0.0; 1000];
        for (start, end) in [(0, 1), (1, 130), (130, 999), (999, 1000)] {
            let pieces: Vec<Input<'_>> = inputs(&vectors)
                .into_iter()
                .map(|(v, w)| (&v[start..end], w))
                .collect();
            rule.aggregate(&pieces, &mut out[start..end]);
        }
        assert_eq!(out, whole, "{kind:?}");
    }
}

#[test]
fn special_cases_are_the_plain_mean_or_median() {
    let vectors = vectors(9, 200, 4);
    let wide: Vec<Vec<f64>> = vectors.iter().map(|v| wide(v)).collect();
    let mean = mean_of(&wide);
    let close = |rule: &mut dyn Aggregator, expected: &[f64]| {
        let found = aggregate(rule, &vectors);
        let worst = found
            .iter()
            .zip(expected)
            .map(|(f, e)| (f64::from(*f) - e).abs());
        assert!(worst.fold(0.0, f64::max) < 2e-6);
    };
    close(&mut TrimmedMean::new(0), &mean);
    close(&mut Krum::multi(0), &mean);
    close(&mut *built(kind("bulyan", &[("liars", 0.0)])), &mean);
    close(&mut CenteredClip::new(1e9, 1), &mean);
    close(
        &mut Bucketing::new(Box::new(TrimmedMean::new(0)), 3, 5),
        &mean,
    );
    let median = aggregate(&mut Median::default(), &vectors);
    assert_eq!(aggregate(&mut TrimmedMean::new(4), &vectors), median);
    assert_eq!(aggregate(&mut TrimmedMean::new(400), &vectors), median);
}

#[test]
fn nothing_in_is_zero_out() {
    for kind in kinds(8) {
        let mut out = [5.0; 3];
        built(kind).aggregate(&[], &mut out);
        let sound = out.iter().all(|o| *o == 0.0);
        assert!(sound, "{kind:?}: {out:?}");
    }
}

/// What liars send who know all honest contributions.
fn attacks(honest: &[Vec<f64>], liars: usize) -> Vec<(&'static str, Vectors)> {
    let mean = mean_of(honest);
    let n = honest.len() + liars;
    let deviation: Vec<f64> = (0..mean.len())
        .map(|d| {
            let squares = honest.iter().map(|v| (v[d] - mean[d]).powi(2));
            (squares.sum::<f64>() / honest.len() as f64).sqrt()
        })
        .collect();
    // A little is enough: the z that leaves just enough honest ones on the far side (n = 11, f = 2).
    let z = if n > 9 { 0.6 } else { 0.3 };
    let all = |f: &dyn Fn(usize) -> f64| -> Vectors {
        let one: Vec<f32> = (0..mean.len()).map(|d| f(d) as f32).collect();
        vec![one; liars]
    };
    vec![
        ("sign flip", all(&|d| -mean[d])),
        ("large sign flip", all(&|d| -100.0 * mean[d])),
        ("large norm", all(&|d| if d % 2 == 0 { 1e5 } else { -1e5 })),
        ("ALIE", all(&|d| mean[d] - z * deviation[d])),
        ("inner product", all(&|d| -0.1 * mean[d])),
        ("large inner product", all(&|d| -5.0 * mean[d])),
        (
            "one coordinate",
            all(&|d| if d == 3 { 40.0 } else { mean[d] }),
        ),
    ]
}

/// Runs every attack of `liars` among `n` and hands the outcome and the honest inputs to `check`.
fn under_attack(
    n: usize,
    liars: usize,
    rule: &mut dyn Aggregator,
    check: impl Fn(&str, &[f64], &[Vec<f64>]),
) {
    for seed in 0..5 {
        let honest = vectors(n - liars, 64, 100 + seed);
        let honest_wide: Vec<Vec<f64>> = honest.iter().map(|v| wide(v)).collect();
        for (name, lies) in attacks(&honest_wide, liars) {
            // Liars first, last, and among the honest ones.
            for place in [0, honest.len(), honest.len() / 2] {
                let mut all = honest.clone();
                lies.iter().for_each(|lie| all.insert(place, lie.clone()));
                let out = wide(&aggregate(rule, &all));
                check(name, &out, &honest_wide);
            }
        }
    }
}

fn spread(honest: &[Vec<f64>]) -> f64 {
    let pairs = honest
        .iter()
        .flat_map(|a| honest.iter().map(move |b| distance(a, b)));
    pairs.fold(0.0, f64::max)
}

#[test]
fn the_weighted_mean_breaks() {
    let honest = vectors(9, 64, 1);
    let wide: Vec<Vec<f64>> = honest.iter().map(|v| wide(v)).collect();
    let (_, lies) = attacks(&wide, 2).swap_remove(1);
    let all: Vectors = honest.into_iter().chain(lies).collect();
    let mean = mean_of(&wide);
    let found = reference(&AggregationKind::weighted_mean(), &all);
    let along: f64 = found.iter().zip(&mean).map(|(f, m)| f * m).sum();
    assert!(along < 0.0, "it points backwards: {along}");
}

#[test]
fn median_and_trimmed_mean_stay_among_the_honest() {
    for (n, f) in [(3, 1), (8, 3), (11, 5), (11, 2)] {
        let check = |name: &str, out: &[f64], honest: &[Vec<f64>]| {
            for (d, o) in out.iter().enumerate() {
                let column = column(honest, d);
                let (low, high) = (column[0] - 1e-5, column[column.len() - 1] + 1e-5);
                assert!((low..=high).contains(o), "n {n} f {f} {name}: {o}");
            }
        };
        under_attack(n, f, &mut Median::default(), check);
        under_attack(n, f, &mut TrimmedMean::new(f), check);
    }
}

#[test]
fn krum_stays_within_its_bound() {
    for (n, f) in [(5, 1), (7, 2), (11, 4), (15, 6)] {
        let factor = 1.0 + ((n - f - 2) as f64 / (n - 2 * f - 1) as f64).sqrt();
        let check = |name: &str, out: &[f64], honest: &[Vec<f64>]| {
            let bound = factor * spread(honest) * (1.0 + 1e-5);
            for h in honest {
                assert!(distance(out, h) <= bound, "n {n} f {f} {name}");
            }
        };
        under_attack(n, f, &mut Krum::new(f), check);
        under_attack(n, f, &mut Krum::multi(f), check);
    }
}

#[test]
fn bulyan_stays_near_the_honest_in_every_coordinate() {
    for (n, f) in [(7, 1), (11, 2), (15, 3)] {
        let mut rule = built(kind("bulyan", &[("liars", f as f64)]));
        under_attack(n, f, &mut *rule, |name, out, honest| {
            for (d, o) in out.iter().enumerate() {
                let column = column(honest, d);
                let (low, high) = (column[0], column[column.len() - 1]);
                let wide = high - low + 1e-5;
                assert!(
                    (low - wide..=high + wide).contains(o),
                    "n {n} f {f} {name}: {o}"
                );
            }
        });
    }
}

#[test]
fn the_geometric_median_stays_within_its_bound() {
    for (n, f) in [(5, 1), (8, 2), (11, 4)] {
        let mut rule = built(kind("geometric-median", &[("iterations", 60.0)]));
        for seed in 0..5 {
            let honest = vectors(n - f, 64, 200 + seed);
            let wide_honest: Vec<Vec<f64>> = honest.iter().map(|v| wide(v)).collect();
            let center = mean_of(&wide_honest);
            let reach = wide_honest
                .iter()
                .map(|h| distance(h, &center))
                .fold(0.0, f64::max);
            let alpha = f as f64 / n as f64;
            let bound = 2.0 * (1.0 - alpha) / (1.0 - 2.0 * alpha) * reach * 1.01;
            for (name, lies) in attacks(&wide_honest, f) {
                let all: Vectors = honest.iter().cloned().chain(lies).collect();
                let equal: Vec<Input<'_>> = all.iter().map(|v| (v.as_slice(), 1.0)).collect();
                let mut out = vec![0.0; 64];
                rule.aggregate(&equal, &mut out);
                assert!(
                    distance(&wide(&out), &center) <= bound,
                    "n {n} f {f} {name}"
                );
            }
        }
    }
}

#[test]
fn centered_clipping_moves_no_further_than_liars_may() {
    for (n, f) in [(5, 2), (8, 2), (11, 4)] {
        for seed in 0..5 {
            let honest = vectors(n - f, 64, 300 + seed);
            let wide_honest: Vec<Vec<f64>> = honest.iter().map(|v| wide(v)).collect();
            let mean = mean_of(&wide_honest);
            // From last round's aggregate, a little off; a radius that clips no honest one.
            let start: Vec<f32> = mean.iter().map(|m| *m as f32 + 0.05).collect();
            let away = distance(&wide(&start), &mean);
            let radius = wide_honest
                .iter()
                .map(|h| distance(h, &wide(&start)))
                .fold(0.0, f64::max);
            let bound = f as f64 / n as f64 * (away + radius) + 1e-3;
            for (name, lies) in attacks(&wide_honest, f) {
                let all: Vectors = honest.iter().cloned().chain(lies).collect();
                let mut out = start.clone();
                CenteredClip::new(radius, 1).from_center(&inputs(&all), &mut out);
                let moved = distance(&wide(&out), &mean);
                assert!(moved <= bound, "n {n} f {f} {name}: {moved} above {bound}");
            }
        }
    }
}

#[test]
fn bucketing_makes_room_for_skewed_data() {
    // Honest peers of two kinds, no liars: Krum takes one kind; over buckets it is near the mean.
    let len = 32;
    let honest: Vectors = (0..24usize)
        .map(|k| {
            (0..len)
                .map(|d| if k < 16 { 1.0 } else { -1.0 } + ((k * 7 + d) % 5) as f32 / 50.0)
                .collect()
        })
        .collect();
    let mean = mean_of(&honest.iter().map(|v| wide(v)).collect::<Vec<_>>());
    let off = |out: Vec<f32>| distance(&wide(&out), &mean);
    let plain = off(aggregate(&mut Krum::new(2), &honest));
    let mut bucketed = 0.0;
    let mut rule = Bucketing::new(Box::new(Krum::new(2)), 4, 3);
    for _ in 0..50 {
        bucketed += off(aggregate(&mut rule, &honest)) / 50.0;
    }
    assert!(bucketed < 0.75 * plain, "{bucketed} {plain}");
}

#[test]
fn clipped_norms_bound_the_mean() {
    let mut rule = built(kind("norm-clip", &[("radius", 2.0)]));
    under_attack(8, 3, &mut *rule, |name, out, _| {
        let norm = distance(out, &vec![0.0; out.len()]);
        assert!(norm <= 2.0 + 1e-5, "{name}: {norm}");
    });
}

#[test]
fn liars_cannot_turn_a_clear_majority() {
    let mut rule = built(kind("sign-majority", &[]));
    under_attack(11, 3, &mut *rule, |name, out, honest| {
        for (d, o) in out.iter().enumerate() {
            let votes: f64 = honest.iter().map(|h| h[d].signum()).sum();
            if votes.abs() > 3.0 {
                assert_eq!(*o, votes.signum(), "{name} coordinate {d}");
            }
        }
    });
}

/// One of four partners is far away: it moves the peer no farther than its share of the farthest honest
/// distance. A mean would follow it.
#[test]
fn a_lying_partner_moves_a_peer_no_farther_than_honest_ones() {
    let mut rule = built(kind("clipped-gossip", &[("liars", 1.0)]));
    for lie in [-1e4f32, 50.0, 1e5] {
        let own = vec![0.0f32; 64];
        let honest: Vec<Vec<f32>> = (1..4).map(|at| vec![0.1 * at as f32; 64]).collect();
        let liar = vec![lie; 64];
        let all = [&own, &honest[0], &honest[1], &honest[2], &liar];
        let inputs: Vec<Input<'_>> = all.map(|v| (v.as_slice(), 0.2)).to_vec();
        let mut out = vec![0.0; 64];
        rule.aggregate(&inputs, &mut out);
        // The honest partners move it by 0.2 (0.1 + 0.2 + 0.3), the liar by 0.2 of 0.3 at most.
        let from_honest = 0.12;
        assert!(
            (out[0] - from_honest).abs() <= 0.06 + 1e-5,
            "{lie}: {}",
            out[0]
        );
        assert!(
            (out[0] - from_honest).abs() > 0.05,
            "{lie} is clipped, not dropped"
        );
        // With as many liars as partners nothing moves it.
        let mut out = vec![1.0; 64];
        built(kind("clipped-gossip", &[("liars", 4.0)])).aggregate(&inputs, &mut out);
        assert_eq!(out, own);
    }
}

/// Half of the honest inputs differ from the other half, as peers with other data do. The trimmed mean of
/// these takes the side of the liars; after mixing it stays near the honest mean.
#[test]
fn mixing_the_nearest_brings_skewed_inputs_together() {
    let (n, len) = (9usize, 40usize);
    let mut vectors: Vec<Vec<f32>> = Vec::new();
    for k in 0..n {
        let value = |d: usize| match k {
            0..2 => 1.0,
            // Each honest input is large in a few coordinates of its own.
            _ => {
                if d % 7 == k - 2 {
                    7.0
                } else {
                    0.0
                }
            }
        };
        vectors.push((0..len).map(value).collect());
    }
    let honest: Vec<f32> = (0..len)
        .map(|d| vectors[2..].iter().map(|v| v[d]).sum::<f32>() / (n - 2) as f32)
        .collect();
    let error = |kind| {
        let found = aggregate(&mut *built(kind), &vectors);
        let squares = found
            .iter()
            .zip(&honest)
            .map(|(f, h)| f64::from(f - h).powi(2));
        squares.sum::<f64>().sqrt()
    };
    let alone = error(kind("trimmed-mean", &[("liars", 2.0)]));
    let mixed = error(kind("nearest-trimmed-mean", &[("liars", 2.0)]));
    assert!(mixed < alone, "{mixed} is not below {alone}");
}
