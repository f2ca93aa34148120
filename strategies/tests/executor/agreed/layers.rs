//! Gradients that leave under the backward pass, with peers and Executors together: what is put in force is
//! what it would be if they left together, whatever dies meanwhile.

use crate::common::{Swarm, ended_alike, peer, quadratic, refused_key};
use murmurate_protocol::{Event, FragmentId, Phase, Round};
use murmurate_strategies::Layout;
use murmurate_strategies::grid::Strategy;
use murmurate_strategies::inner::InnerKind;

const PEERS: usize = 4;
const ROUNDS: u64 = 12;

fn swarm(text: &str, seed: u64) -> Swarm {
    let task = quadratic(203, 1.0, InnerKind::sgd(0.1));
    Swarm::training(text, task, PEERS, [seed, 11])
}

/// Bulk-synchronous SGD through an exchange, its gradient in seven fragments that leave like this.
fn text(exchange: &str, layers: &str) -> String {
    format!(
        "preset = \"bsp\"\n[architecture]\nexchange = \"{exchange}\"\ncontribution = \"gradient\"\n\
         [overlap]\nfragments = 7\nlayers = \"{layers}\"\n"
    )
}

fn anchors(swarm: &Swarm, index: usize) -> Vec<&[f32]> {
    let member = &swarm.members[&peer(index)];
    (0..ROUNDS)
        .map(|round| member.anchors[&Round(round)].as_slice())
        .collect()
}

#[test]
fn what_leaves_under_the_backward_pass_comes_to_what_leaves_together() {
    for exchange in ["all-reduce", "gathered", "parameter-server"] {
        let run = |layers| {
            let mut swarm = swarm(&text(exchange, layers), 0);
            swarm.run(ROUNDS);
            swarm
        };
        let together = run("together");
        for layers in ["as-ready", "by-priority", "into-forward", "decoupled"] {
            if [exchange, layers] == ["gathered", "decoupled"] {
                continue;
            }
            let swarm = run(layers);
            for index in 0..PEERS {
                assert_eq!(
                    anchors(&swarm, index),
                    anchors(&together, 0),
                    "{exchange} {layers}"
                );
            }
        }
    }
}

#[test]
fn the_exchange_begins_under_the_backward_pass_and_fragments_end_before_it_does() {
    let mut swarm = swarm(&text("all-reduce", "as-ready"), 0);
    swarm.run(3);
    for member in swarm.members.values() {
        let place =
            |wanted: &dyn Fn(&Event) -> bool| member.events.iter().position(wanted).unwrap();
        let round = Round(1);
        let exchange = place(
            &|event| matches!(event, Event::Phase { round: r, phase: Phase::Exchange } if *r == round),
        );
        let first = place(&|event| {
            let last = FragmentId(6);
            matches!(event, Event::Decided { round: r, fragment, .. } if (*r, *fragment) == (round, last))
        });
        let trained =
            place(&|event| matches!(event, Event::Trained { round: r, .. } if *r == round));
        assert!(
            exchange < first && first < trained,
            "{exchange} {first} {trained}"
        );
    }
}

#[test]
fn a_death_during_the_backward_pass_leaves_the_others_with_the_same_bits() {
    for layers in ["as-ready", "by-priority", "into-forward", "decoupled"] {
        for seed in 1..20 {
            let mut swarm = swarm(&text("all-reduce", layers), seed);
            swarm.run(2);
            // At some moment of the next rounds, as the seed has it.
            let stop = swarm.now + core::time::Duration::from_millis(7 * seed);
            swarm.run_until(|swarm| swarm.now >= stop);
            swarm.kill(peer(seed as usize % PEERS));
            swarm.run(ROUNDS);
            assert_eq!(swarm.members.len(), PEERS - 1);
            ended_alike(&swarm, ROUNDS - 1, &format!("{layers} {seed}"));
        }
    }
}

#[test]
fn cuts_follow_the_tensors_and_the_merge_joins_them() {
    let layout = Layout::new([
        ("embed", vec![100, 100]),
        ("bias", vec![10]),
        ("hidden", vec![300, 100]),
        ("output", vec![100, 90]),
    ]);
    let cut = |text: &str| text.parse::<Strategy>().unwrap().fragments(&layout);
    let tensors = cut("preset = \"wfbp\"");
    assert_eq!(
        tensors,
        [0..10_000, 10_000..10_010, 10_010..40_010, 40_010..49_010]
    );
    // On a link that answers at once only what is small is merged; on one that does not, all.
    let near = "preset = \"mg-wfbp\"\n[overlap]\nlatency_ms = 0.001\nmbit_s = 100000.0\n";
    assert_eq!(cut(near), [0..10_010, 10_010..40_010, 40_010..49_010]);
    let far = "preset = \"mg-wfbp\"\n[overlap]\nlatency_ms = 500.0\n";
    assert_eq!(cut(far).len(), 1);
}

/// LAGS (Shi et al., AAAI 2020): each layer's largest values leave as soon as it is computed.
#[test]
fn the_largest_values_of_each_layer_leave_under_the_backward_pass() {
    let sparse = "[compression]\ncodec = \"top-k\"\ndensity = 0.2\nerror_feedback = true\n";
    let run = |layers| {
        let text = text("all-reduce", layers) + sparse;
        let mut swarm = swarm(&text, 0);
        swarm.run(ROUNDS);
        swarm
    };
    let (together, layered) = (run("together"), run("as-ready"));
    for index in 0..PEERS {
        assert_eq!(anchors(&layered, index), anchors(&together, 0));
    }
    // Every fragment has a share of the values that change in a round; with one selection over all
    // of them some would have none.
    let (before, after) = (anchors(&layered, 0)[0], anchors(&layered, 0)[1]);
    let changed =
        |range: std::ops::Range<usize>| range.filter(|at| before[*at] != after[*at]).count();
    for fragment in 0..7 {
        let range = 203 * fragment / 7..203 * (fragment + 1) / 7;
        // A fifth of 29 values, from each of four peers.
        assert!(changed(range.clone()) >= 6, "{range:?}");
    }
    assert!(changed(0..203) < 203);
}

/// OMGS (Shi et al., INFOCOM 2020): what is merged depends on the bytes that remain of a layer.
#[test]
fn the_merge_goes_by_the_bytes_of_sparse_layers() {
    let layout = Layout::new((0..8).map(|layer| (format!("layer {layer}"), vec![300, 300])));
    let groups = |codec: &str| {
        let text = format!(
            "preset = \"mg-wfbp\"\n[overlap]\nlatency_ms = 1.0\nmbit_s = 100.0\nbackward_ms = 100.0\n\
             [compression]\n{codec}"
        );
        text.parse::<Strategy>().unwrap().fragments(&layout).len()
    };
    // 58 ms a layer on the wire, of which one is ready every 12.5 ms; at a hundredth, 1 and a half.
    let dense = groups("codec = \"f32\"\n");
    let sparse = groups("codec = \"top-k\"\ndensity = 0.01\nerror_feedback = true\n");
    assert!(dense < 8 && sparse == 8, "{dense} {sparse}");
}

#[test]
fn what_cannot_leave_under_a_backward_pass_is_refused() {
    let gathered = "layers = \"decoupled\"\n\
                    [architecture]\nexchange = \"gathered\"\ncontribution = \"gradient\"";
    for (preset, overlap, key) in [
        ("diloco", "layers = \"as-ready\"", "layers"),
        ("d-psgd", "layers = \"as-ready\"", "layers"),
        ("wfbp", "late_steps = 1", "layers"),
        ("local-sgd", "layers = \"into-forward\"", "layers"),
        ("local-sgd", "layers = \"decoupled\"", "layers"),
        ("bsp", gathered, "layers"),
        ("streaming-diloco", "cut = \"tensors\"", "cut"),
        ("bsp", "mbit_s = 10.0", "mbit_s"),
    ] {
        let text = format!("preset = \"{preset}\"\n[overlap]\n{overlap}\n");
        assert_eq!(refused_key(&text), format!("overlap.{key}"), "{text}");
    }
}
