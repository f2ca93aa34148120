//! Bulk over TLS and TCP: it is used where it is asked for, and left without losing a slice.

use super::*;
use crate::net::tests::{open_config, started};
use libp2p::identity::Keypair;
use murmurate_net::tcp::BulkChoice;

async fn choosing(bulk: BulkChoice) -> Side {
    let mut config = open_config(Keypair::generate_ed25519());
    config.listen = vec!["/ip4/127.0.0.1/udp/0/quic-v1".parse().unwrap()];
    config.bulk.0 = bulk;
    started(config, TestStore::default()).await
}

fn shard(side: &Side, shard: u16, bytes: usize) -> (SliceId, SliceMeta) {
    let (id, meta) = slice(Part::Contribution, bytes);
    let id = SliceId { shard, ..id };
    side.store.keep(id, meta, noise(bytes));
    (id, meta)
}

/// Pushes small slices until they travel over TLS. The first ones go over QUIC, which brings the
/// offer.
async fn until_tls(from: &mut Side, to: &Side) {
    for number in 1000.. {
        let (id, meta) = shard(from, number, 100);
        from.net.push(to.id, id, meta, 0, soon()).unwrap();
        assert_eq!(outcome(from).await, PushOutcome::Delivered);
        if from.net.links()[&to.id].bulk.path == BulkPath::Tls {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_for_tls_gets_it_and_its_bytes_are_counted() {
    let (mut a, mut b) = (
        choosing(BulkChoice::Tls).await,
        choosing(BulkChoice::Tls).await,
    );
    link(&mut a, &mut b).await;
    until_tls(&mut a, &b).await;
    let before = a.net.links().remove(&b.id).unwrap();
    for number in 0..8 {
        let (id, meta) = shard(&a, number, 3_000_000);
        a.net.push(b.id, id, meta, 0, soon()).unwrap();
    }
    for _ in 0..8 {
        assert_eq!(outcome(&mut a).await, PushOutcome::Delivered);
    }
    assert!(
        b.store
            .slices
            .lock()
            .unwrap()
            .values()
            .any(|(_, bytes)| *bytes == noise(3_000_000))
    );
    let view = a.net.links().remove(&b.id).unwrap();
    let sent = view.tls.sent - before.tls.sent;
    assert!((24_000_000..24_100_000).contains(&sent), "{sent}");
    let reason = view.bulk.reason.unwrap();
    assert!(reason.contains("network.bulk"), "{reason}");
    assert!(a.net.counters().wire_out > 24_000_000);
    // The other end uses the same connection, and fetches over it.
    let state = a.store.pin(&noise(5_000_000));
    b.net
        .fetch(FetchId::State(state), vec![a.id], soon())
        .unwrap();
    let fetched = b.until(|event| match event {
        NetEvent::Bulk(BulkEvent::Fetched { .. }) => Some(true),
        NetEvent::Bulk(BulkEvent::FetchFailed { .. }) => Some(false),
        _ => None,
    });
    assert!(fetched.await);
    assert!(b.store.fetched(&state) == noise(5_000_000));
    assert!(a.net.links()[&b.id].tls.sent - view.tls.sent > 5_000_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_breaks_during_pushes_loses_no_slice() {
    let (mut a, mut b) = (
        choosing(BulkChoice::Tls).await,
        choosing(BulkChoice::Tls).await,
    );
    link(&mut a, &mut b).await;
    until_tls(&mut a, &b).await;
    for number in 0..12 {
        let (id, meta) = shard(&a, number, 4_000_000);
        a.net.push(b.id, id, meta, 0, soon()).unwrap();
    }
    // One has arrived, and others are on their way.
    assert_eq!(outcome(&mut a).await, PushOutcome::Delivered);
    b.net.break_tls(&a.id);
    // On a busy machine the pushes outlast the pause after which TLS is tried again.
    let mut over_quic = false;
    for _ in 1..12 {
        assert_eq!(outcome(&mut a).await, PushOutcome::Delivered);
        let view = a.net.links().remove(&b.id).unwrap();
        let reason = view.bulk.reason.unwrap();
        if view.bulk.path == BulkPath::Quic && reason.starts_with("tls broke") {
            assert!(view.bulk.retry_in.is_some());
            over_quic = true;
        }
    }
    assert!(over_quic, "the link went on over QUIC");
    assert!((0..12).all(|number| {
        let (id, _) = slice(Part::Contribution, 4_000_000);
        let id = SliceId {
            shard: number,
            ..id
        };
        BulkStore::get(&*b.store, &id).is_some()
    }));
}

/// Both ways are measured on a short path, and the rates are the reason of the one that is kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_short_path_both_ways_are_measured() {
    let (mut a, mut b) = (
        choosing(BulkChoice::Auto).await,
        choosing(BulkChoice::Auto).await,
    );
    link(&mut a, &mut b).await;
    let bytes = 4 << 20;
    let kept = noise(bytes);
    // 64 MiB over QUIC, as many over TLS, and some more.
    for number in 0..40 {
        let (id, meta) = slice(Part::Contribution, bytes);
        let id = SliceId {
            shard: number,
            ..id
        };
        a.store.keep(id, meta, kept.clone());
        a.net.push(b.id, id, meta, 0, soon()).unwrap();
        assert_eq!(outcome(&mut a).await, PushOutcome::Delivered);
    }
    let view = a.net.links().remove(&b.id).unwrap();
    let reason = view.bulk.reason.unwrap();
    assert!(reason.starts_with("measured: tls "), "{reason}");
    assert!(view.tls.sent >= 64 << 20, "{:?}", view.tls);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_offers_none_is_served_over_quic() {
    let (mut a, mut b) = (
        choosing(BulkChoice::Tls).await,
        choosing(BulkChoice::Quic).await,
    );
    link(&mut a, &mut b).await;
    let (of_a, of_b) = (a.id, b.id);
    for number in 0..20 {
        for (from, to) in [(&mut a, of_b), (&mut b, of_a)] {
            let (id, meta) = shard(from, number, 100_000);
            let id = SliceId { origin: to, ..id };
            from.store.keep(id, meta, noise(100_000));
            from.net.push(to, id, meta, 0, soon()).unwrap();
            assert_eq!(outcome(from).await, PushOutcome::Delivered);
        }
    }
    let views = [a.net.links().remove(&b.id), b.net.links().remove(&a.id)];
    for view in views.into_iter().flatten() {
        assert_eq!((view.bulk.path, view.tls.sent), (BulkPath::Quic, 0));
    }
}
