//! Every codec against its equation in f64, a few lines each, written from the paper and not from
//! the code. Where a codec draws random numbers, the reference gives the two values between which
//! it may choose; how often it chooses which is looked at in `statistics`.

use crate::numbers::largest as top;
use crate::slice::Slice;
use murmurate_strategies::compress::{CODECS, CodecKind, EncodeContext, Matrix};
use rayon::prelude::*;

const LENGTHS: [usize; 8] = [0, 1, 7, 8, 9, 4095, 4096, 4097];

/// Nearly normal values, some of them zero, one huge one, and magnitudes over 2^-30 to 2^10.
fn inputs(len: usize) -> Vec<Vec<f32>> {
    let mut state = len as u64 + 3;
    let mut draw = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / 8_388_608.0 - 1.0
    };
    let normal: Vec<f32> = (0..len).map(|_| draw() + draw() + draw()).collect();
    let zeros = normal
        .iter()
        .map(|v| if *v > 0.5 { 0.0 } else { *v })
        .collect();
    let mut huge = normal.clone();
    if let Some(value) = huge.first_mut() {
        *value = -1e20;
    }
    let sizes = normal.iter().enumerate();
    let sizes = sizes
        .map(|(i, v)| v * 2f32.powi((i % 41) as i32 - 30))
        .collect();
    vec![normal, zeros, huge, sizes]
}

fn decoded(name: &str, given: &[(&str, f64)], values: &[f32], seed: u64) -> Vec<f32> {
    let mut codec = CodecKind::new(name, given).expect("within range").build();
    let (mut bytes, mut slice) = (Vec::new(), Slice::new(&*codec, values.len()));
    codec.encode(values, &mut slice.context(seed), &mut bytes);
    let mut out = vec![0.0; values.len()];
    codec
        .decode_add(&bytes, 1.0, &mut out)
        .expect("its own bytes");
    out
}

/// Checks a codec against a reference for one block: what it may decode to, as the nearest and the
/// farthest permitted value of each (equal where nothing is random), within `tolerance` of the
/// block's largest magnitude.
fn agrees(
    name: &str,
    given: &[(&str, f64)],
    block: usize,
    tolerance: f64,
    reference: impl Fn(&[f64]) -> Vec<(f64, f64)>,
) {
    for len in LENGTHS {
        for (at, values) in inputs(len).iter().enumerate() {
            let out = decoded(name, given, values, 11);
            for (values, out) in values.chunks(block).zip(out.chunks(block)) {
                let exact: Vec<f64> = values.iter().map(|v| f64::from(*v)).collect();
                let largest = exact.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
                for (i, ((one, other), found)) in reference(&exact).into_iter().zip(out).enumerate()
                {
                    let found = f64::from(*found);
                    let off = (found - one).abs().min((found - other).abs());
                    assert!(
                        off <= tolerance * largest,
                        "{name}, {len} values, input {at}, {i}: {found} is neither {one} nor {other}"
                    );
                }
            }
        }
    }
}

/// A reference in which nothing is random.
fn fixed(values: impl IntoIterator<Item = f64>) -> Vec<(f64, f64)> {
    values.into_iter().map(|v| (v, v)).collect()
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |m, v| m.max(v.abs()))
}

fn norm(values: &[f64]) -> f64 {
    values.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// The nearest float with `bits` of fraction and no exponent below `least`.
fn nearest(value: f64, bits: i32, least: i32) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let unit = 2f64.powi((value.abs().log2().floor() as i32).max(least) - bits);
    (value / unit).round_ties_even() * unit
}

#[test]
fn casts_are_the_nearest_floats() {
    agrees("f32", &[], 4096, 0.0, |x| fixed(x.iter().copied()));
    agrees("bf16", &[], 4096, 0.0, |x| {
        fixed(x.iter().map(|v| nearest(*v, 7, -126)))
    });
    let scaled = |bits: i32, least: i32, top: i32| {
        move |x: &[f64]| {
            let shift = (top - largest(x).max(1e-300).log2().floor() as i32).min(126);
            let scale = 2f64.powi(shift);
            let most = 2f64.powi(top + 1) - 2f64.powi(top - bits);
            let of = move |v: &f64| nearest(v * scale, bits, least).clamp(-most, most) / scale;
            fixed(x.iter().map(of).collect::<Vec<_>>())
        }
    };
    agrees("fp16", &[], 4096, 0.0, scaled(10, -14, 14));
    agrees("fp8-e4m3", &[], 4096, 0.0, scaled(3, -6, 7));
    agrees("fp8-e5m2", &[], 4096, 0.0, scaled(2, -14, 14));
}

#[test]
fn powers_of_two_are_the_nearest() {
    // Ties between two powers go up; f32 may see a tie where f64 does not.
    agrees("fp4-e3m0", &[], 256, 1e-6, |x| {
        let s = largest(x);
        let levels: Vec<f64> = (0..7).map(|j| s * 2f64.powi(-j)).chain([0.0]).collect();
        let pair = |v: &f64| {
            let mut near = levels.clone();
            near.sort_by(|a, b| (a - v.abs()).abs().total_cmp(&(b - v.abs()).abs()));
            let tie = ((near[0] - v.abs()).abs() - (near[1] - v.abs()).abs()).abs() < 1e-6 * s;
            let other = if tie { near[1] } else { near[0] };
            (near[0].copysign(*v), other.copysign(*v))
        };
        x.iter().map(pair).collect()
    });
}

#[test]
fn blocks_of_levels_are_within_half_a_level() {
    for (name, block, levels) in [("int8", 4096, 127.0), ("int4", 64, 7.0)] {
        // Within 1e-5 of the middle of two levels f32 may round to either.
        agrees(name, &[], block, 1e-6, |x| {
            let s = largest(x) / levels;
            let level = |v: f64| {
                if s == 0.0 {
                    0.0
                } else {
                    v.round_ties_even() * s
                }
            };
            let both = |v: &f64| (level(v / s + 1e-5), level(v / s - 1e-5));
            x.iter().map(both).collect()
        });
    }
    for (name, block, levels) in [("int8-min-max", 4096, 255.0), ("int4-min-max", 64, 15.0)] {
        agrees(name, &[], block, 1e-6, |x| {
            let low = x.iter().copied().fold(f64::INFINITY, f64::min);
            let high = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let s = (high - low) / levels;
            let level = |v: f64| {
                if s == 0.0 {
                    low
                } else {
                    low + v.round_ties_even() * s
                }
            };
            let both = |v: &f64| (level((v - low) / s + 1e-4), level((v - low) / s - 1e-4));
            x.iter().map(both).collect()
        });
    }
}

#[test]
fn random_levels_are_those_below_and_above() {
    for levels in [1.0, 7.0, 127.0] {
        agrees("qsgd", &[("levels", levels)], 512, 2e-6, |x| {
            let unit = norm(x) / levels;
            let both = |v: &f64| {
                let below = if unit == 0.0 {
                    0.0
                } else {
                    (v.abs() / unit).floor()
                };
                (
                    (below * unit).copysign(*v),
                    ((below + 1.0) * unit).copysign(*v),
                )
            };
            x.iter().map(both).collect()
        });
    }
    agrees("tern-grad", &[], 1280, 0.0, |x| {
        let s = largest(x);
        x.iter()
            .map(|v| (0.0, if *v == 0.0 { 0.0 } else { s.copysign(*v) }))
            .collect()
    });
    let power = |v: f64| {
        if v == 0.0 {
            0.0
        } else {
            2f64.powi(v.log2().floor() as i32)
        }
    };
    agrees("natural", &[], 4096, 0.0, |x| {
        let both = |v: &f64| {
            (
                power(v.abs()).copysign(*v),
                (2.0 * power(v.abs())).copysign(*v),
            )
        };
        x.iter().map(both).collect()
    });
    agrees("nuqsgd", &[], 512, 1e-6, |x| {
        let n = norm(x);
        let both = |v: &f64| {
            let ratio = if n == 0.0 { 0.0 } else { v.abs() / n };
            let (below, above) = match ratio < 1.0 / 64.0 {
                true => (0.0, 1.0 / 64.0),
                false => (power(ratio), 2.0 * power(ratio)),
            };
            ((n * below).copysign(*v), (n * above).copysign(*v))
        };
        x.iter().map(both).collect()
    });
}

#[test]
fn signs_and_means_are_those_of_the_block() {
    agrees("sign-sgd", &[], 4096, 0.0, |x| {
        // A bit has no third value: a zero's is a coin's.
        let sign = |v: &f64| match *v == 0.0 {
            true => (-1.0, 1.0),
            false => (1f64.copysign(*v), 1f64.copysign(*v)),
        };
        x.iter().map(sign).collect()
    });
    agrees("ef-sign", &[], 4096, 1e-6, |x| {
        let mean = x.iter().map(|v| v.abs()).sum::<f64>() / x.len() as f64;
        fixed(x.iter().map(|v| mean.copysign(*v)).collect::<Vec<_>>())
    });
    let means = |x: &[f64], bucket: &dyn Fn(f64) -> u8| {
        let mean = |of: u8| {
            let inside: Vec<f64> = x.iter().copied().filter(|v| bucket(*v) == of).collect();
            inside.iter().sum::<f64>() / inside.len().max(1) as f64
        };
        fixed(x.iter().map(|v| mean(bucket(*v))).collect::<Vec<_>>())
    };
    agrees("one-bit", &[], 1024, 1e-5, |x| {
        means(x, &|v| u8::from(v.is_sign_negative()))
    });
    agrees("two-bit", &[], 1024, 1e-5, |x| {
        let threshold = 0.9816 * norm(x) / (x.len() as f64).sqrt();
        means(x, &|v| {
            u8::from(v.is_sign_negative()) + 2 * u8::from(v.abs() >= threshold)
        })
    });
}

/// What the papers prove of rotated codecs, whatever the rotation: `drive` is the projection of x
/// onto its signs, `eden` keeps `<C(x), x>`, and `rotated` with many levels gives x back.
#[test]
fn rotated_codecs_keep_what_their_scale_is_for() {
    let inner = |a: &[f32], b: &[f32]| {
        let products = a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b));
        products.sum::<f64>()
    };
    for seed in 0..20 {
        for values in inputs(1024) {
            let drive = decoded("drive", &[], &values, seed);
            let (with, own) = (inner(&drive, &values), inner(&drive, &drive));
            assert!((with - own).abs() <= 1e-5 * own, "{with} {own}");
            for bits in [1.0, 2.0, 4.0] {
                let eden = decoded("eden", &[("bits", bits)], &values, seed);
                let (with, all) = (inner(&eden, &values), inner(&values, &values));
                assert!(
                    (with - all).abs() <= 1e-5 * all,
                    "{bits} bits: {with} {all}"
                );
            }
            let rotated = decoded("rotated", &[("bits", 8.0)], &values, seed);
            let left: Vec<f32> = rotated.iter().zip(&values).map(|(a, b)| a - b).collect();
            assert!(inner(&left, &left) <= 3e-4 * inner(&values, &values));
        }
    }
}

/// The share, rounded up.
fn ceil(density: f64, len: usize) -> usize {
    ((density * len as f64).ceil() as usize).min(len)
}

/// These values at these places, zero elsewhere.
fn at(len: usize, places: &[usize], value: impl Fn(usize) -> f64) -> Vec<(f64, f64)> {
    let mut out = vec![0.0; len];
    places.iter().for_each(|i| out[*i] = value(*i));
    fixed(out)
}

/// A block that no slice is longer than.
const WHOLE: usize = usize::MAX;

fn mean(x: &[f64], places: &[usize]) -> f64 {
    places.iter().map(|i| x[*i].abs()).sum::<f64>() / places.len().max(1) as f64
}

#[test]
fn sparsifiers_keep_what_their_rules_say() {
    for density in [0.01, 0.1] {
        let given = &[("density", density)];
        agrees("top-k", given, WHOLE, 0.0, |x| {
            at(x.len(), &top(x, ceil(density, x.len())), |i| x[i])
        });
        agrees("chunk-top-k", given, 4096, 0.0, |x| {
            at(x.len(), &top(x, ceil(density, 4096).min(x.len())), |i| x[i])
        });
        agrees("stc", given, WHOLE, 1e-6, |x| {
            let kept = top(x, ceil(density, x.len()));
            let kept: Vec<usize> = kept.into_iter().filter(|i| x[*i] != 0.0).collect();
            let mu = mean(x, &kept);
            at(x.len(), &kept, |i| mu.copysign(x[i]))
        });
        agrees("sbc", given, WHOLE, 1e-6, |x| {
            let side = |sign: f64| {
                let own: Vec<f64> = x.iter().map(|v| (v * sign).max(0.0)).collect();
                let kept = top(&own, ceil(density, x.len()));
                let kept = kept.into_iter().filter(|i| own[*i] > 0.0);
                kept.collect::<Vec<_>>()
            };
            let (up, down) = (side(1.0), side(-1.0));
            let (more, less) = (mean(x, &up), mean(x, &down));
            match more >= less {
                true => at(x.len(), &up, |_| more),
                false => at(x.len(), &down, |_| -less),
            }
        });
        agrees("threshold", &[("threshold", density)], WHOLE, 0.0, |x| {
            let tau = f64::from(density as f32);
            fixed(
                x.iter()
                    .map(|v| if v.abs() >= tau { *v } else { 0.0 })
                    .collect::<Vec<_>>(),
            )
        });
        agrees("strom", &[("threshold", density)], WHOLE, 0.0, |x| {
            let tau = f64::from(density as f32);
            let of = |v: &f64| {
                if v.abs() >= tau {
                    tau.copysign(*v)
                } else {
                    0.0
                }
            };
            fixed(x.iter().map(of).collect::<Vec<_>>())
        });
    }
    agrees(
        "ada-comp",
        &[("bin", 50.0), ("values", 0.0)],
        50,
        0.0,
        |x| {
            let most = largest(x);
            let of = |v: &f64| if 2.0 * v.abs() >= most { *v } else { 0.0 };
            fixed(x.iter().map(of).collect::<Vec<_>>())
        },
    );
}

#[test]
fn wangni_sends_what_its_probabilities_leave() {
    for density in [0.02, 0.3] {
        agrees("wangni", &[("density", density)], WHOLE, 1e-5, |x| {
            // lambda by bisection. The greedy rule ends a little below it where it takes long.
            let wanted = density * x.len() as f64;
            let sum = |lambda: f64| x.iter().map(|v| (lambda * v.abs()).min(1.0)).sum::<f64>();
            let (mut low, mut high) = (0.0, 1e40);
            for _ in 0..400 {
                let middle = 0.5 * (low + high);
                if sum(middle) < wanted {
                    low = middle
                } else {
                    high = middle
                }
            }
            let most = x.iter().filter(|v| **v != 0.0).count() as f64;
            let least = if wanted >= most { 0.0 } else { 1.0 / low };
            x.iter()
                .map(|v| (0.0, v.abs().max(least).copysign(*v)))
                .collect()
        });
    }
}

#[test]
fn estimated_thresholds_keep_the_largest_and_about_as_many() {
    for name in ["top-k-sampled", "gaussian-k", "sidco"] {
        for (len, density) in [
            (0, 0.1),
            (1, 0.1),
            (4097, 0.1),
            (300_000, 0.01),
            (300_000, 0.001),
        ] {
            for (input, values) in inputs(len).iter().enumerate() {
                let out = decoded(name, &[("density", density)], values, 3);
                let kept = out.iter().filter(|v| **v != 0.0).count();
                let wanted = ceil(density, len);
                let there = values.iter().filter(|v| **v != 0.0).count();
                assert!(
                    kept <= 2 * wanted,
                    "{name}, {len}, {input}: {kept} of {wanted}"
                );
                assert!(
                    2 * kept >= wanted.min(there),
                    "{name}, {len}, {input}: {kept}"
                );
                let pairs = || out.iter().zip(values);
                assert!(pairs().all(|(c, x)| *c == 0.0 || c == x));
                let least = pairs().filter(|(c, _)| **c != 0.0).map(|(c, _)| c.abs());
                let least = least.fold(f32::INFINITY, f32::min);
                let most = pairs().filter(|(c, _)| **c == 0.0).map(|(_, x)| x.abs());
                assert!(most.fold(0.0, f32::max) <= least, "{name}, {len}, {input}");
                if input == 0 && len > 4097 {
                    let near = wanted as f64 * 0.66..=wanted as f64 * 1.5;
                    assert!(near.contains(&(kept as f64)), "{name}: {kept} of {wanted}");
                }
            }
        }
    }
}

#[test]
fn random_places_are_those_of_the_seed_and_as_many_as_asked() {
    for len in LENGTHS {
        let values = vec![1.0f32; len];
        let out = decoded("random-k", &[("density", 0.1)], &values, 5);
        assert_eq!(out.iter().sum::<f32>() as usize, ceil(0.1, len));
        assert_eq!(out, decoded("random-k", &[("density", 0.1)], &values, 5));
        let other = decoded("random-k", &[("density", 0.1)], &values, 6);
        assert!(len < 100 || out != other);
        let scaled = decoded("random-k-unbiased", &[("density", 0.1)], &values, 5);
        let scale = len as f32 / ceil(0.1, len).max(1) as f32;
        let expected: Vec<f32> = out.iter().map(|v| v * scale).collect();
        assert_eq!(scaled, expected);
    }
}

#[test]
fn cosines_are_those_of_tiles() {
    let basis = |i: usize, k: usize| {
        let angle = core::f64::consts::PI * ((2 * i + 1) * k) as f64 / 128.0;
        angle.cos() * if k == 0 { 0.125 } else { 2f64.sqrt() / 8.0 }
    };
    // Over rows and then over columns; the other way round with the roles of i and k turned.
    let transform = |x: &[f64], factor: &dyn Fn(usize, usize) -> f64| {
        let once = |x: &[f64]| {
            let of = |at: usize| {
                (0..64)
                    .map(|i| factor(i, at / 64) * x[64 * i + at % 64])
                    .sum()
            };
            (0..4096).map(of).collect::<Vec<f64>>()
        };
        let turned = |x: Vec<f64>| {
            (0..4096)
                .map(|at| x[64 * (at % 64) + at / 64])
                .collect::<Vec<_>>()
        };
        turned(once(&turned(once(x))))
    };
    agrees("de-mo", &[], 4096, 2e-5, |x| {
        let mut tile = x.to_vec();
        tile.resize(4096, 0.0);
        let cosines = transform(&tile, &|i, k| basis(i, k));
        let mut kept = vec![0.0; 4096];
        top(&cosines, 32)
            .into_iter()
            .for_each(|i| kept[i] = cosines[i]);
        let mut back = transform(&kept, &|k, i| basis(i, k));
        back.truncate(x.len());
        fixed(back)
    });
}

fn inner(a: &[f32], b: &[f32]) -> f64 {
    let products = a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b));
    products.sum()
}

/// A matrix of 96 x 64 of this rank and a little noise, and the projections of `power-sgd` over several rounds.
#[test]
fn power_iteration_projects_and_finds_what_there_is() {
    let (rows, columns) = (96, 64);
    let draw = |seed: usize, at: usize| inputs(rows * 8 + seed)[0][at];
    let product = |i: usize, j: usize| {
        (0..3)
            .map(|r| draw(r, i) * draw(r + 4, j) / (1 + r) as f32)
            .sum::<f32>()
    };
    let exact: Vec<f32> = (0..rows * columns)
        .map(|at| product(at / columns, at % columns))
        .collect();
    let kind = CodecKind::new("power-sgd", &[("rank", 3.0)]).expect("within range");
    let matrix = [Matrix {
        offset: 0,
        rows,
        columns,
    }];
    let (mut codec, mut memory) = (kind.build(), Vec::new());
    for (noise, limit) in [(0.0f32, 1e-6), (0.01, 2e-3)] {
        let values: Vec<f32> = exact
            .iter()
            .enumerate()
            .map(|(i, v)| v + noise * draw(9, i % 700))
            .collect();
        let mut left = 1.0;
        for round in 0..4 {
            let mut bytes = Vec::new();
            let mut context = EncodeContext {
                matrices: &matrix,
                ..EncodeContext::seeded(round, &mut memory)
            };
            codec.encode(&values, &mut context, &mut bytes);
            assert!(
                bytes.len() < 4 * 3 * (rows + columns) + 20,
                "{} bytes",
                bytes.len()
            );
            let mut out = vec![0.0; values.len()];
            codec
                .decode_add(&bytes, 1.0, &mut out)
                .expect("its own bytes");
            let (own, with, all) = (
                inner(&out, &out),
                inner(&out, &values),
                inner(&values, &values),
            );
            assert!(
                (own - with).abs() <= 1e-5 * own,
                "no projection: {own} {with}"
            );
            let now = (all - own) / all;
            assert!(now <= left + 1e-6, "{now} after {left}");
            left = now;
        }
        assert!(left < limit, "{noise}: {left}");
    }
}

#[test]
fn sketches_tell_of_the_largest() {
    let mut values: Vec<f32> = inputs(20_000)[0].iter().map(|v| 0.01 * v).collect();
    let heavy = [17, 4000, 9999, 19_999];
    heavy.iter().for_each(|at| values[*at] = 5.0);
    let given = [("density", 0.0002), ("width", 0.02), ("rows", 5.0)];
    let out = decoded("count-sketch", &given, &values, 1);
    for at in heavy {
        assert!((out[at] - 5.0).abs() < 0.5, "{}", out[at]);
    }
    assert_eq!(out.iter().filter(|v| **v != 0.0).count(), 4);
}

/// Four peers with quadratics of their own: f_i(x) = |x - b_i|^2 / 2. Gives the squared distance from
/// the optimum, the mean of the b_i, relative to that of the start.
fn descend(kind: &CodecKind, feedback: bool, targets: &[Vec<f32>], rate: f32, rounds: u64) -> f64 {
    let len = targets[0].len();
    let mut peers: Vec<_> = targets
        .iter()
        .map(|target| {
            let codec = kind.build();
            let slice = Slice::new(&*codec, len);
            (target, codec, slice, vec![0.0f32; len])
        })
        .collect();
    let count = targets.len() as f32;
    let optimum: Vec<f32> = (0..len)
        .map(|i| targets.iter().map(|b| b[i]).sum::<f32>() / count)
        .collect();
    let mut x = vec![0.0f32; len];
    for round in 0..rounds {
        let mut mean = vec![0.0f32; len];
        for (at, (target, codec, slice, residual)) in peers.iter_mut().enumerate() {
            let delta: Vec<f32> = target.iter().zip(&x).map(|(b, x)| rate * (b - x)).collect();
            slice.round = round;
            let (mut bytes, seed) = (Vec::new(), 31 * round + at as u64);
            match feedback {
                true => {
                    codec.encode_residual(&delta, residual, &mut slice.context(seed), &mut bytes)
                }
                false => codec.encode(&delta, &mut slice.context(seed), &mut bytes),
            }
            codec
                .decode_add(&bytes, 1.0 / count, &mut mean)
                .expect("its own bytes");
        }
        x.iter_mut().zip(&mean).for_each(|(x, m)| *x += m);
    }
    let off: Vec<f32> = x.iter().zip(&optimum).map(|(x, o)| x - o).collect();
    inner(&off, &off) / inner(&optimum, &optimum)
}

#[test]
fn with_feedback_the_optimum_is_reached() {
    let len = 200;
    let targets: Vec<Vec<f32>> = (0..4).map(|i| inputs(len + i)[0][..len].to_vec()).collect();
    let plain = CODECS.iter().map(|spec| crate::slice::kind(spec, 0.05));
    let kinds: Vec<CodecKind> = plain.chain(crate::slice::sparse()).collect();
    kinds.into_par_iter().for_each(|kind| {
        let properties = kind.build().properties();
        // A decay forgets what peers disagree on, and that is what is left at the optimum.
        if !properties.needs_feedback || properties.error > 1.0 || properties.decay < 1.0 {
            return;
        }
        // What is left is of the order of (rate / delta)^2, because the peers disagree.
        let off = descend(&kind, true, &targets, 0.001, 8000);
        println!("{kind:?}: {off}");
        assert!(off < 0.05, "{kind:?}: {off}");
    });
}

#[test]
fn without_feedback_top_k_stalls() {
    // Two peers pull at one value in turn: it is always their largest, and nothing else moves.
    let mut targets = vec![vec![1.0f32; 64]; 2];
    (targets[0][0], targets[1][0]) = (101.0, -99.0);
    let kind = CodecKind::new("top-k", &[("density", 1.0 / 64.0)]).expect("within range");
    let without = descend(&kind, false, &targets, 0.002, 20_000);
    assert!(without > 0.9, "{without}");
    let with = descend(&kind, true, &targets, 0.002, 20_000);
    assert!(with < 0.1, "{with}");
}
