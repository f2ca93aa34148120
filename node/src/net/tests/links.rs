//! How links come up, what they carry, and how they end.

use super::*;
use crate::tests::assert_has;
use libp2p::multiaddr::Protocol;

async fn frames_go_both_ways(mut a: Side, mut b: Side) {
    link(&mut a, &mut b).await;
    for n in 0..100u32 {
        a.net.try_send(b.id, n.to_le_bytes().to_vec()).unwrap();
        b.net.try_send(a.id, vec![n as u8; 60_000]).unwrap();
    }
    for n in 0..100u32 {
        assert_eq!(b.frame().await, (a.id, n.to_le_bytes().to_vec()));
        assert_eq!(a.frame().await, (b.id, vec![n as u8; 60_000]));
    }
    assert_eq!(b.net.counters().total.control_in, 100 * 8);
    assert_eq!(
        a.net.counters().peers.get(&b.id).unwrap().control_in,
        100 * 60_004
    );
    assert_eq!(a.net.counters().total.frames_dropped, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_go_both_ways_in_order_over_quic() {
    frames_go_both_ways(side().await, side().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_higher_id_dials_later_and_alone_if_it_must() {
    let mut sides = [side().await, side().await];
    sides.sort_by_key(|side| side.id);
    let [mut low, mut high] = sides;
    let began = std::time::Instant::now();
    high.net.dial_in_turn(low.record.clone()).unwrap();
    high.up(low.id).await;
    low.up(high.id).await;
    assert!(began.elapsed() >= crate::net::discovery::TURN);
    let mut more = [side().await, side().await];
    more.sort_by_key(|side| side.id);
    let [mut low, mut high] = more;
    low.net.dial_in_turn(high.record.clone()).unwrap();
    low.up(high.id).await;
    high.up(low.id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_go_both_ways_in_order_over_tcp_alone() {
    let a = started(config(&[TCP]), TestStore::default()).await;
    let b = started(config(&[TCP]), TestStore::default()).await;
    frames_go_both_ways(a, b).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_verify_and_hold_addresses_that_can_be_dialled() {
    let mut both = started(config(&[QUIC, TCP]), TestStore::default()).await;
    let mut record = both.record.clone();
    if record.addresses.len() < 2 {
        let newer = both.until(|event| match event {
            NetEvent::Record(record) => Some(record),
            _ => None,
        });
        let newer = newer.await;
        assert!(newer.sequence > record.sequence);
        record = newer;
    }
    assert!(verify(&record));
    let stages = record::stages(record::addresses(&record));
    assert_eq!(stages.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_what_is_to_be_announced_is_told() {
    let announced: Multiaddr = "/ip4/192.0.2.9/udp/9/quic-v1".parse().unwrap();
    let mut behind = config(&[QUIC]);
    behind.announce = Some(vec![announced.clone()]);
    let side = started(behind, TestStore::default()).await;
    assert!(
        side.address
            .to_string()
            .starts_with("/ip4/192.0.2.9/udp/9/")
    );
    assert_eq!(side.record.addresses, [announced.to_vec()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_announces_nothing_still_has_a_record() {
    let mut behind = config(&[QUIC]);
    behind.announce = Some(Vec::new());
    let (_net, mut events) = start(
        behind,
        Arc::new(TestStore::default()),
        BulkLimits::default(),
    )
    .unwrap();
    let record = timeout(WAIT, async {
        loop {
            match events.recv().await.unwrap() {
                NetEvent::Record(record) => return record,
                NetEvent::Nat(_) => {}
                other => panic!("{other:?}"),
            }
        }
    });
    let record = record.await.unwrap();
    assert!(verify(&record) && record.addresses.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simultaneous_dials_are_one_link() {
    let (mut a, mut b) = (side().await, side().await);
    a.net.dial(b.record.clone()).unwrap();
    b.net.dial(a.record.clone()).unwrap();
    a.up(b.id).await;
    b.up(a.id).await;
    a.net.try_send(b.id, b"to b".to_vec()).unwrap();
    b.net.try_send(a.id, b"to a".to_vec()).unwrap();
    let no_second = |event| match event {
        NetEvent::LinkUp(_) => panic!("a second LinkUp"),
        NetEvent::Frame { bytes, .. } => Some(bytes),
        _ => None,
    };
    assert_eq!(a.until(no_second).await, b"to a");
    assert_eq!(b.until(no_second).await, b"to b");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_is_down_when_the_other_end_is_dropped() {
    for address in [QUIC, TCP] {
        let mut a = started(config(&[address]), TestStore::default()).await;
        let mut b = started(config(&[address]), TestStore::default()).await;
        link(&mut a, &mut b).await;
        let id = b.id;
        drop(b);
        a.down(id).await;
        assert_eq!(a.net.try_send(id, vec![1]), Err(Busy::NotLinked));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_peer_is_a_new_link_before_the_old_one_timed_out() {
    let mut a = side().await;
    let b_config = config(&[QUIC]);
    let mut b = started(b_config.clone(), TestStore::default()).await;
    link(&mut a, &mut b).await;
    // After the second ping, a new dial no longer counts as simultaneous.
    for _ in 0..2 {
        a.until(|event| matches!(event, NetEvent::Measured { .. }).then_some(()))
            .await;
    }
    // The first `b` stays silent but alive, like a stopped process.
    let mut again = started(b_config, TestStore::default()).await;
    again.net.dial(a.record.clone()).unwrap();
    a.down(b.id).await;
    a.up(b.id).await;
    again.up(a.id).await;
    a.net.try_send(b.id, b"welcome back".to_vec()).unwrap();
    assert_eq!(again.frame().await.1, b"welcome back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_frames_are_read_before_a_disconnect() {
    let (mut a, mut b) = (side().await, side().await);
    link(&mut a, &mut b).await;
    for n in 0..50u8 {
        a.net.try_send(b.id, vec![n; 1000]).unwrap();
    }
    a.net.disconnect(b.id).unwrap();
    for n in 0..50u8 {
        assert_eq!(b.frame().await.1, vec![n; 1000]);
    }
    b.down(a.id).await;
    a.down(b.id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_writes_what_was_queued() {
    let (mut a, mut b) = (side().await, side().await);
    link(&mut a, &mut b).await;
    a.net.try_send(b.id, b"goodbye".to_vec()).unwrap();
    let id = a.id;
    a.net.clone().shutdown(Instant::now() + WAIT).await;
    assert_eq!(b.frame().await.1, b"goodbye");
    b.down(id).await;
    assert_eq!(a.net.disconnect(b.id), Err(Busy::Ended));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreachable_bootstrap_is_reported_and_tried_again() {
    let mut joining = config(&[QUIC]);
    // The discard port, on which no process listens.
    let unserved: Multiaddr = "/ip4/127.0.0.1/tcp/9".parse().unwrap();
    joining.join = vec![unserved.clone()];
    let mut a = started(joining, TestStore::default()).await;
    for _ in 0..2 {
        let failed = a.until(|event| match event {
            NetEvent::BootstrapFailed {
                address,
                reason,
                retry_in,
            } => Some((address, reason, retry_in)),
            _ => None,
        });
        let (address, reason, retry_in) = failed.await;
        assert_eq!(address, unserved);
        // No names of layers, and not the address once more.
        assert!(
            !reason.contains("negotiate") && !reason.contains("/ip4"),
            "{reason}"
        );
        assert!(retry_in.is_some());
    }
}

/// The daemon behind a name is linked, and its bulk connection has an IP address like any other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_is_joined_by_its_name() {
    let mut b = side().await;
    let rest = b.address.iter().skip(1);
    let name = Protocol::Dns4("localhost".into());
    let mut joining = config(&[QUIC]);
    joining.join = vec![std::iter::once(name).chain(rest).collect()];
    let mut a = started(joining, TestStore::default()).await;
    a.up(b.id).await;
    b.up(a.id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_does_not_exist_is_reported_and_tried_again() {
    let mut joining = config(&[QUIC]);
    let unknown: Multiaddr = "/dns4/no-such-host.invalid/tcp/9".parse().unwrap();
    joining.join = vec![unknown.clone()];
    let mut a = started(joining, TestStore::default()).await;
    for _ in 0..2 {
        let failed = a.until(|event| match event {
            NetEvent::BootstrapFailed {
                address, reason, ..
            } => Some((address, reason)),
            _ => None,
        });
        let (address, reason) = failed.await;
        assert_eq!(address, unknown);
        assert_has(&reason, "the name no-such-host.invalid ");
    }
}

/// Another process that listens on a port of the configuration would get some of the connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_of_another_process_is_named_and_not_shared() {
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let [of_tcp, of_udp] = [tcp.local_addr(), udp.local_addr()].map(|at| at.unwrap().port());
    let busy = [
        (format!("/ip4/127.0.0.1/tcp/{of_tcp}"), of_tcp),
        (format!("/ip4/127.0.0.1/udp/{of_udp}/quic-v1"), of_udp),
    ];
    for (busy, taken) in busy {
        let store = Arc::new(TestStore::default());
        let refused = start(config(&[&busy, QUIC]), store, BulkLimits::default());
        let error = refused.map(|_| ()).unwrap_err();
        assert!(matches!(error, NetError::PortTaken { port, .. } if port == taken));
        assert!(error.to_string().contains(&taken.to_string()), "{error}");
    }
}
