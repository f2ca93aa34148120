//! The exchanges that agree are one law: gathered contributions and a parameter server in step give what the
//! all-reduce gives.

use crate::common::{Swarm, peer, relative};
use murmurate_protocol::Round;
use murmurate_strategies::toy::ToyTask;

const ROUNDS: u64 = 12;

/// Five peers' common anchor after some rounds.
fn anchor(preset: &str, architecture: &str, codec: &str, rounds: u64) -> Vec<f32> {
    let text = format!(
        "preset = \"{preset}\"\n[architecture]\n{architecture}\n[compression]\n{codec}\n\
         [overlap]\nfragments = 3\n"
    );
    let mut swarm = Swarm::training(&text, ToyTask::quadratic(203), 5, [0, 11]);
    swarm.run(rounds);
    let last = Round(rounds - 1);
    let anchor = swarm.members[&peer(0)].anchors[&last].clone();
    for member in swarm.members.values() {
        assert_eq!(member.anchors[&last], anchor, "all hold the same bits");
    }
    anchor
}

fn apart(a: &[f32], b: &[f32]) -> f64 {
    relative(b, a)
}

#[test]
fn without_compression_all_of_them_are_the_all_reduce() {
    for (preset, contribution) in [
        ("bsp", "gradient"),
        ("local-sgd", "delta"),
        ("diloco", "delta"),
    ] {
        let of = |exchange: &str| {
            let text = format!("{exchange}\ncontribution = \"{contribution}\"");
            anchor(preset, &text, "codec = \"f32\"", ROUNDS)
        };
        let reduced = of("exchange = \"all-reduce\"");
        for exchange in [
            "exchange = \"gathered\"",
            "exchange = \"parameter-server\"\nowners = 1",
            "exchange = \"parameter-server\"\nowners = 3",
        ] {
            let far = apart(&reduced, &of(exchange));
            assert!(far < 1e-6, "{preset} {exchange}: {far}");
        }
    }
}

#[test]
fn gathered_contributions_are_not_encoded_once_more() {
    // Of one round, in which all move the same way: five independent roundings average out, and the mean's
    // own rounding comes on top only where it is encoded again.
    let of = |exchange: &str, codec: &str| {
        let text = format!("exchange = \"{exchange}\"\ncontribution = \"delta\"");
        anchor("local-sgd", &text, codec, 1)
    };
    let exact = of("all-reduce", "codec = \"f32\"");
    let coarse = "codec = \"bf16\"";
    let gathered = apart(&exact, &of("gathered", coarse));
    let reduced = apart(&exact, &of("all-reduce", coarse));
    assert!(1.5 * gathered < reduced, "{gathered} {reduced}");
}
