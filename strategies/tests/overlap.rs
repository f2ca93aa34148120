//! Overlap, with peers and Executors together: what staggered fragments are equal to.
#![allow(clippy::unwrap_used, reason = "helpers of tests may, as tests do")]

mod common;

use common::{Make, Swarm, peer};
use murmurate_protocol::Round;
use murmurate_strategies::inner::InnerKind;
use murmurate_strategies::toy::ToyTask;

const DIM: usize = 203;
const PEERS: usize = 3;

/// A quadratic without noise: every coordinate goes its way whatever the others do.
fn separable() -> Make {
    let task = ToyTask::Quadratic {
        dim: DIM,
        heterogeneity: 1.0,
        noise: 0.0,
        inner: InnerKind::sgd(0.1),
    };
    Box::new(move |index| task.build(index, PEERS, 11))
}

fn run(text: &str, rounds: u64) -> Swarm {
    let mut swarm = Swarm::new(text, PEERS, 0, separable());
    swarm.run(rounds);
    swarm
}

/// A member's anchor when a round had ended.
fn anchor(swarm: &Swarm, index: usize, round: u64) -> &[f32] {
    &swarm.members[&peer(index)].anchors[&Round(round)]
}

#[test]
fn staggered_fragments_are_as_many_plain_runs_each_begun_a_round_later() {
    let staggered = "preset = \"diloco\"\n[synchronization]\ninner_steps = 3\n\
                     [overlap]\nfragments = 8\nstagger = 4\n";
    let staggered = run(staggered, 16);
    let whole = "preset = \"diloco\"\n[synchronization]\ninner_steps = 12\n\
                 [overlap]\nfragments = 8\n";
    let whole = run(whole, 4);
    let ranges = staggered.strategy.fragments(DIM);
    for (fragment, range) in ranges.into_iter().enumerate() {
        let turn = fragment as u64 % 4;
        for round in 0..16 {
            let at = |round: u64| &anchor(&staggered, 0, round)[range.clone()];
            for other in 1..PEERS {
                let theirs = &anchor(&staggered, other, round)[range.clone()];
                assert_eq!(theirs, at(round), "fragment {fragment}, round {round}");
            }
            let moved = round == 0 || at(round) != at(round - 1);
            let first = round == 0 && turn != 0;
            assert_eq!(
                moved && !first,
                round % 4 == turn,
                "fragment {fragment}, round {round}"
            );
        }
    }
    // The last in turn have their first exchange after four rounds of three inner steps, and from
    // then on every four: a plain run of twelve, to the bit.
    for fragment in [3, 7] {
        let range = staggered.strategy.fragments(DIM)[fragment].clone();
        for cycle in 0..4 {
            assert_eq!(
                anchor(&staggered, 1, 4 * cycle + 3)[range.clone()],
                anchor(&whole, 1, cycle)[range.clone()],
                "fragment {fragment}, cycle {cycle}"
            );
        }
    }
}
