//! Exchanges between neighbours, without a group: gossip, exchanges between two, sums along a tree. Here is what
//! their tests share: members at rest, which exchanges alone move, and deaths before each kind of output.

mod differences;
mod gossip;
mod pairwise;
mod pulled;
mod relay;

use crate::common::{
    Resting, Swarm, mixing_matrix, near, off_optimum, peer, quadratic, quadratics, wide,
};
use murmurate_protocol::{Order, Output, Round, StepBudget};
use murmurate_strategies::Trainer;
use murmurate_strategies::grid::Strategy;
use murmurate_strategies::topology::Ring;

pub(crate) const DIM: usize = 37;

/// Members whose inner steps change nothing.
pub(crate) fn resting(text: &str, peers: usize, seed: u64) -> Swarm {
    let make = Box::new(|index| Box::new(Resting::new(index, DIM)) as Box<dyn Trainer>);
    Swarm::new(text, peers, seed, make)
}

/// The parameters that members at rest begin with.
pub(crate) fn starts(peers: impl IntoIterator<Item = usize>) -> Vec<Vec<f64>> {
    let start = |index| wide(&Resting::new(index, DIM).x);
    peers.into_iter().map(start).collect()
}

/// The sum of vectors, value by value.
pub(crate) fn sum(of: &[Vec<f64>]) -> Vec<f64> {
    let at = |d: usize| of.iter().map(|x| x[d]).sum();
    (0..of[0].len()).map(at).collect()
}

/// Their mean.
pub(crate) fn mean(of: &[Vec<f64>]) -> Vec<f64> {
    let count = of.len() as f64;
    sum(of).into_iter().map(|sum| sum / count).collect()
}

/// Checks that all members are within `most` of the mean of what they began with.
pub(crate) fn near_their_mean(swarm: &Swarm, most: f64, what: &str) {
    let mean = mean(&starts(0..swarm.members.len()));
    for member in swarm.members.values() {
        near(member.executor.anchor(), &mean, most, what);
    }
}

/// Checks that sums over peers are what they were.
pub(crate) fn conserved(before: &[f64], after: &[f64], what: &str) {
    for (before, after) in before.iter().zip(after) {
        let off = (before - after).abs();
        assert!(off < 2e-3, "{what}: {before} became {after}");
    }
}

/// Before which output a member dies.
type Moment = fn(&Output) -> bool;

fn ordered(output: &Output, is: fn(&Order) -> bool) -> bool {
    matches!(output, Output::Order { order, .. } if is(order))
}

pub(crate) const MOMENTS: [(&str, Moment); 5] = [
    ("train", |o| {
        ordered(o, |o| matches!(o, Order::Train { .. }))
    }),
    ("encode", |o| {
        ordered(o, |o| matches!(o, Order::Encode { .. }))
    }),
    ("push", |o| matches!(o, Output::Push { .. })),
    ("mix", |o| {
        ordered(o, |o| matches!(o, Order::Combine { .. }))
    }),
    ("apply", |o| {
        ordered(o, |o| matches!(o, Order::Apply { .. }))
    }),
];

/// Runs until a member has died at this moment of a round or of a later one. Gives the round of the others.
pub(crate) fn dies(swarm: &mut Swarm, victim: usize, round: u64, moment: Moment) -> u64 {
    swarm.fatal = Box::new(move |who, now, output| {
        who == peer(victim) && now >= Round(round) && moment(output)
    });
    swarm.run_until(|swarm| swarm.dead.len() == 1);
    swarm.rounds().into_iter().max().unwrap()
}

#[test]
fn a_lossless_codec_mixes_by_the_matrix() {
    let lossless = "[compression]\ncodec = \"f32\"";
    for text in [
        format!("preset = \"choco\"\n[architecture]\nrate = 1.0\n{lossless}"),
        format!("{}\n{lossless}", differences::DCD),
        format!("{}\n{lossless}", differences::ECD),
    ] {
        for peers in [3, 5, 8] {
            let mut swarm = resting(&text, peers, 0);
            swarm.run(6);
            let w = mixing_matrix(&Ring, Round(0), peers);
            // Ranks are positions among all ids, which grow with the index.
            let mut x = starts(0..peers);
            for round in 0..6 {
                let mixed = w.iter().map(|row| {
                    let at = |d: usize| row.iter().zip(&x).map(|(w, x)| w * x[d]).sum();
                    (0..DIM).map(at).collect()
                });
                x = mixed.collect();
                for (index, x) in x.iter().enumerate() {
                    let found = &swarm.members[&peer(index)].anchors[&Round(round)];
                    // f32 rounding of six rounds on values below ten.
                    near(found, x, 1e-4, &format!("{text}, {peers} peers, {round}"));
                }
            }
        }
    }
}

/// What one peer's death takes along leaves no bias: the others find the optimum of those that are left.
#[test]
fn after_a_death_the_others_find_the_optimum_of_their_own_data() {
    for preset in ["d2", "relaysgd"] {
        let (dim, peers) = (32, 4);
        let strategy = Strategy::preset(preset).unwrap();
        assert_eq!(strategy.budget(), StepBudget::Steps(1));
        let task = quadratic(dim, 0.3, *strategy.inner_kind());
        let text = format!("preset = \"{preset}\"");
        let mut swarm = Swarm::training(&text, task, peers, [0, 3]);
        swarm.run(50);
        swarm.kill(peer(1));
        swarm.run_long(950);
        let mut left = quadratics(dim, 0.3, peers, 3);
        left.remove(1);
        let off = off_optimum(&swarm, &left);
        assert!(off < 1e-4, "{preset}: {off} off");
    }
}
