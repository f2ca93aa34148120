//! What holds of codecs in the mean over seeds: no bias where none is claimed, and errors within
//! the published bound. And what holds whatever the seed: error feedback in one pass is what it is
//! in two, and plain instructions give the bits that vectors give.

use crate::slice::Slice;
use murmurate_strategies::compress::{CODECS, Codec, CodecKind, Reduction, without_vectors};
use rayon::prelude::*;

fn kind(name: &str, given: &[(&str, f64)]) -> CodecKind {
    CodecKind::new(name, given).expect("parameters within their ranges")
}

/// Every codec, with the least and the most of its parameters where they have defaults.
fn kinds() -> Vec<CodecKind> {
    let plain = CODECS.iter().map(|spec| crate::slice::kind(spec, 0.1));
    let mut all: Vec<CodecKind> = plain.chain(crate::slice::sparse()).collect();
    all.push(kind("int8", &[("block", 64.0)]));
    all.push(kind("int4", &[("block", 16.0)]));
    all.push(kind("int4", &[("block", 128.0)]));
    all.push(kind("qsgd", &[("levels", 1.0), ("bucket", 64.0)]));
    all.push(kind("qsgd", &[("levels", 127.0), ("bucket", 4096.0)]));
    all.push(kind("nuqsgd", &[("bucket", 4096.0)]));
    for bits in [1.0, 2.0, 8.0] {
        all.push(kind("rotated", &[("bits", bits)]));
    }
    for bits in [1.0, 4.0] {
        all.push(kind("eden", &[("bits", bits)]));
    }
    all
}

const LENGTHS: [usize; 12] = [0, 1, 7, 8, 9, 63, 1000, 1281, 4095, 4096, 4097, 9001];

/// Numbers in [-1, 1) by a linear congruence.
fn uniform(seed: u64) -> impl FnMut() -> f32 {
    let mut state = seed;
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / 8_388_608.0 - 1.0
    }
}

/// What codecs have trouble with: nearly normal values, one huge one among small ones, subnormals,
/// zeros, equal values, signs in turn, magnitudes of all sizes.
fn inputs(len: usize) -> Vec<Vec<f32>> {
    let mut draw = uniform(len as u64 + 1);
    let normal: Vec<f32> = (0..len).map(|_| draw() + draw() + draw()).collect();
    let mut huge = normal.clone();
    if let Some(value) = huge.get_mut(len / 2) {
        *value = 1e30;
    }
    let subnormal = normal.iter().map(|v| v * 1e-40).collect();
    let turns = (0..len)
        .map(|i| if i % 2 == 0 { 0.5 } else { -0.5 })
        .collect();
    let sizes = normal
        .iter()
        .enumerate()
        .map(|(i, v)| v * 2f32.powi((i % 41) as i32 - 20))
        .collect();
    let most = (0..len)
        .map(|i| if i % 3 == 0 { f32::MAX } else { f32::MIN })
        .collect();
    vec![
        normal,
        huge,
        subnormal,
        vec![0.0; len],
        vec![-3.25; len],
        turns,
        sizes,
        most,
    ]
}

fn encoded(codec: &mut dyn Codec, values: &[f32], seed: u64) -> Vec<u8> {
    let (mut bytes, mut slice) = (Vec::new(), Slice::new(codec, values.len()));
    codec.encode(values, &mut slice.context(seed), &mut bytes);
    bytes
}

fn decoded(codec: &mut dyn Codec, values: &[f32], seed: u64) -> Vec<f32> {
    let bytes = encoded(codec, values, seed);
    let mut out = vec![0.0; values.len()];
    codec
        .decode_add(&bytes, 1.0, &mut out)
        .unwrap_or_else(|error| panic!("{} of {} values: {error}", bytes[0], values.len()));
    out
}

fn square(values: &[f32]) -> f64 {
    values.iter().map(|v| f64::from(*v).powi(2)).sum()
}

#[test]
fn plain_instructions_give_the_same_bits_as_vectors() {
    for kind in kinds() {
        let mut codec = kind.build();
        for len in LENGTHS {
            for (at, values) in inputs(len).iter().enumerate() {
                let mut run = || {
                    let bytes = encoded(&mut *codec, values, 5);
                    let mut acc: Vec<f32> = (0..len).map(|i| i as f32).collect();
                    codec
                        .decode_add(&bytes, 0.3, &mut acc)
                        .expect("its own bytes");
                    let acc: Vec<u32> = acc.iter().map(|v| v.to_bits()).collect();
                    (bytes, acc)
                };
                let vectors = run();
                let plain = without_vectors(run);
                assert_eq!(vectors, plain, "{kind:?}, {len} values, input {at}");
            }
        }
    }
}

#[test]
fn feedback_in_one_pass_is_feedback_in_two() {
    for kind in kinds() {
        let mut codec = kind.build();
        for len in LENGTHS {
            let mut draw = uniform(9);
            let delta: Vec<f32> = (0..len).map(|_| draw()).collect();
            let before: Vec<f32> = (0..len).map(|_| 0.1 * draw()).collect();

            let decay = codec.properties().decay;
            let pairs = before.iter().zip(&delta);
            let values: Vec<f32> = pairs.map(|(e, d)| decay * e + d).collect();
            let bytes = encoded(&mut *codec, &values, 5);
            let mut left = values.clone();
            codec
                .decode_add(&bytes, -1.0, &mut left)
                .expect("its own bytes");

            let (mut residual, mut out) = (before, Vec::new());
            let mut slice = Slice::new(&*codec, len);
            codec.encode_residual(&delta, &mut residual, &mut slice.context(5), &mut out);
            // The choice of these two depends on the delta itself or on their state. As for all codecs,
            // the residual is the part of the sum that is not sent.
            if kind.name() == "ada-comp" {
                left = values;
                codec
                    .decode_add(&out, -1.0, &mut left)
                    .expect("its own bytes");
            } else if kind.name() != "dgc" {
                assert_eq!(out, bytes, "{kind:?}, {len} values");
            }
            if kind.name() == "dgc" {
                continue;
            }
            assert_eq!(residual, left, "{kind:?}, {len} values");
        }
    }
}

/// The mean over seeds of `<C(x) - x, u>` for a direction u must be zero within 4.5 of its own
/// standard errors, and `||C(x) - x||^2` within the bound. Directions: x itself, a random one,
/// single coordinates.
#[test]
fn random_codecs_have_no_bias_and_the_variance_they_claim() {
    const SEEDS: u64 = 600;
    kinds().into_par_iter().for_each(|kind| {
        let mut codec = kind.build();
        let properties = codec.properties();
        if !properties.stochastic || !properties.unbiased {
            return;
        }
        for len in [9, 1000, 1281] {
            for (at, values) in inputs(len).iter().enumerate().take(7) {
                let mut draw = uniform(77);
                let random: Vec<f32> = (0..len).map(|_| draw()).collect();
                let unit = |i: usize| {
                    let mut unit = vec![0.0; len];
                    unit[i] = 1.0;
                    unit
                };
                // A coordinate that is hardly ever sent says nothing in so few
                // seeds: the largest, and in nearly normal values one in the
                // middle.
                let largest = (0..len).max_by(|a, b| values[*a].abs().total_cmp(&values[*b].abs()));
                let largest = largest.expect("there are values");
                let middle = if at == 0 { len / 2 } else { largest };
                let directions = [values.clone(), random, unit(largest), unit(middle)];
                let mut moments = [[0.0f64; 2]; 4];
                let (mut error, mut error_squared) = (0.0, 0.0);
                for seed in 0..SEEDS {
                    let out = decoded(&mut *codec, values, seed * 7919 + 13);
                    let left: Vec<f64> = out
                        .iter()
                        .zip(values)
                        .map(|(c, x)| f64::from(*c) - f64::from(*x))
                        .collect();
                    let lost = left.iter().map(|e| e * e).sum::<f64>();
                    error += lost / SEEDS as f64;
                    error_squared += lost * lost / SEEDS as f64;
                    for (moment, direction) in moments.iter_mut().zip(&directions) {
                        let along: f64 = left
                            .iter()
                            .zip(direction)
                            .map(|(e, u)| e * f64::from(*u))
                            .sum();
                        moment[0] += along / SEEDS as f64;
                        moment[1] += along * along / SEEDS as f64;
                    }
                }
                let all = square(values);
                // Subnormal scales become zero, as every codec says of itself.
                if at == 2 {
                    continue;
                }
                // Where one value is nearly all, the error is as random as whether it is sent.
                let random = ((error_squared - error * error).max(0.0) / SEEDS as f64).sqrt();
                assert!(
                    error <= properties.error.min(1e30) * all * 1.02 + 4.5 * random + 1e-30,
                    "{kind:?}, {len} values, input {at}: {error} of {all}"
                );
                for (which, ([mean, second], direction)) in
                    moments.iter().zip(&directions).enumerate()
                {
                    let deviation = ((second - mean * mean).max(0.0) / SEEDS as f64).sqrt();
                    let length = (square(direction) * all).sqrt();
                    // f32 arithmetic; and `eden` is unbiased as far as a
                    // rotated block is normal: not one of 16.
                    let slack = match (kind.name(), len) {
                        ("eden", 9) => 0.1,
                        ("eden", _) => 0.02,
                        _ => 2e-6,
                    };
                    assert!(
                        mean.abs() <= 4.5 * deviation + slack * length,
                        "{kind:?}, {len}, input {at}, direction {which}: {mean} +- {deviation}"
                    );
                }
            }
        }
    });
}

/// `E||C(x) - x||^2 <= (1 - delta) ||x||^2` for every contractive codec.
#[test]
fn contractive_codecs_contract() {
    for kind in kinds() {
        let mut codec = kind.build();
        let properties = codec.properties();
        // At one, the codec never leaves out more than there was.
        if properties.error > 1.0 {
            continue;
        }
        let delta = 1.0 - properties.error;
        let seeds = if properties.stochastic { 100 } else { 1 };
        for len in LENGTHS {
            for (at, values) in inputs(len).iter().enumerate() {
                // Subnormals become zero, the very largest saturate: as every codec
                // says of itself.
                if at == 2 || at == 7 {
                    continue;
                }
                let mut error = 0.0;
                for seed in 0..seeds {
                    let out = decoded(&mut *codec, values, seed);
                    let left = out.iter().zip(values);
                    let left = left.map(|(c, x)| (f64::from(*c) - f64::from(*x)).powi(2));
                    error += left.sum::<f64>() / seeds as f64;
                }
                let quiet = properties.quiet.powi(2) * len as f64;
                let bound = ((1.0 - delta) * square(values)).max(quiet);
                // Of few values, the mean over seeds is itself random.
                let slack = if properties.stochastic { 1.25 } else { 1.00002 };
                assert!(
                    error <= bound * slack,
                    "{kind:?}, {len} values, input {at}: {error} is above {bound}"
                );
            }
        }
    }
}

#[test]
fn what_is_said_to_be_linear_is() {
    for kind in kinds() {
        let mut codec = kind.build();
        if codec.properties().reduction != Reduction::WhileEncoded {
            continue;
        }
        let mut draw = uniform(3);
        let mut eighths = || {
            (0..1000)
                .map(|_| (draw() * 64.0).round() / 8.0)
                .collect::<Vec<f32>>()
        };
        let (x, y) = (eighths(), eighths());
        let sum: Vec<f32> = x.iter().zip(&y).map(|(x, y)| x + y).collect();
        let of_sum = decoded(&mut *codec, &sum, 4);
        let (x, y) = (decoded(&mut *codec, &x, 4), decoded(&mut *codec, &y, 4));
        let sum: Vec<f32> = x.iter().zip(&y).map(|(x, y)| x + y).collect();
        assert!(of_sum == sum, "{kind:?}");
    }
}

#[test]
fn a_majority_of_signs_wins_the_vote() {
    let mut sign = kind("sign-sgd", &[]).build();
    let votes = [
        [1.0f32, -2.0, 0.5, -1.0],
        [3.0, -0.1, -4.0, -1.0],
        [-9.0, 5.0, 0.1, -1.0],
    ];
    let mut mean = vec![0.0; 4];
    for vote in &votes {
        let bytes = encoded(&mut *sign, vote, 0);
        sign.decode_add(&bytes, 1.0 / 3.0, &mut mean)
            .expect("its own bytes");
    }
    let mut back = sign.aggregate();
    assert_eq!(decoded(&mut *back, &mean, 0), [1.0, -1.0, 1.0, -1.0]);
}

/// Whatever always stood for zero would move what has no gradient one way for ever, and after a tie
/// everything.
#[test]
fn zeros_and_ties_are_as_often_minus_as_plus() {
    let mut sign = kind("sign-sgd", &[]).build();
    let values = [0.0f32, -0.0, 2.0, -2.0].repeat(1000);
    let mut sums = [0.0f32; 4];
    for seed in 0..16 {
        let signs = decoded(&mut *sign, &values, seed);
        for (at, sign) in signs.iter().enumerate() {
            sums[at % 4] += sign;
        }
        let other = decoded(&mut *sign, &values, seed + 100);
        assert!(signs != other, "another slice, other coins");
    }
    // Five standard deviations of 16,000 coins.
    assert!(sums[0].abs() < 640.0 && sums[1].abs() < 640.0, "{sums:?}");
    assert_eq!(sums[2..], [16_000.0, -16_000.0]);
}

#[test]
fn codecs_keep_apart() {
    // Every two codecs, and every two settings of one, refuse each other's bytes.
    let values = vec![1.0f32; 64];
    let kinds = kinds();
    for (at, one) in kinds.iter().enumerate() {
        let bytes = encoded(&mut *one.build(), &values, 0);
        for (other_at, other) in kinds.iter().enumerate() {
            let accepted = other
                .build()
                .decode_add(&bytes, 1.0, &mut [0.0; 64])
                .is_ok();
            assert_eq!(accepted, at == other_at, "{other:?} reads {one:?}");
        }
    }
    for kind in kinds {
        let codec = kind.build().aggregate();
        assert_eq!(codec.properties().planes, 0, "that of {kind:?} keeps state");
    }
}
