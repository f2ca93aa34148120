//! 1-bit Adam with real peers: momenta leave as they are during the warm-up, then as signs with error
//! feedback.

use crate::common::{Swarm, gradient, peer, quadratic, quadratics, relative};
use murmurate_protocol::Round;
use murmurate_strategies::inner::InnerKind;

const DIM: usize = 24;
const PEERS: usize = 4;
const SEED: u64 = 5;
const LR: f64 = 0.01;
const WARM_UP: u64 = 30;
const BETAS: [f64; 2] = [0.9, 0.999];
/// Larger than usual: signs move all values of a shard alike, and one whose gradient is small would be thrown
/// about.
const EPS: f64 = 0.05;

fn text(sends: &str) -> String {
    format!(
        "preset = \"one-bit-adam\"\n[compression]\nwarm_up = {WARM_UP}\n\
         [inner]\nlr = {LR}\neps = {EPS}\nfreeze = {WARM_UP}\nsends = \"{sends}\"\n"
    )
}

fn swarm(text: &str) -> Swarm {
    let task = quadratic(DIM, 1.0, InnerKind::sgd(LR));
    Swarm::training(text, task, PEERS, [1, SEED])
}

/// Algorithm 1 of the paper in f64, but for the mean of the signs, which returns as it is.
fn reference(rounds: u64) -> Vec<f64> {
    let tasks = quadratics(DIM, 1.0, PEERS, SEED);
    let (mut x, mut m, mut v) = (vec![0.0; DIM], vec![0.0; DIM], vec![0.0; DIM]);
    let mut errors = vec![vec![0.0; DIM]; PEERS];
    for t in 1..=rounds {
        let mut mean = [0.0; DIM];
        for (task, error) in tasks.iter().zip(&mut errors) {
            let pairs = m.iter().zip(gradient(task, &x));
            let own: Vec<f64> = pairs
                .map(|(m, g)| BETAS[0] * m + (1.0 - BETAS[0]) * g)
                .collect();
            if t <= WARM_UP {
                mean.iter_mut()
                    .zip(&own)
                    .for_each(|(mean, o)| *mean += o / PEERS as f64);
                continue;
            }
            let whole: Vec<f64> = own.iter().zip(&*error).map(|(o, e)| o + e).collect();
            // Each owner's shard is a block of its own.
            for shard in (0..DIM).step_by(DIM / PEERS) {
                let shard = shard..shard + DIM / PEERS;
                let sum: f64 = whole[shard.clone()].iter().map(|w| w.abs()).sum();
                for d in shard.clone() {
                    let sent = (sum / shard.len() as f64).copysign(whole[d]);
                    error[d] = whole[d] - sent;
                    mean[d] += sent / PEERS as f64;
                }
            }
        }
        let renewals = t.min(WARM_UP) as i32;
        for d in 0..DIM {
            if t <= WARM_UP {
                let gradient = (mean[d] - BETAS[0] * m[d]) / (1.0 - BETAS[0]);
                v[d] = BETAS[1] * v[d] + (1.0 - BETAS[1]) * gradient * gradient;
            }
            m[d] = mean[d];
            let m_hat = m[d] / (1.0 - BETAS[0].powi(t as i32));
            let v_hat: f64 = v[d] / (1.0 - BETAS[1].powi(renewals));
            x[d] -= LR * m_hat / (v_hat.sqrt() + EPS);
        }
    }
    x
}

#[test]
fn peers_follow_the_paper_before_and_after_the_warm_up() {
    let mut swarm = swarm(&text("momenta"));
    swarm.run(WARM_UP + 40);
    let size = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
    // Exact values in the warm-up; then means that return in 8 bits.
    for (round, tolerance) in [(WARM_UP - 1, 1e-6), (WARM_UP, 0.002), (WARM_UP + 9, 0.02)] {
        let expected = reference(round + 1);
        for member in swarm.members.values() {
            let anchor = &member.anchors[&Round(round)];
            let off: Vec<f64> = anchor
                .iter()
                .zip(&expected)
                .map(|(a, e)| f64::from(*a) - e)
                .collect();
            assert!(
                size(&off) < tolerance * size(&expected),
                "round {round}: {}",
                size(&off)
            );
        }
    }
}

/// Error feedback on momenta keeps what signs lose; the swarm comes as near to the optimum as gradients do.
#[test]
fn signs_of_momenta_reach_the_optimum() {
    let far = |sends: &str| {
        let mut swarm = swarm(&text(sends));
        swarm.run_long(600);
        let anchor = swarm.members[&peer(0)].executor.anchor();
        relative(anchor, quadratics(DIM, 1.0, PEERS, SEED)[0].optimum())
    };
    let (momenta, gradients) = (far("momenta"), far("gradients"));
    println!("from the optimum: {momenta:.3} by momenta, {gradients:.3} by gradients");
    assert!(
        momenta < 0.1 && momenta < 2.0 * gradients,
        "{momenta} {gradients}"
    );
}
