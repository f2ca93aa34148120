//! Slices and states between real swarms on loopback.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_arrives_bit_equal_and_is_counted() {
    let (mut a, mut b) = (side().await, side().await);
    link(&mut a, &mut b).await;
    let (id, meta) = slice(Part::Aggregate, 3_000_001);
    let bytes = noise(3_000_001);
    a.store.keep(id, meta, bytes.clone());
    a.net.push(b.id, id, meta, 0, soon()).unwrap();
    assert_eq!(outcome(&mut a).await, PushOutcome::Delivered);
    let arrived = b
        .until(|event| match event {
            NetEvent::Bulk(event @ BulkEvent::Arrived { .. }) => Some(event),
            _ => None,
        })
        .await;
    let digest = Some(Digest::of(&bytes));
    assert_eq!(
        arrived,
        BulkEvent::Arrived {
            from: a.id,
            slice: id,
            meta,
            digest
        }
    );
    assert_eq!(b.store.get(&id), Some((meta, bytes)));
    assert_eq!(a.net.counters().total.bulk_out, meta.bytes);
    let came = b.net.counters();
    assert_eq!(came.peers.get(&a.id).unwrap().bulk_in, meta.bytes);
    assert!(
        came.wire_in > meta.bytes,
        "headers and negotiation are on the wire too"
    );
    let measured = a.until(|event| match event {
        NetEvent::Measured { peer, rtt, rate } if rate > 0 => Some((peer, rtt)),
        _ => None,
    });
    let (peer, rtt) = measured.await;
    assert_eq!(peer, b.id);
    assert!(rtt > Duration::ZERO);

    // The receiver has the slice already: it counts as delivered and is not transferred again.
    a.net.push(b.id, id, meta, 0, soon()).unwrap();
    assert_eq!(outcome(&mut a).await, PushOutcome::Delivered);
    assert_eq!(b.net.counters().total.bulk_in, meta.bytes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_of_pushes_loses_none() {
    let (mut a, mut b) = (side().await, side().await);
    link(&mut a, &mut b).await;
    for shard in 0..200 {
        let (id, meta) = slice(Part::Contribution, 1000);
        let id = SliceId { shard, ..id };
        a.store.keep(id, meta, noise(1000));
        a.net.push(b.id, id, meta, 0, soon()).unwrap();
    }
    for _ in 0..200 {
        assert_eq!(outcome(&mut a).await, PushOutcome::Delivered);
    }
    assert_eq!(b.store.slices.lock().unwrap().len(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_push_is_refused_and_one_without_a_link_is_lost() {
    let (mut a, mut b) = (side().await, side().await);
    link(&mut a, &mut b).await;
    b.store.refuses.store(true, Ordering::Relaxed);
    let (id, meta) = slice(Part::Contribution, 2_000_000);
    a.store.keep(id, meta, noise(2_000_000));
    a.net.push(b.id, id, meta, 0, soon()).unwrap();
    assert_eq!(outcome(&mut a).await, PushOutcome::Refused);
    a.net
        .push(PeerId::from_bytes([7; 32]), id, meta, 0, soon())
        .unwrap();
    assert_eq!(outcome(&mut a).await, PushOutcome::Lost);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slice_is_fetched_from_the_donor_that_has_it() {
    let (mut a, mut b, mut c) = (side().await, side().await, side().await);
    link(&mut a, &mut b).await;
    link(&mut a, &mut c).await;
    let (id, meta) = slice(Part::Aggregate, 70_000);
    c.store.keep(id, meta, noise(70_000));
    a.net
        .fetch(FetchId::Slice(id), vec![b.id, c.id], soon())
        .unwrap();
    let fetched = a.until(fetch_ended).await;
    let digest = Some(Digest::of(&noise(70_000)));
    assert_eq!(
        fetched,
        BulkEvent::Fetched {
            what: FetchId::Slice(id),
            meta: Some(meta),
            digest
        }
    );
    assert_eq!(a.store.get(&id), Some((meta, noise(70_000))));
    let lacking = SliceId { shard: 7, ..id };
    a.net
        .fetch(FetchId::Slice(lacking), vec![b.id, c.id], soon())
        .unwrap();
    let failed = BulkEvent::FetchFailed {
        what: FetchId::Slice(lacking),
    };
    assert_eq!(a.until(fetch_ended).await, failed);
}

fn fetch_ended(event: NetEvent) -> Option<BulkEvent> {
    match event {
        NetEvent::Bulk(event @ (BulkEvent::Fetched { .. } | BulkEvent::FetchFailed { .. })) => {
            Some(event)
        }
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_comes_whole_though_one_donor_lies() {
    let (mut a, mut b, mut c) = (side().await, side().await, side().await);
    link(&mut a, &mut b).await;
    link(&mut a, &mut c).await;
    let bytes = noise(9 * STATE_CHUNK_BYTES + 5);
    let state = b.store.pin(&bytes);
    c.store.pin(&bytes);
    b.store.lies.store(true, Ordering::Relaxed);
    a.net
        .fetch(FetchId::State(state), vec![b.id, c.id], soon())
        .unwrap();
    let mut liars = Vec::new();
    let ended = a.until(|event| match event {
        NetEvent::Bulk(BulkEvent::Malformed { from, what }) => {
            assert!(matches!(what, BulkFault::WrongChunk { .. }), "{what}");
            liars.push(from);
            None
        }
        other => fetch_ended(other),
    });
    assert!(matches!(ended.await, BulkEvent::Fetched { .. }));
    assert!(!liars.is_empty() && liars.iter().all(|liar| *liar == b.id));
    assert_eq!(a.store.fetched(&state), bytes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn a_state_comes_whole_though_a_donor_dies_in_the_middle() {
    let (held, mut dying) = mpsc::unbounded_channel();
    let (release, until) = std::sync::mpsc::channel();
    let store = TestStore {
        hold: Some((2, held, Mutex::new(until))),
        ..TestStore::default()
    };
    let (mut a, mut b, mut c) = (side().await, side_with(store).await, side().await);
    link(&mut a, &mut b).await;
    link(&mut a, &mut c).await;
    let bytes = noise(12 * STATE_CHUNK_BYTES);
    let state = b.store.pin(&bytes);
    c.store.pin(&bytes);
    a.net
        .fetch(FetchId::State(state), vec![b.id, c.id], soon())
        .unwrap();
    dying.recv().await.unwrap();
    let b_id = b.id;
    drop(b);
    drop(release);
    let mut down = false;
    let mut ended = None;
    while !down || ended.is_none() {
        a.until(|event| match event {
            NetEvent::LinkDown(peer) => {
                assert_eq!(peer, b_id);
                down = true;
                Some(())
            }
            other => fetch_ended(other).map(|event| ended = Some(event)),
        })
        .await;
    }
    assert!(
        matches!(ended, Some(BulkEvent::Fetched { .. })),
        "{ended:?}"
    );
    assert_eq!(a.store.fetched(&state), bytes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn a_state_comes_whole_though_a_donor_owes_a_part_of_it() {
    let (held, mut owing) = mpsc::unbounded_channel();
    let (release, until) = std::sync::mpsc::channel();
    let store = TestStore {
        hold: Some((1, held, Mutex::new(until))),
        ..TestStore::default()
    };
    // The donor is linked and begins to answer now and then: nothing else ends what it owes before the whole
    // fetch has failed.
    let limits = BulkLimits {
        header_wait: WAIT,
        progress_wait: Duration::from_secs(20),
        ..BulkLimits::default()
    };
    let mut a = side_within(limits).await;
    let (mut b, mut c) = (side_with(store).await, side().await);
    link(&mut a, &mut b).await;
    link(&mut a, &mut c).await;
    let bytes = noise(6 * STATE_CHUNK_BYTES);
    let state = b.store.pin(&bytes);
    c.store.pin(&bytes);
    a.net
        .fetch(FetchId::State(state), vec![b.id, c.id], soon())
        .unwrap();
    owing.recv().await.unwrap();
    let ended = a.until(fetch_ended).await;
    assert!(matches!(ended, BulkEvent::Fetched { .. }), "{ended:?}");
    assert_eq!(a.store.fetched(&state), bytes);
    drop(release);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_state_is_resumed_and_a_false_manifest_is_no_state() {
    let (mut a, mut b) = (side().await, side().await);
    link(&mut a, &mut b).await;
    let bytes = noise(4 * STATE_CHUNK_BYTES);
    let state = b.store.pin(&bytes);
    for index in [0, 2] {
        a.store
            .put_state_chunk(&state, index, chunk(&bytes, index).unwrap())
            .unwrap();
    }
    a.net
        .fetch(FetchId::State(state), vec![b.id], soon())
        .unwrap();
    assert!(matches!(
        a.until(fetch_ended).await,
        BulkEvent::Fetched { .. }
    ));
    assert_eq!(a.store.fetched(&state), bytes);
    assert_eq!(
        b.store.chunks_given.load(Ordering::Relaxed),
        2,
        "two were here already"
    );

    let false_root = StateId {
        root: Digest::of(b"another"),
        ..state
    };
    let written = state_in_memory(state.round, &mut |out| out.write_all(&bytes));
    let (_, manifest, _) = written.unwrap();
    b.store
        .manifests
        .lock()
        .unwrap()
        .insert(false_root, manifest);
    a.net
        .fetch(FetchId::State(false_root), vec![b.id], soon())
        .unwrap();
    let fault = a.until(|event| match event {
        NetEvent::Bulk(BulkEvent::Malformed { from, what }) => Some((from, what)),
        _ => None,
    });
    assert_eq!(
        fault.await,
        (b.id, BulkFault::WrongManifest { state: false_root })
    );
    let what = FetchId::State(false_root);
    assert_eq!(a.until(fetch_ended).await, BulkEvent::FetchFailed { what });
}
