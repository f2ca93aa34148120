//! The same codec both ways, with error feedback at both ends: with owners that stay it comes to the
//! optimum, and what an owner leaves out of one reduction comes with the next.

use crate::common::store::Store;
use crate::common::{Swarm, orders, peer, quadratics, relative, same_bits};
use crate::numbers::gradient_f32;
use bytes::Bytes;
use murmurate_protocol::{Done, FragmentId, Part, Round, SliceId, StoreId};
use murmurate_strategies::compress::{CodecKind, EncodeContext};
use murmurate_strategies::grid::Strategy;
use murmurate_strategies::slices::SliceStore;
use murmurate_strategies::toy::ToyTask;

const DIM: usize = 64;
const PEERS: usize = 4;

fn kind() -> CodecKind {
    CodecKind::new("double-squeeze", &[("density", 0.1)]).unwrap()
}

fn coarse() -> String {
    "[architecture]\nexchange = \"parameter-server\"\nowners = 2\ncontribution = \"delta\"\n\
     [synchronization]\ninner_steps = 1\n[compression]\ncodec = \"double-squeeze\"\ndensity = 0.1\n\
     [overlap]\nfragments = 1\n"
        .to_owned()
}

/// Gradient descent, with or without the owner's residual: the distance from the optimum.
fn descend(feeds: bool) -> f64 {
    let peers = quadratics(DIM, 1.0, PEERS, 3);
    let mut codec = kind().build();
    let mut residuals = vec![vec![0.0f32; DIM]; PEERS + 1];
    let mut x = vec![0.0f32; DIM];
    for round in 0..4000u64 {
        let mut mean = vec![0.0f32; DIM];
        let (mut bytes, mut memory) = (Vec::new(), Vec::new());
        for (at, peer) in peers.iter().enumerate() {
            let gradient = gradient_f32(peer, &x);
            let mut context = EncodeContext::seeded(round, &mut memory);
            bytes.clear();
            codec.encode_residual(&gradient, &mut residuals[at], &mut context, &mut bytes);
            codec
                .decode_add(&bytes, 1.0 / PEERS as f32, &mut mean)
                .unwrap();
        }
        bytes.clear();
        let (mut moved, mut down) = (vec![0.0f32; DIM], codec.aggregate());
        if !feeds {
            residuals[PEERS].fill(0.0);
        }
        let mut context = EncodeContext::seeded(round, &mut memory);
        down.encode_residual(&mean, &mut residuals[PEERS], &mut context, &mut bytes);
        down.decode_add(&bytes, 1.0, &mut moved).unwrap();
        x.iter_mut().zip(&moved).for_each(|(x, g)| *x -= 0.01 * g);
    }
    relative(&x, peers[0].optimum())
}

#[test]
fn coarse_both_ways_comes_to_the_optimum() {
    let (with, without) = (descend(true), descend(false));
    assert!(with < 0.05, "{with}");
    assert!(without > 2.0 * with, "{with} {without}");
}

#[test]
fn all_members_hold_the_same_bits() {
    for seed in 0..3 {
        let text = format!("preset = \"local-sgd\"\n{}", coarse());
        let mut swarm = Swarm::training(&text, ToyTask::quadratic(DIM), PEERS, [seed, 11]);
        swarm.run(12);
        same_bits(&swarm, 12, &format!("{seed}"));
        let whole = |m: &crate::common::Member| m.anchors.len() >= 12;
        assert!(swarm.members.values().all(whole), "{seed}");
        let anchors = &swarm.members[&peer(0)].anchors;
        assert_ne!(anchors[&Round(0)], anchors[&Round(11)]);
    }
}

fn slice(round: u64, part: Part) -> SliceId {
    orders::slice(Round(round), FragmentId(0), part)
}

/// Two members' contributions, and their mean. They choose other places: their sum has twice as many as go
/// back. After twelve rounds nothing new comes.
fn contributions(round: u64, host: &Store) -> (Vec<(SliceId, f64)>, Vec<f32>) {
    let value = |who: usize, d: usize| ((d * 31 + round as usize * 7 + who * 45) % 17) as f32 - 8.0;
    let mut sent = vec![0.0f32; DIM];
    let mut inputs = Vec::new();
    for who in 0..2 {
        let values: Vec<f32> = match round {
            0..12 => (0..DIM).map(|d| value(who, d)).collect(),
            _ => vec![0.0; DIM],
        };
        let own = SliceId {
            origin: peer(1 + who),
            ..slice(round, Part::Contribution)
        };
        let (mut memory, mut bytes) = (Vec::new(), Vec::new());
        let mut context = EncodeContext::seeded(1, &mut memory);
        kind().build().encode(&values, &mut context, &mut bytes);
        kind().build().decode_add(&bytes, 0.5, &mut sent).unwrap();
        host.put(own, Bytes::from(bytes));
        inputs.push((own, 1.0));
    }
    (inputs, sent)
}

#[test]
fn what_reductions_leave_out_comes_with_the_next() {
    let strategy = Strategy::parse(&coarse(), Some("local-sgd")).unwrap();
    let mut executor = orders::executor(&strategy, ToyTask::quadratic(DIM).build(0, 3, 1));
    let host = Store::default();
    let start = executor.anchor().to_vec();
    // The sum of the contributions, and how far the anchor moved. Void rounds change neither.
    let (mut given, mut moved) = (vec![0.0f64; DIM], vec![0.0f64; DIM]);
    let mut most = 0.0f64;
    for round in 0..40u64 {
        let (inputs, sent) = contributions(round, &host);
        let order = orders::reduce(FragmentId(0), inputs);
        assert_eq!(executor.perform(&order, &host), Some(Done::Combined));
        let out = slice(round, Part::Aggregate);
        let order = orders::encode(StoreId::Shard(0), out);
        assert!(matches!(
            executor.perform(&order, &host),
            Some(Done::Encoded { .. })
        ));
        let fragment = FragmentId(0);
        if round % 4 == 3 {
            let round = Round(round);
            executor.perform(&orders::void(round, fragment), &host);
            continue;
        }
        let order = orders::apply(Round(round), fragment, vec![out]);
        assert!(matches!(
            executor.perform(&order, &host),
            Some(Done::Applied { .. })
        ));
        for d in 0..DIM {
            given[d] += f64::from(sent[d]);
            moved[d] = f64::from(executor.anchor()[d] - start[d]);
        }
        let far = given.iter().zip(&moved).map(|(g, m)| (g - m).abs());
        most = far.fold(most, f64::max);
    }
    // It waited at the owner, and has all come: seven places a round.
    let far = given.iter().zip(&moved).map(|(g, m)| (g - m).abs());
    let far = far.fold(0.0, f64::max);
    assert!(most > 1.0 && far < 1e-4, "{most} {far}");
}
