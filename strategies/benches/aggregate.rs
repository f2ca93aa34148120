//! How fast the aggregation rules are: GB/s of their total input, and as a fraction of a memcpy of one input
//! measured in the same run. Eight inputs of ten million values, one thread.
//!
//! `cargo bench -p murmurate-strategies --bench aggregate`; values per input may be given as an argument.
#![allow(clippy::unwrap_used, reason = "helpers of tests may, as tests do")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark measures time; no result of the library depends on it"
)]

use murmurate_strategies::aggregate::{AggregationKind, CenteredClip, Input};
use std::hint::black_box;
use std::time::Instant;

const INPUTS: usize = 8;
const VALUES: usize = 10_000_000;
const REPEATS: usize = 5;

/// The best of a few runs, in seconds: what disturbs a run only makes it longer.
fn best(mut f: impl FnMut()) -> f64 {
    f();
    let one = |_| {
        let start = Instant::now();
        f();
        start.elapsed().as_secs_f64()
    };
    (0..REPEATS).map(one).fold(f64::INFINITY, f64::min)
}

fn inputs(values: usize) -> Vec<Vec<f32>> {
    let mut state = 1u64;
    let mut draw = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..INPUTS)
        .map(|_| (0..values).map(|_| draw()).collect())
        .collect()
}

fn main() {
    let given = std::env::args().skip(1).find_map(|arg| arg.parse().ok());
    let values = given.unwrap_or(VALUES);
    let vectors = inputs(values);
    let inputs: Vec<Input<'_>> = vectors.iter().map(|v| (v.as_slice(), 1.0)).collect();
    let mut out = vec![0.0f32; values];
    let one = (4 * values) as f64 / 1e9;
    let memcpy = one / best(|| out.copy_from_slice(black_box(&vectors[0])));
    println!("{INPUTS} inputs of {values} values; memcpy of one {memcpy:.2} GB/s");
    println!("{:<28} {:>8} {:>10}", "rule", "GB/s in", "of memcpy");
    let show = |name: &str, seconds: f64| {
        let rate = INPUTS as f64 * one / seconds;
        println!("{name:<28} {rate:>8.2} {:>10.2}", rate / memcpy);
    };
    let radius = (values as f64).sqrt() / 2.0;
    let clip = CenteredClip::new(radius, 1);
    out.fill(0.0);
    show(
        "centered-clip, 1 from center",
        best(|| clip.from_center(black_box(&inputs), &mut out)),
    );
    for kind in [
        AggregationKind::new("median", &[]).unwrap(),
        AggregationKind::new("trimmed-mean", &[("liars", 2.0)]).unwrap(),
        AggregationKind::new("norm-clip", &[("radius", radius)]).unwrap(),
        AggregationKind::new("sign-majority", &[]).unwrap(),
        AggregationKind::new("geometric-median", &[("iterations", 4.0)]).unwrap(),
        AggregationKind::new("multi-krum", &[("liars", 2.0)]).unwrap(),
        AggregationKind::new("bulyan", &[("liars", 1.0)]).unwrap(),
    ] {
        if let Some(mut rule) = kind.build() {
            show(
                kind.name(),
                best(|| rule.aggregate(black_box(&inputs), &mut out)),
            );
        }
    }
}
