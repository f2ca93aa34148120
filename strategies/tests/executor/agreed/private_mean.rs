//! Rule `private-mean` with real peers: nothing that leaves one is longer than the clip or without noise, a round
//! that is repaired after a death shows no second noise, and too few members make no mean.

use crate::common::check::{dies_at_a_push, refused};
use crate::common::{Swarm, peer, quadratic, same_bits};
use murmurate_protocol::{ExchangeKind, FragmentId, Part, PeerId, Round};
use murmurate_strategies::grid::Strategy;
use murmurate_strategies::inner::InnerKind;
use std::collections::BTreeMap;

const DIM: usize = 24;
const PEERS: usize = 4;
const CLIP: f64 = 0.25;

fn text(exchange: &str, keys: &str) -> String {
    format!(
        "preset = \"local-sgd\"\n[synchronization]\ninner_steps = 2\n[architecture]\nexchange = \"{exchange}\"\n\
         contribution = \"delta\"\n[compression]\ncodec = \"f32\"\n[aggregation]\nrule = \"private-mean\"\nclip = {CLIP}\n{keys}\n[inner]\n\
         optimizer = \"sgd\"\nlr = 0.2\n"
    )
}

fn swarm(exchange: &str, keys: &str, seed: u64) -> Swarm {
    let task = quadratic(DIM, 1.0, InnerKind::sgd(0.2));
    Swarm::training(&text(exchange, keys), task, PEERS, [seed, 3])
}

/// What each member sent of each round: its f32 contributions to all shards, one behind the other.
fn sent(swarm: &Swarm) -> BTreeMap<(PeerId, Round), Vec<f32>> {
    let mut sent: BTreeMap<_, BTreeMap<_, Vec<f32>>> = BTreeMap::new();
    for (slice, bytes) in &swarm.encoded {
        // Gathered contributions are agreed on as they are.
        let gathered = swarm.plan.exchange == ExchangeKind::Gathered;
        if slice.part != Part::Contribution && !gathered {
            continue;
        }
        // Behind the codec's tag.
        let values = bytes[1..].as_chunks::<4>().0.iter();
        let values = values.map(|four| f32::from_le_bytes(*four)).collect();
        let shards = sent.entry((slice.origin, slice.round)).or_default();
        let place = (slice.fragment, slice.shard);
        let before = shards.insert(place, values);
        let again = before.is_some_and(|before| before != shards[&place]);
        assert!(!again, "{slice:?} was sent with other values before");
    }
    let whole = |shards: BTreeMap<_, Vec<f32>>| shards.into_values().flatten().collect();
    sent.into_iter().map(|(of, it)| (of, whole(it))).collect()
}

fn norm(values: &[f32]) -> f64 {
    let squares = values.iter().map(|v| f64::from(*v).powi(2));
    squares.sum::<f64>().sqrt()
}

#[test]
fn nothing_longer_than_the_clip_leaves_a_peer() {
    for exchange in ["all-reduce", "gathered", "parameter-server"] {
        let mut swarm = swarm(exchange, "noise = 0", 1);
        swarm.run(4);
        let sent = sent(&swarm);
        assert!(sent.len() >= 4 * (PEERS - 1), "{exchange}: {}", sent.len());
        let norms: Vec<f64> = sent.values().map(|values| norm(values)).collect();
        assert!(norms.iter().all(|n| *n < CLIP * (1.0 + 1e-6)), "{norms:?}");
        // Most deltas of this task are longer, so the clip is what shortened them.
        let clipped = norms.iter().filter(|n| **n > CLIP * (1.0 - 1e-6));
        assert!(clipped.count() > 2 * PEERS, "{norms:?}");
        let weights = &swarm.stated[&(Round(2), FragmentId(0))][0];
        assert!(weights.iter().all(|(_, weight)| *weight == 1.0));
    }
}

#[test]
fn what_leaves_a_peer_has_the_noise_of_its_share() {
    // 1.5 * 0.25
    let deviation = 0.375;
    let mut noised = swarm("all-reduce", "noise = 1.5", 1);
    noised.run(40);
    let sent = sent(&noised);
    let values: Vec<f32> = sent.values().flatten().copied().collect();
    let mean = norm(&values).powi(2) / values.len() as f64;
    // Beside the noise, the clipped delta itself adds a little to each value.
    let own = CLIP * CLIP / DIM as f64;
    assert!(mean > deviation * deviation * 0.9, "{mean}");
    assert!(mean < deviation * deviation * 1.1 + own, "{mean}");
    for (one, other) in sent.values().zip(sent.values().skip(1)) {
        assert!(
            one.iter().zip(other).all(|(a, b)| a != b),
            "noise came twice"
        );
    }
}

#[test]
fn a_round_that_is_repaired_shows_no_second_noise() {
    for part in [Part::Contribution, Part::Aggregate] {
        for seed in 0..4 {
            let mut swarm = swarm("all-reduce", "noise = 1.0", seed);
            swarm.fatal = dies_at_a_push(peer(1), part, 1);
            swarm.run(6);
            // It asserts that no contribution was sent with two values.
            assert!(sent(&swarm).len() > 4 * (PEERS - 1));
            same_bits(&swarm, 6, &format!("{part:?} {seed}"));
        }
    }
}

#[test]
fn fewer_members_than_protect_together_make_no_mean() {
    let mut swarm = swarm("all-reduce", "noise = 1.0\nmembers = 4", 0);
    swarm.run(3);
    let before = swarm.members[&peer(0)].executor.anchor().to_vec();
    swarm.kill(peer(3));
    swarm.run(8);
    assert!(!swarm.voided(peer(0)).is_empty());
    assert_eq!(swarm.members[&peer(0)].executor.anchor(), before);
}

/// A codec would be of means alone.
#[test]
fn no_codec_can_be_directed_where_members_protect_together() {
    let codecs = |keys: &str| {
        let strategy = Strategy::parse(&text("all-reduce", keys), None).unwrap();
        strategy.codecs().len()
    };
    assert!(codecs("noise = 1.0") > 1);
    assert_eq!(codecs("noise = 1.0\nmembers = 3"), 0);
}

#[test]
fn what_would_show_more_is_refused() {
    let plain = text("all-reduce", "noise = 1.0");
    assert!(Strategy::parse(&plain, None).is_ok());
    for (from, to, says) in [
        (
            "contribution = \"delta\"",
            "contribution = \"gradient\"",
            "one inner step",
        ),
        (
            "[inner]",
            "[overlap]\nfragments = 2\nstagger = 2\n[inner]",
            "as a whole",
        ),
        ("noise = 1.0", "noise = 1.0\nbudget = 0.5", "whole budget"),
        ("noise = 1.0", "noise = 0.0\nbudget = 8.0", "whole budget"),
        ("noise = 1.0", "noise = -1.0", "aggregation.noise"),
        (
            "noise = 1.0",
            "noise = 1.0\ndelta = 1.0",
            "aggregation.delta",
        ),
        (
            "noise = 1.0",
            "noise = 1.0\nmembers = 3\n[agreement]\ngrouping = \"grid\"",
            "the sum of a whole group",
        ),
        ("noise = 1.0", "noise = 1.0\nmembers = 2", "the sum of two"),
        (
            "[synchronization]",
            "[synchronization]\npace = \"balanced\"",
            "which are all equal",
        ),
        ("clip = 0.25\n", "", "aggregation.clip"),
        (
            "optimizer = \"sgd\"",
            "correction = \"scaffold\"\noptimizer = \"sgd\"",
            "companion",
        ),
    ] {
        let changed = plain
            .replace(from, to)
            .replace("inner_steps = 2", "inner_steps = 1");
        refused(&changed, &[says]);
    }
    for preset in ["d-psgd", "asp", "diloco-lm", "none", "choco"] {
        let text = "[aggregation]\nrule = \"private-mean\"\nclip = 1.0\nnoise = 1.0";
        let found = Strategy::parse(text, Some(preset));
        assert_eq!(found.is_ok(), preset == "diloco-lm", "{preset}: {found:?}");
    }
}
