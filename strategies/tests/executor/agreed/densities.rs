//! Layers that each send the share of their values that there is time for, with peers and Executors together:
//! LAGS (Shi et al., ECAI 2020).

use crate::common::{Make, Swarm, decode, ended_alike, peer, refused_key, wide};
use crate::numbers::{self, gradient_f32};
use murmurate_protocol::{Evaluation, Part, Round, RunId, SliceId};
use murmurate_strategies::Layout;
use murmurate_strategies::grid::Strategy;
use murmurate_strategies::inner::InnerKind;
use murmurate_strategies::toy::{Objective, Quadratic, ToyTrainer};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;

const PEERS: usize = 4;
const LAYERS: [u64; 6] = [600, 900, 300, 500, 40, 400];
const LEN: usize = 2740;

/// A quadratic whose parameters are cut into layers.
struct Layered(Quadratic);

fn layout() -> Layout {
    Layout::new(
        (0..)
            .zip(LAYERS)
            .map(|(at, len)| (format!("layer {at}"), vec![len])),
    )
}

fn task(index: usize) -> Quadratic {
    Quadratic::new(LEN, 1.0, 0.0, [index, PEERS], 11)
}

impl Objective for Layered {
    fn layout(&self) -> Layout {
        layout()
    }

    fn batch(&self) -> u64 {
        self.0.batch()
    }

    fn sample(&self, rng: &mut ChaCha8Rng, x: &[f32], gradient: &mut [f32]) -> f64 {
        self.0.sample(rng, x, gradient)
    }

    fn evaluate(&self, x: &[f32]) -> Evaluation {
        self.0.evaluate(x)
    }
}

fn make() -> Make {
    Box::new(|index| {
        let objective = Layered(task(index));
        Box::new(ToyTrainer::new(
            objective,
            &InnerKind::sgd(0.1),
            11,
            index as u64,
        ))
    })
}

/// A layer of 500 values is computed in 18 ms, in which 1.1 kB go out and come back.
fn text(exchange: &str, layers: &str) -> String {
    format!(
        "preset = \"bsp\"\n[architecture]\nexchange = \"{exchange}\"\ncontribution = \"gradient\"\n\
         [compression]\ncodec = \"top-k\"\ndensity = 0.1\n\
         [overlap]\ncut = \"tensors\"\nlayers = \"{layers}\"\ndensity = \"by-layer\"\n\
         latency_ms = 0.5\nmbit_s = 1.0\nbackward_ms = 100.0\nselect_ms = 2.0\n\
         [inner]\noptimizer = \"sgd\"\nlr = 0.05\nmomentum = 0.0\n"
    )
}

fn densities(strategy: &Strategy) -> Vec<f64> {
    let ranges = strategy.fragments(&layout());
    let codecs = strategy.fragment_codecs(&ranges).unwrap();
    codecs.iter().map(|codec| codec.number("density")).collect()
}

/// The values of largest magnitude, of equals the first.
fn largest(values: &[f64], kept: usize) -> Vec<f64> {
    numbers::only(values, &numbers::largest(values, kept))
}

#[test]
fn each_layer_sends_the_largest_values_of_its_own_density() {
    for exchange in ["all-reduce", "gathered", "parameter-server"] {
        let mut swarm = Swarm::new(&text(exchange, "as-ready"), PEERS, 0, make());
        swarm.run(1);
        let densities = densities(&swarm.strategy);
        let different: BTreeSet<u64> = densities.iter().map(|d| d.to_bits()).collect();
        let between = densities
            .iter()
            .filter(|d| (0.03..0.9).contains(*d))
            .count();
        assert!(different.len() >= 4 && between >= 2, "{densities:?}");
        // Gathered contributions are themselves what is decided.
        let part = match exchange {
            "gathered" => Part::Aggregate,
            _ => Part::Contribution,
        };
        let of_first = |slice: &&SliceId| slice.part == part && slice.round == Round(0);
        let mut slices = 0;
        for slice in swarm.encoded.keys().filter(of_first) {
            let bytes = &swarm.encoded[slice];
            let fragment = usize::from(slice.fragment.0);
            let in_shard = swarm.encoded.keys().filter(of_first);
            let of = in_shard
                .filter(|s| s.origin == slice.origin && s.fragment == slice.fragment)
                .count();
            let range = swarm.shard(slice.fragment, usize::from(slice.shard), of);
            assert_eq!(bytes[1..9], densities[fragment].to_le_bytes());
            let member = (0..PEERS)
                .find(|index| peer(*index) == slice.origin)
                .unwrap();
            let gradient = &gradient_f32(&task(member), &[0.0; LEN])[range.clone()];
            let kept = (densities[fragment] * range.len() as f64).ceil() as usize;
            let sent = decode::decode(bytes, range.len());
            assert_eq!(sent, largest(&wide(gradient), kept), "{exchange} {slice:?}");
            slices += 1;
        }
        assert!(slices >= PEERS * LAYERS.len(), "{exchange}: {slices}");
    }
}

#[test]
fn what_is_sent_of_a_layer_is_what_the_plan_reserves_for_it() {
    let mut swarm = Swarm::new(&text("all-reduce", "as-ready"), PEERS, 0, make());
    swarm.run(3);
    let plan = swarm.plan.clone();
    let ranges = swarm.strategy.fragments(&layout());
    for (at, codec) in swarm
        .strategy
        .fragment_codecs(&ranges)
        .unwrap()
        .iter()
        .enumerate()
    {
        let bound = codec.build().bytes_bound();
        assert_eq!(plan.fragments[at].contribution, bound, "{at}");
    }
    for (at, fragment) in plan.fragments.iter().enumerate() {
        let contributions = swarm.encoded.iter().filter(|(slice, _)| {
            slice.part == Part::Contribution
                && usize::from(slice.fragment.0) == at
                && slice.origin == peer(0)
                && slice.round == Round(2)
        });
        let sizes: Vec<u64> = contributions.map(|(_, bytes)| bytes.len() as u64).collect();
        let each = fragment
            .contribution
            .of(fragment.len.div_ceil(PEERS as u64));
        assert_eq!(sizes.len(), PEERS);
        assert!(
            sizes.iter().all(|size| *size <= each),
            "{at}: {sizes:?} {each}"
        );
        // The bound's fixed part has room for a few values more.
        let fixed = PEERS as u64 * fragment.contribution.fixed;
        let least = PEERS as u64 * each - fixed;
        let sent: u64 = sizes.iter().sum();
        assert!(sent as f64 >= 0.8 * least as f64, "{at}: {sent} of {least}");
    }
}

#[test]
fn all_reach_the_common_optimum_with_the_same_bits() {
    const ROUNDS: u64 = 400;
    let run = |layers| {
        let mut swarm = Swarm::new(&text("all-reduce", layers), PEERS, 0, make());
        swarm.run(ROUNDS);
        swarm
    };
    let swarm = run("as-ready");
    let last = |swarm: &Swarm, index: usize| {
        swarm.members[&peer(index)].anchors[&Round(ROUNDS - 1)].clone()
    };
    let reached = last(&swarm, 0);
    for index in 1..PEERS {
        assert_eq!(last(&swarm, index), reached);
    }
    assert_eq!(last(&run("by-priority"), 0), reached);
    let task = task(0);
    let (before, after) = (
        task.global_loss(&vec![0.0; LEN]),
        task.global_loss(&reached),
    );
    // Each layer by itself: one that never sent would keep its loss.
    for range in swarm.strategy.fragments(&layout()) {
        let far = |x: &[f32]| {
            let pairs = x[range.clone()].iter().zip(&task.optimum()[range.clone()]);
            pairs.map(|(x, o)| f64::from(x - o).powi(2)).sum::<f64>()
        };
        let (start, end) = (far(&vec![0.0; LEN]), far(&reached));
        assert!(end < 0.02 * start, "{range:?}: {end} of {start}");
    }
    assert!(after < 0.01 * before, "{after} of {before}");
}

#[test]
fn a_death_under_the_backward_pass_leaves_the_others_with_the_same_bits() {
    for seed in 1..12 {
        let mut swarm = Swarm::new(&text("all-reduce", "as-ready"), PEERS, seed, make());
        swarm.run(2);
        let stop = swarm.now + core::time::Duration::from_millis(90 * seed);
        swarm.run_until(|swarm| swarm.now >= stop);
        swarm.kill(peer(seed as usize % PEERS));
        swarm.run(9);
        ended_alike(&swarm, 8, &format!("{seed}"));
    }
}

#[test]
fn the_densities_are_part_of_what_peers_agree_on() {
    let hash = |text: &str| {
        let strategy: Strategy = text.parse().unwrap();
        let again: Strategy = strategy.to_toml().parse().unwrap();
        assert_eq!(again, strategy);
        let run = RunId::from_bytes([9; 32]);
        strategy.plan(run, &layout(), 0).unwrap().hash()
    };
    let text = text("all-reduce", "as-ready");
    let all: BTreeSet<_> = [
        hash(&text),
        hash(&text.replace("mbit_s = 1.0", "mbit_s = 2.0")),
        hash(&text.replace("select_ms = 2.0", "select_ms = 3.0")),
        hash(&text.replace("density = 0.1", "density = 0.2")),
    ]
    .into();
    assert_eq!(all.len(), 4);
}

#[test]
fn what_has_no_density_of_its_own_is_refused() {
    let all = text("all-reduce", "as-ready");
    assert_eq!(
        refused_key(&text("all-reduce", "together")),
        "overlap.density"
    );
    let int8 = all.replace("codec = \"top-k\"\ndensity = 0.1", "codec = \"int8\"");
    assert_eq!(refused_key(&int8), "overlap.density");
    let gathered = text("gathered", "as-ready").replace("\"top-k\"", "\"clt-k\"");
    assert_eq!(refused_key(&gathered), "overlap.density");
    let one = all.replace("density = \"by-layer\"", "density = \"one\"");
    assert_eq!(refused_key(&one), "overlap.select_ms");
    // The owner of the run cannot change a codec that differs from layer to layer.
    assert!(all.parse::<Strategy>().unwrap().codecs().is_empty());
    let error = int8.parse::<Strategy>().unwrap_err().to_string();
    assert!(
        error.contains("top-k") && error.contains("overlap.density"),
        "{error}"
    );
}
