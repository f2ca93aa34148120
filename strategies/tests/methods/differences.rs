//! Codecs between neighbours that no exchange carries: each reaches what gossip of exact parameters
//! reaches, and where it must fail it does.
#![allow(clippy::unwrap_used, reason = "helpers of tests may, as tests do")]

use murmurate_protocol::Round;
use murmurate_strategies::compress::difference::{Dcd, Ecd};
use murmurate_strategies::compress::moniqua::Moniqua;
use murmurate_strategies::compress::{CodecKind, EncodeContext};
use murmurate_strategies::topology::{Ring, mixing_matrix};
use murmurate_strategies::toy::Quadratic;

const PEERS: usize = 8;
const DIM: usize = 12;
const LR: f32 = 0.02;
const ROUNDS: u64 = 1500;

type Vectors = Vec<Vec<f32>>;

/// Eight peers on a ring with different optima.
struct Ringed {
    peers: Vec<Quadratic>,
    weights: Vec<Vec<f64>>,
}

impl Ringed {
    fn new() -> Self {
        let peers = (0..PEERS).map(|i| Quadratic::new(DIM, 1.0, 0.0, [i, PEERS], 1));
        Self {
            peers: peers.collect(),
            weights: mixing_matrix(&Ring, Round(0), PEERS),
        }
    }

    /// `sum_j w_ij x_j`.
    fn mixed(&self, at: usize, x: &[Vec<f32>]) -> Vec<f32> {
        let sum = |d: usize| {
            let terms = self.weights[at].iter().zip(x);
            terms.map(|(w, x)| w * f64::from(x[d])).sum::<f64>() as f32
        };
        (0..DIM).map(sum).collect()
    }

    /// `y -= lr g(x)`.
    fn descend(&self, at: usize, x: &[f32], y: &mut [f32]) {
        let (curvature, center) = self.peers[at].own();
        for (d, y) in y.iter_mut().enumerate() {
            *y -= LR * curvature[d] * (x[d] - center[d]);
        }
    }

    /// Gossip of exact parameters: what the others are measured by.
    fn exact(&self) -> Vectors {
        let mut x = vec![vec![0.0; DIM]; PEERS];
        for _ in 0..ROUNDS {
            let next = (0..PEERS).map(|at| {
                let mut y = self.mixed(at, &x);
                self.descend(at, &x[at], &mut y);
                y
            });
            x = next.collect();
        }
        x
    }
}

/// The largest difference.
fn apart(a: &[Vec<f32>], b: &[Vec<f32>]) -> f32 {
    let pairs = a.iter().flatten().zip(b.iter().flatten());
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn kind(name: &str, given: &[(&str, f64)]) -> CodecKind {
    CodecKind::new(name, given).unwrap()
}

/// What DCD-PSGD ends at.
fn dcd(kind: CodecKind, rounds: u64) -> Vectors {
    let ring = Ringed::new();
    let mut codec = kind.build();
    let mut own = vec![Dcd::new(&[0.0; DIM]); PEERS];
    let mut replicas = own.clone();
    for round in 0..rounds {
        let x: Vectors = replicas.iter().map(|r| r.parameters().to_vec()).collect();
        for at in 0..PEERS {
            let mut y = ring.mixed(at, &x);
            ring.descend(at, &x[at], &mut y);
            let (mut bytes, mut memory) = (Vec::new(), Vec::new());
            let mut context = EncodeContext::seeded(round * 8 + at as u64, &mut memory);
            own[at]
                .encode(&mut *codec, &mut y, &mut context, &mut bytes)
                .unwrap();
            replicas[at].receive(&*codec, &bytes).unwrap();
            // The law: a replica is what it stands for, bit for bit.
            assert_eq!(own[at].parameters(), replicas[at].parameters());
            assert!(replicas[at].receive(&*codec, &bytes[1..]).is_err());
        }
    }
    own.iter().map(|x| x.parameters().to_vec()).collect()
}

#[test]
fn dcd_comes_to_what_exact_gossip_comes_to() {
    let exact = Ringed::new().exact();
    let far = apart(&dcd(kind("f32", &[]), ROUNDS), &exact);
    assert!(far < 1e-4, "without loss it is gossip: {far}");
    for (coarse, near) in [
        (kind("int8", &[]), 2e-3),
        (kind("qsgd", &[("levels", 15.0)]), 2e-2),
    ] {
        let far = apart(&dcd(coarse, ROUNDS), &exact);
        assert!(far < near, "{coarse:?}: {far}");
    }
}

#[test]
fn dcd_diverges_where_the_codec_is_coarser_than_its_bound() {
    // The variance of these is seven times what there is: alpha^2 = 7 is beyond any spectral gap.
    let coarse = kind("random-k-unbiased", &[("density", 0.125)]);
    let far = apart(&dcd(coarse, 60), &Ringed::new().exact());
    assert!(far.is_nan() || far > 100.0, "{far}");
}

#[test]
fn ecd_estimates_come_to_rest_and_the_parameters_with_them() {
    let ring = Ringed::new();
    let exact = ring.exact();
    let mut codec = kind("qsgd", &[("levels", 127.0), ("bucket", 64.0)]).build();
    let mut x = vec![vec![0.0f32; DIM]; PEERS];
    let mut estimates = vec![Ecd::new(&[0.0; DIM]); PEERS];
    let (mut early, mut late) = (0.0f32, 0.0f32);
    for t in 1..=ROUNDS {
        let known: Vectors = estimates.iter().map(|e| e.estimate().to_vec()).collect();
        for at in 0..PEERS {
            let mut next = ring.mixed(at, &known);
            ring.descend(at, &x[at], &mut next);
            let z = Ecd::extrapolate(&x[at], &next, t);
            let (mut bytes, mut memory) = (Vec::new(), Vec::new());
            let mut context = EncodeContext::seeded(t * 8 + at as u64, &mut memory);
            codec.encode(&z, &mut context, &mut bytes);
            assert!(estimates[at].receive(&*codec, &bytes[1..], t).is_err());
            estimates[at].receive(&*codec, &bytes, t).unwrap();
            x[at] = next;
        }
        let known: Vectors = estimates.iter().map(|e| e.estimate().to_vec()).collect();
        let far = apart(&known, &x);
        match t {
            20..40 => early = early.max(far),
            t if t > ROUNDS - 20 => late = late.max(far),
            _ => {}
        }
    }
    // The variance of an estimate falls as 1 / t: over 1500 rounds by far more than to a half.
    assert!(late < 0.5 * early, "{early} {late}");
    let far = apart(&x, &exact);
    assert!(far < 0.02, "{far}");
}

#[test]
fn ecd_without_loss_is_the_parameters_themselves() {
    let mut codec = kind("f32", &[]).build();
    let (mut x, mut estimate) = (vec![1.0f32; 9], Ecd::new(&[1.0; 9]));
    for t in 1..50 {
        let next: Vec<f32> = (0..9)
            .map(|i| x[i] + 0.125 * ((t as usize + i) % 5) as f32)
            .collect();
        let (mut bytes, mut memory) = (Vec::new(), Vec::new());
        let z = Ecd::extrapolate(&x, &next, t);
        codec.encode(&z, &mut EncodeContext::seeded(t, &mut memory), &mut bytes);
        estimate.receive(&*codec, &bytes, t).unwrap();
        x = next;
        for (e, x) in estimate.estimate().iter().zip(&x) {
            assert!((e - x).abs() < 1e-4 * x.abs(), "{e} {x}");
        }
    }
}

/// What gossip of parameters modulo a bound comes to.
fn moniqua(bits: u32, theta: f32) -> Vectors {
    let (ring, moniqua) = (Ringed::new(), Moniqua::new(bits, theta));
    let mut x = vec![vec![0.0f32; DIM]; PEERS];
    for round in 0..ROUNDS {
        let sent: Vec<Vec<u8>> = x
            .iter()
            .enumerate()
            .map(|(at, x)| {
                let mut bytes = Vec::new();
                moniqua.encode(x, round * 8 + at as u64, &mut bytes);
                bytes
            })
            .collect();
        let next = (0..PEERS).map(|at| {
            let decoded: Vectors = sent
                .iter()
                .enumerate()
                .map(|(from, bytes)| {
                    let mut back = vec![0.0; DIM];
                    if ring.weights[at][from] > 0.0 {
                        moniqua.decode(bytes, &x[at], &mut back).unwrap();
                    }
                    back
                })
                .collect();
            // x_i' = x_i + sum_j w_ij (x^_j - x^_i) - lr g
            let mixed = ring.mixed(at, &decoded);
            let pairs = x[at].iter().zip(mixed).zip(&decoded[at]);
            let mut y: Vec<f32> = pairs.map(|((x, m), own)| x + m - own).collect();
            ring.descend(at, &x[at], &mut y);
            y
        });
        x = next.collect();
    }
    x
}

#[test]
fn moniqua_comes_to_what_exact_gossip_comes_to_where_its_bound_holds() {
    let exact = Ringed::new().exact();
    let spread = exact
        .iter()
        .map(|x| apart(&exact, &vec![x.clone(); PEERS]))
        .fold(0.0, f32::max);
    for (bits, near) in [(8, 0.05), (4, 0.5)] {
        let far = apart(&moniqua(bits, 2.0 * spread), &exact);
        assert!(far < near * spread, "{bits} bits: {far} of {spread}");
    }
    // A bound that does not hold: values come out wrong by whole multiples of it.
    let far = apart(&moniqua(8, 0.05 * spread), &exact);
    assert!(far > spread, "{far} of {spread}");
}
