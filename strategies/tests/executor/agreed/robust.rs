//! Robust rules in the Executor: contributions are decoded, looked at, and only then aggregated.

use crate::common::orders;
use crate::common::store::Store;
use bytes::Bytes;
use murmurate_protocol::{Done, FragmentId, Part, PeerId, Round, SliceId, StoreId, WorkError};
use murmurate_strategies::aggregate::{AggregationKind, Input};
use murmurate_strategies::compress::EncodeContext;
use murmurate_strategies::executor::Executor;
use murmurate_strategies::grid::Strategy;
use murmurate_strategies::inner::InnerKind;
use murmurate_strategies::slices::SliceStore;
use murmurate_strategies::toy::ToyTask;

const LEN: usize = 200;

fn slice(origin: u8, part: Part) -> SliceId {
    SliceId {
        origin: PeerId::from_bytes([origin; 32]),
        ..orders::slice(Round(3), FragmentId(0), part)
    }
}

fn contribution(peer: usize) -> Vec<f32> {
    (0..LEN)
        .map(|i| {
            if peer == 4 {
                900.0
            } else {
                ((peer * 31 + i * 7) % 13) as f32 / 13.0
            }
        })
        .collect()
}

fn executor(strategy: &Strategy) -> Executor {
    orders::executor(strategy, ToyTask::quadratic(LEN).build(0, 5, 1))
}

/// The encoded reduction of five contributions, decoded.
fn reduce(text: &str, bad: Option<usize>) -> Result<Vec<f32>, WorkError> {
    let strategy = Strategy::parse(text, Some("diloco")).expect("a strategy");
    let (mut executor, host) = (executor(&strategy), Store::default());
    let mut inputs = Vec::new();
    for peer in 0..5 {
        let mut bytes = Vec::new();
        // NaN never comes out of an encoder: written by hand, as a liar would.
        let mut memory = Vec::new();
        let mut context = EncodeContext::seeded(7, &mut memory);
        let values = contribution(peer);
        strategy.codec().encode(&values, &mut context, &mut bytes);
        if bad == Some(peer) {
            let nan = bytes.len() - 4 * (LEN - 17);
            bytes[nan..nan + 4].copy_from_slice(&f32::NAN.to_le_bytes());
        }
        let slice = slice(peer as u8 + 1, Part::Contribution);
        host.put(slice, Bytes::from(bytes));
        inputs.push((slice, 10.0));
    }
    let combine = orders::reduce(FragmentId(0), inputs);
    match executor.perform(&combine, &host) {
        Some(Done::Combined) => {}
        Some(Done::Failed(error)) => return Err(error),
        other => panic!("{other:?}"),
    }
    let slice = slice(1, Part::Aggregate);
    let encode = orders::encode(StoreId::Shard(0), slice);
    assert!(matches!(
        executor.perform(&encode, &host),
        Some(Done::Encoded { .. })
    ));
    let bytes = host.get(&slice).expect("the reduction's bytes");
    let mut out = vec![0.0; LEN];
    let codec = strategy.codec().aggregate();
    codec
        .decode_add(&bytes, 1.0, &mut out)
        .expect("its own encoding");
    Ok(out)
}

#[test]
fn the_executor_applies_the_rule_of_the_plan() {
    for table in [
        "rule = \"median\"",
        "rule = \"trimmed-mean\"\nliars = 1",
        "rule = \"krum\"\nliars = 1",
        "rule = \"multi-krum\"\nliars = 1",
        "rule = \"centered-clip\"\nradius = 2.0",
        "rule = \"geometric-median\"",
        "rule = \"norm-clip\"\nradius = 5.0",
    ] {
        let text = format!("[aggregation]\n{table}");
        let found = reduce(&text, None).expect("sound contributions");
        let strategy = Strategy::parse(&text, Some("diloco")).unwrap();
        let mut rule = strategy.aggregation().build().expect("not the mean");
        let values: Vec<Vec<f32>> = (0..5).map(contribution).collect();
        let inputs: Vec<Input<'_>> = values.iter().map(|v| (v.as_slice(), 10.0)).collect();
        let mut expected = vec![0.0; LEN];
        rule.aggregate(&inputs, &mut expected);
        assert_eq!(found, expected, "{table}");
        assert!(
            found.iter().all(|v| v.abs() < 3.0),
            "{table}: the liar is held off"
        );
    }
    let mean = reduce("", None).unwrap();
    assert!(mean.iter().all(|v| *v > 100.0), "the mean is not");
}

#[test]
fn what_is_not_finite_never_reaches_a_rule() {
    for table in ["rule = \"median\"", "rule = \"krum\"\nliars = 1"] {
        let error = reduce(&format!("[aggregation]\n{table}"), Some(2)).unwrap_err();
        let WorkError::BadSlice { origin, .. } = error else {
            panic!("{error:?}")
        };
        assert_eq!(origin, PeerId::from_bytes([3; 32]), "the liar is named");
    }
}

/// Loss on held data after rounds of gradients of a logistic regression, two of eight peers pushing the other
/// way; and the loss at the optimum.
fn train_under_attack(rule: Option<AggregationKind>) -> (f64, f64) {
    let task = ToyTask::Logistic {
        dim: 8,
        heterogeneity: 0.0,
        batch: 32,
        inner: InnerKind::sgd(1.0),
    };
    let mut rule = rule.and_then(|kind| kind.build());
    let mut peers: Vec<_> = (0..8).map(|i| task.build(i, 8, 2)).collect();
    let (mut x, mut out) = ([0.0f32; 9], [0.0f32; 9]);
    for _ in 0..600 {
        let mut gradients = vec![[0.0f32; 9]; 8];
        for (i, (peer, gradient)) in peers.iter_mut().zip(&mut gradients).enumerate() {
            peer.visit(0..9, &mut |at, piece| {
                piece.copy_from_slice(&x[at..at + piece.len()])
            });
            let lie = if i < 2 { -6.0 } else { 1.0 };
            let ready = &mut |at: usize, piece: &mut [f32]| {
                piece
                    .iter()
                    .enumerate()
                    .for_each(|(d, g)| gradient[at + d] = lie * g);
            };
            peer.gradients(ready).expect("a finite loss");
        }
        let inputs: Vec<Input<'_>> = gradients.iter().map(|g| (&g[..], 32.0)).collect();
        match &mut rule {
            Some(rule) => rule.aggregate(&inputs, &mut out),
            None => {
                for (d, o) in out.iter_mut().enumerate() {
                    *o = gradients.iter().map(|g| g[d]).sum::<f32>() / 8.0;
                }
            }
        }
        // Clamped, so that what diverges does so in numbers that can be compared.
        x.iter_mut()
            .zip(&out)
            .for_each(|(x, g)| *x = (*x - 0.5 * g).clamp(-30.0, 30.0));
    }
    let mut at = |x: &[f32]| {
        peers[7].visit(0..9, &mut |from, piece| {
            piece.copy_from_slice(&x[from..from + piece.len()])
        });
        peers[7].evaluate().expect("an evaluation").loss
    };
    (at(&x), at(&task.optimum(8, 2)))
}

#[test]
fn training_survives_liars_by_robust_rules_alone() {
    let (mean, best) = train_under_attack(None);
    assert!(mean > best + 1.0, "the mean is led away: {mean} {best}");
    for kind in [
        AggregationKind::new("bulyan", &[("liars", 1.0)]).unwrap(),
        AggregationKind::new(
            "centered-clip",
            &[("radius", 0.1), ("iterations", 3.0), ("bucket", 1.0)],
        )
        .unwrap(),
        AggregationKind::new("geometric-median", &[("iterations", 8.0)]).unwrap(),
        AggregationKind::new("krum", &[("liars", 2.0)]).unwrap(),
        AggregationKind::new("median", &[]).unwrap(),
        AggregationKind::new("multi-krum", &[("liars", 2.0)]).unwrap(),
        AggregationKind::new("trimmed-mean", &[("liars", 2.0)]).unwrap(),
        AggregationKind::new("nearest-trimmed-mean", &[("liars", 2.0)]).unwrap(),
    ] {
        let (loss, best) = train_under_attack(Some(kind));
        assert!(
            loss < best + 0.05,
            "{kind:?}: {loss} where {best} can be reached"
        );
    }
}
