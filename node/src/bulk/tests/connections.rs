//! Bulk connections: who accepts them, and how a peer that violates the protocol is treated.

use super::*;

fn shards(side: &Side, first: u16, count: u16, bytes: usize) -> Vec<(SliceId, SliceMeta)> {
    let content = noise(bytes);
    let named = (first..first + count).map(|shard| {
        let (id, meta) = slice(Part::Contribution, bytes);
        let id = SliceId { shard, ..id };
        side.store.keep(id, meta, content.clone());
        (id, meta)
    });
    named.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pushes_take_a_connection_of_their_own_and_it_is_measured() {
    let (mut a, mut b) = (side().await, side().await);
    link(&mut a, &mut b).await;
    assert_eq!(a.net.links()[&b.id].bulk.path, BulkPath::Unused);
    for (id, meta) in shards(&a, 0, 4, 1 << 20) {
        a.net.push(b.id, id, meta, 0, soon()).unwrap();
    }
    for _ in 0..4 {
        assert_eq!(outcome(&mut a).await, PushOutcome::Delivered);
    }
    let view = a.net.links().remove(&b.id).unwrap();
    assert_eq!((view.bulk.path, view.bulk.reason), (BulkPath::Quic, None));
    assert_eq!(view.traffic.bulk_out, 4 << 20);
    assert!(view.queueing.is_some() && view.push_rate > Some(0));
    let quic = view.quic.unwrap();
    assert!(
        quic.sent > 4 << 20 && quic.min_rtt > Duration::ZERO,
        "{quic:?}"
    );
    assert!(quic.delivery_rate > Some(0.0) && quic.congestion_window > 0);
    // The other end pushes back over the same connection.
    for (id, meta) in shards(&b, 100, 2, 1000) {
        b.net.push(a.id, id, meta, 0, soon()).unwrap();
    }
    for _ in 0..2 {
        assert_eq!(outcome(&mut b).await, PushOutcome::Delivered);
    }
    assert_eq!(b.net.links()[&a.id].bulk.path, BulkPath::Quic);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_bytes_go_over_the_link_and_many_over_a_connection_of_their_own() {
    let (mut a, mut b) = (side().await, side().await);
    link(&mut a, &mut b).await;
    for (id, meta) in shards(&a, 0, 5, 200_000) {
        a.net.push(b.id, id, meta, 0, soon()).unwrap();
        assert_eq!(outcome(&mut a).await, PushOutcome::Delivered);
        let bulk = a.net.links().remove(&b.id).unwrap().bulk;
        assert_eq!(bulk.path, BulkPath::Stream);
        assert_eq!(
            bulk.reason.as_deref(),
            Some("there is little to send so far")
        );
    }
    let (id, meta) = shards(&a, 5, 1, 200_000)[0];
    a.net.push(b.id, id, meta, 0, soon()).unwrap();
    assert_eq!(outcome(&mut a).await, PushOutcome::Delivered);
    let bulk = a.net.links().remove(&b.id).unwrap().bulk;
    assert_eq!((bulk.path, bulk.reason), (BulkPath::Quic, None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_that_push_to_each_other_at_once_lose_nothing() {
    let (mut a, mut b) = (side().await, side().await);
    link(&mut a, &mut b).await;
    let (there, back) = (shards(&a, 0, 20, 100_000), shards(&b, 100, 20, 100_000));
    for ((id, meta), (back_id, back_meta)) in there.into_iter().zip(back) {
        a.net.push(b.id, id, meta, 0, soon()).unwrap();
        b.net.push(a.id, back_id, back_meta, 0, soon()).unwrap();
    }
    for _ in 0..20 {
        assert_eq!(outcome(&mut a).await, PushOutcome::Delivered);
        assert_eq!(outcome(&mut b).await, PushOutcome::Delivered);
    }
    let ways = [
        a.net.links()[&b.id].bulk.path,
        b.net.links()[&a.id].bulk.path,
    ];
    assert_eq!(ways, [BulkPath::Quic; 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_tcp_pushes_take_streams_of_the_link_and_say_why() {
    let (mut a, mut b) = (tcp_side().await, tcp_side().await);
    link(&mut a, &mut b).await;
    for (id, meta) in shards(&a, 0, 8, 300_000) {
        a.net.push(b.id, id, meta, 0, soon()).unwrap();
    }
    for _ in 0..8 {
        assert_eq!(outcome(&mut a).await, PushOutcome::Delivered);
    }
    assert_eq!(b.store.slices.lock().unwrap().len(), 8);
    let view = a.net.links().remove(&b.id).unwrap();
    assert_eq!(view.bulk.path, BulkPath::Stream);
    let reason = view.bulk.reason.unwrap();
    assert!(reason.contains("TCP or a relay"), "{reason}");
    assert!(view.bulk.retry_in.is_some() && view.quic.is_none());
}

/// The first `count` reports of one remote's bulk streams.
async fn faults(side: &mut Side, from: PeerId, count: usize) -> Vec<BulkFault> {
    let mut faults = Vec::new();
    while faults.len() < count {
        let fault = side.until(|event| match event {
            NetEvent::Bulk(BulkEvent::Malformed { from: who, what }) if who == from => Some(what),
            _ => None,
        });
        faults.push(fault.await);
    }
    faults
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_streams_end_and_hold_up_no_other() {
    let limits = BulkLimits {
        header_wait: BRIEF,
        inbound_streams_per_peer: 4,
        ..BulkLimits::default()
    };
    let mut a = side_within(limits).await;
    let raw = Raw::beside(&a).await;
    let connection = raw.bulk().await.unwrap();
    let mut silent = Vec::new();
    for _ in 0..12 {
        let mut pipe = Pipe::of_quic(connection.open_bi().await.unwrap());
        pipe.write.write_all(&[1]).await.unwrap();
        silent.push(pipe);
    }
    let mut c = side().await;
    link(&mut c, &mut a).await;
    let (id, meta) = shards(&c, 0, 1, 100_000)[0];
    c.net.push(a.id, id, meta, 0, soon()).unwrap();
    assert_eq!(outcome(&mut c).await, PushOutcome::Delivered);
    for fault in faults(&mut a, raw.id, 12).await {
        assert_eq!(fault, BulkFault::Stalled { bytes: 0, of: 0 });
    }
    drop(silent);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bulk_connection_is_held_to_its_headers() {
    let limits = BulkLimits {
        piece_wait: BRIEF,
        slice_bytes_max: 1000,
        ..BulkLimits::default()
    };
    let mut a = side_within(limits).await;
    let raw = Raw::beside(&a).await;
    let connection = raw.bulk().await.unwrap();
    for (claimed, sent, ends, expected) in [
        (100, 101, true, BulkFault::Excess { of: 100 }),
        (100, 90, true, BulkFault::Short { bytes: 90, of: 100 }),
        (100, 50, false, BulkFault::Stalled { bytes: 50, of: 100 }),
        (
            1001,
            1,
            true,
            BulkFault::TooLong {
                bytes: 1001,
                max: 1000,
            },
        ),
    ] {
        let mut pipe = Pipe::of_quic(connection.open_bi().await.unwrap());
        let (slice, meta) = slice(Part::Contribution, claimed);
        let header = Request::Push { slice, meta };
        write_header(&mut pipe.write, &header, WAIT).await.unwrap();
        pipe.write.write_all(&vec![1; sent]).await.unwrap();
        if ends {
            // The stream may have been refused before.
            let _ = pipe.write.finish().await;
        }
        assert_eq!(faults(&mut a, raw.id, 1).await, [expected]);
        let mut answer = [0u8; 1];
        pipe.read.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, [ACK_REFUSED]);
    }
    assert!(a.store.slices.lock().unwrap().is_empty());
    // Giving up a stream is not a fault.
    let mut pipe = Pipe::of_quic(connection.open_bi().await.unwrap());
    let (given_up, meta) = slice(Part::Contribution, 500);
    let header = Request::Push {
        slice: given_up,
        meta,
    };
    write_header(&mut pipe.write, &header, WAIT).await.unwrap();
    drop(pipe);
    let mut pipe = Pipe::of_quic(connection.open_bi().await.unwrap());
    pipe.write.write_all(&[0xff; 8]).await.unwrap();
    let next = faults(&mut a, raw.id, 1).await;
    assert!(
        matches!(next[0], BulkFault::HeaderTooLong { .. }),
        "{next:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_connects_again_and_again_leaves_nothing_behind() {
    let mut a = side().await;
    let raw = Raw::beside(&a).await;
    for _ in 0..60 {
        match raw.bulk().await {
            // Accepted or refused, this connection is dropped and the next one follows at once.
            Ok(connection) => drop(connection),
            Err(error) => panic!("our own end holds none: {error}"),
        }
    }
    let mut c = side().await;
    link(&mut c, &mut a).await;
    let (id, meta) = shards(&c, 0, 1, 100_000)[0];
    c.net.push(a.id, id, meta, 0, soon()).unwrap();
    assert_eq!(outcome(&mut c).await, PushOutcome::Delivered);
    // Once the remote knows that the earlier connections are closed, a new one works like the
    // first.
    let served = async {
        loop {
            if let Ok(connection) = raw.bulk().await
                && asked_for_nothing(&connection).await.is_ok()
            {
                return;
            }
        }
    };
    tokio::time::timeout(WAIT, served).await.unwrap();
}

/// Requests a slice that does not exist.
async fn asked_for_nothing(connection: &BulkConnection) -> Result<(), super::wire::StreamError> {
    let halves = connection.open_bi().await.map_err(io::Error::from)?;
    let mut pipe = Pipe::of_quic(halves);
    let request = Request::Slice(slice(Part::Aggregate, 1).0);
    write_header(&mut pipe.write, &request, WAIT).await?;
    let reply: Reply = read_header(&mut pipe.read, WAIT).await?;
    assert_eq!(reply, Reply::Absent);
    Ok(())
}
