//! Late gradients at a center: corrected for how far it has moved since they were computed.

use crate::common::store::Store;
use crate::common::{orders, peer, wide};
use bytes::Bytes;
use murmurate_protocol::{
    Combination, Done, FragmentId, Order, Part, Piece, Round, SliceId, StoreId,
};
use murmurate_strategies::executor::Executor;
use murmurate_strategies::grid::Strategy;
use murmurate_strategies::slices::SliceStore;
use murmurate_strategies::toy::ToyTask;

const LEN: usize = 41;
const RATE: f64 = 0.01;

fn center(lambda: f64) -> (Executor, Store) {
    let text = format!(
        "[synchronization]\nmode = \"asp\"\ninner_steps = 1\ncompensation = {lambda:?}\n\
         [architecture]\nowners = 1\n[overlap]\nfragments = 1\n[inner]\nlr = {RATE:?}\n"
    );
    let strategy = Strategy::parse(&text, Some("asp")).unwrap();
    assert_eq!(
        Strategy::parse(&strategy.to_toml(), None).unwrap(),
        strategy
    );
    let trainer = ToyTask::quadratic(LEN).build(0, 3, 1);
    (orders::executor(&strategy, trainer), Store::default())
}

fn slice(round: u64, part: Part) -> SliceId {
    SliceId {
        origin: peer(1),
        ..orders::slice(Round(round), FragmentId(0), part)
    }
}

/// What the center holds.
fn read(executor: &mut Executor, host: &Store) -> Vec<f32> {
    let slice = slice(99, Part::Aggregate);
    let store = StoreId::Center;
    let encoded = executor.perform(&orders::encode(store, slice), host);
    assert!(matches!(encoded, Some(Done::Encoded { .. })), "{encoded:?}");
    let bytes = host.get(&slice).unwrap();
    let values = bytes[1..].as_chunks::<4>().0.iter();
    values.map(|four| f32::from_le_bytes(*four)).collect()
}

/// The center after gradients that are late by this number of versions.
fn after(lambda: f64, arrivals: &[(Vec<f32>, u64)]) -> Vec<f32> {
    let (mut executor, host) = center(lambda);
    for (at, (gradient, late)) in (0..).zip(arrivals) {
        let slice = slice(at, Part::Contribution);
        let mut bytes = vec![1u8];
        bytes.extend(gradient.iter().flat_map(|g| g.to_le_bytes()));
        host.put(slice, Bytes::from(bytes));
        let order = Order::Combine {
            piece: Piece::whole(FragmentId(0)),
            how: Combination::MoveCenter(vec![(slice, *late)]),
        };
        assert_eq!(executor.perform(&order, &host), Some(Done::Combined));
    }
    read(&mut executor, &host)
}

#[test]
fn late_gradients_are_corrected_for_how_far_the_center_has_moved() {
    let lateness = [0u64, 1, 2, 0, 3, 5, 1, 4];
    let arrivals: Vec<(Vec<f32>, u64)> = lateness
        .iter()
        .enumerate()
        .map(|(at, late)| {
            let gradient = (0..LEN).map(|i| ((at * 31 + i * 7) % 13) as f32 - 6.0);
            (gradient.collect(), *late)
        })
        .collect();
    // Ten lines of algorithm 2, in f64: c' = c - lr (g + lambda g g (c - c_pulled)).
    let reference = |lambda: f64| {
        let mut versions = vec![wide(center(lambda).0.anchor())];
        for (gradient, late) in &arrivals {
            let now = versions.last().unwrap().clone();
            let pulled = &versions[versions.len() - 1 - *late as usize];
            let next = (0..LEN).map(|i| {
                let g = f64::from(gradient[i]);
                now[i] - RATE * (g + lambda * g * g * (now[i] - pulled[i]))
            });
            let next = next.collect();
            versions.push(next);
        }
        versions.pop().unwrap()
    };
    for lambda in [0.0, 0.04, 1.0] {
        let (found, expected) = (after(lambda, &arrivals), reference(lambda));
        for (f, e) in found.iter().zip(&expected) {
            assert!(
                (f64::from(*f) - e).abs() < 1e-5 * (1.0 + e.abs()),
                "{f} {e}"
            );
        }
    }
    assert_ne!(after(0.0, &arrivals), after(1.0, &arrivals));
}
