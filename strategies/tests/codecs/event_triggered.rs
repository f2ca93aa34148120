//! `event-triggered` as SPARQ-SGD's rule, against the paper's algorithm in f64 on a ring.

use crate::numbers::{largest, only};
use murmurate_strategies::compress::{Codec, CodecKind, EncodeContext};

const PEERS: usize = 6;
const DIM: usize = 40;

/// Places that C keeps, its inner steps between exchanges, and the paper's gamma.
const KEPT: usize = 10;
const LOCAL: usize = 3;
const RATE: f64 = 0.3;

fn gradient(at: usize, x: &[f64]) -> Vec<f64> {
    let curvature = |d: usize| 0.2 + 0.8 * ((at * 5 + d * 3) % 8) as f64 / 7.0;
    let center = |d: usize| ((at * 37 + d * 11) % 23) as f64 / 8.0 - 1.4;
    (0..DIM)
        .map(|d| curvature(d) * (x[d] - center(d)))
        .collect()
}

/// Where the mean of the peers' functions is smallest.
fn optimum() -> Vec<f64> {
    let (zero, one) = (vec![0.0; DIM], vec![1.0; DIM]);
    let at_zero: Vec<Vec<f64>> = (0..PEERS).map(|at| gradient(at, &zero)).collect();
    let at_one: Vec<Vec<f64>> = (0..PEERS).map(|at| gradient(at, &one)).collect();
    let sum = |all: &[Vec<f64>], d: usize| all.iter().map(|v| v[d]).sum::<f64>();
    let of = |d: usize| -sum(&at_zero, d) / (sum(&at_one, d) - sum(&at_zero, d));
    (0..DIM).map(of).collect()
}

/// The weight of each neighbour on the ring.
const WEIGHT: f64 = 1.0 / 3.0;

fn square(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|v| v * v).sum()
}

/// What a peer sends of a difference; `None` where it sends nothing.
type Send<'a> = &'a mut dyn FnMut(usize, &[f64]) -> Option<Vec<f64>>;

/// Algorithm 1 of the paper: who sends in each exchange, and where the peers end.
fn run(exchanges: usize, rate: f64, send: Send<'_>) -> (Vec<[bool; PEERS]>, Vec<Vec<f64>>) {
    let (mut x, mut copies) = (vec![vec![0.0; DIM]; PEERS], vec![vec![0.0; DIM]; PEERS]);
    let mut senders = Vec::new();
    for _ in 0..exchanges {
        for (at, x) in x.iter_mut().enumerate() {
            for _ in 0..LOCAL {
                let down = gradient(at, x);
                x.iter_mut().zip(down).for_each(|(x, g)| *x -= rate * g);
            }
        }
        let mut now = [false; PEERS];
        for at in 0..PEERS {
            let difference: Vec<f64> = x[at].iter().zip(&copies[at]).map(|(x, h)| x - h).collect();
            let Some(sent) = send(at, &difference) else {
                continue;
            };
            now[at] = true;
            copies[at].iter_mut().zip(sent).for_each(|(h, q)| *h += q);
        }
        for (at, x) in x.iter_mut().enumerate() {
            for other in [(at + 1) % PEERS, (at + PEERS - 1) % PEERS] {
                for (d, x) in x.iter_mut().enumerate() {
                    *x += RATE * WEIGHT * (copies[other][d] - copies[at][d]);
                }
            }
        }
        senders.push(now);
    }
    (senders, x)
}

/// The paper's rule with the largest values as C, in f64.
fn by_the_paper(threshold: f64, difference: &[f64]) -> Option<Vec<f64>> {
    if square(difference.iter().copied()) <= threshold * threshold * DIM as f64 {
        return None;
    }
    Some(only(difference, &largest(difference, KEPT)))
}

fn kind(given: &[(&str, f64)]) -> CodecKind {
    CodecKind::new("event-triggered", given).unwrap()
}

/// The codec's encoding of values.
fn encoded(codec: &mut dyn Codec, values: &[f32]) -> Vec<u8> {
    let (mut memory, mut bytes) = (Vec::new(), Vec::new());
    let mut context = EncodeContext::seeded(1, &mut memory);
    codec.encode(values, &mut context, &mut bytes);
    bytes
}

fn by_the_codec(codec: &mut dyn Codec, difference: &[f64]) -> Option<Vec<f64>> {
    let values: Vec<f32> = difference.iter().map(|v| *v as f32).collect();
    let bytes = encoded(codec, &values);
    let mut sent = vec![0.0f32; DIM];
    codec.decode_add(&bytes, 1.0, &mut sent).unwrap();
    let says = bytes.len() > 3;
    assert_eq!(says, sent.iter().any(|v| *v != 0.0));
    says.then(|| sent.iter().map(|v| f64::from(*v)).collect())
}

/// The largest distance of a peer from the optimum, in its length.
fn off(x: &[Vec<f64>]) -> f64 {
    let optimum = optimum();
    let far = |x: &Vec<f64>| square(x.iter().zip(&optimum).map(|(x, o)| x - o));
    let most = x.iter().map(far).fold(0.0, f64::max);
    (most / square(optimum.iter().copied())).sqrt()
}

fn count(senders: &[[bool; PEERS]]) -> usize {
    senders.iter().flatten().filter(|sends| **sends).count()
}

#[test]
fn peers_send_where_the_paper_lets_them_send() {
    let density = KEPT as f64 / DIM as f64;
    for threshold in [0.0, 0.02, 0.1] {
        let given = [("of", 1.0), ("density", density), ("quiet", threshold)];
        let mut codec = kind(&given).build();
        let (expected, ends) = run(60, 0.02, &mut |_, v| by_the_paper(threshold, v));
        let (found, x) = run(60, 0.02, &mut |_, v| by_the_codec(codec.as_mut(), v));
        assert_eq!(found, expected, "{threshold}");
        for (x, end) in x.iter().flatten().zip(ends.iter().flatten()) {
            // What f32 rounds in 60 exchanges of values up to two.
            assert!((x - end).abs() < 1e-4, "{threshold}");
        }
    }
}

#[test]
fn peers_that_seldom_send_come_as_near_to_the_optimum() {
    let density = KEPT as f64 / DIM as f64;
    let ends = |threshold: f64| {
        let given = [("of", 1.0), ("density", density), ("quiet", threshold)];
        let mut codec = kind(&given).build();
        let (senders, x) = run(1500, 0.004, &mut |_, v| by_the_codec(codec.as_mut(), v));
        println!(
            "threshold {threshold}: {} sent, {:.2e}",
            count(&senders),
            off(&x)
        );
        (count(&senders), off(&x))
    };
    let (every, exact) = ends(0.0);
    let (seldom, near) = ends(0.01);
    assert_eq!(every, 1500 * PEERS);
    assert!(4 * seldom < every, "{seldom} of {every}");
    // Local training of unequal data at a rate leaves a part of the distance, with all of them sending too.
    assert!(near < exact + 0.01 && exact < 0.15, "{near} {exact}");
}

#[test]
fn a_quiet_value_costs_three_bytes_and_its_sender_keeps_it() {
    let mut codec = kind(&[("of", 5.0), ("quiet", 1.0)]).build();
    // The threshold itself is not above it.
    for (values, says) in [
        ([1.0f32, -1.0], false),
        ([1.0, 1.1], true),
        ([0.0, 0.0], false),
    ] {
        let bytes = encoded(codec.as_mut(), &values);
        assert_eq!(bytes.len(), if says { 3 + 1 + 8 } else { 3 });
        let mut acc = [0.5f32, 0.5];
        codec.decode_add(&bytes, 1.0, &mut acc).unwrap();
        let expected = if says {
            [0.5 + values[0], 0.5 + values[1]]
        } else {
            [0.5, 0.5]
        };
        assert_eq!(acc, expected);
    }
    // Error feedback holds what was not said until it is enough.
    let (mut residual, mut memory) = ([0.0f32; 2], Vec::new());
    for round in 1..=3 {
        let mut bytes = Vec::new();
        let mut context = EncodeContext::seeded(1, &mut memory);
        codec.encode_residual(&[0.4, 0.4], &mut residual, &mut context, &mut bytes);
        let held = if round < 3 { 0.4 * round as f32 } else { 0.0 };
        assert!(
            (residual[0] - held).abs() < 1e-6,
            "round {round}: {residual:?}"
        );
    }
    // A word of nothing that has a body is refused, and so is another number.
    for bad in [[61u8, 5, 0, 9], [61, 5, 2, 1]] {
        assert!(codec.decode_add(&bad, 1.0, &mut [0.0; 2]).is_err());
    }
}
