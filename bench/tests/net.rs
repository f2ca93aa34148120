//! The ends of the network benchmark, both in this process, over real sockets.

#![allow(clippy::unwrap_used, reason = "helpers of tests may, as tests do")]

use murmurate_bench::net::{Far, FarTask, Figures, Hello, NearTask, Tuning, Way, send};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// Ends a test that hangs.
const PATIENCE: Duration = Duration::from_secs(60);

async fn far() -> (Far, Hello) {
    let task = FarTask {
        ip: Ipv4Addr::LOCALHOST.into(),
        port: 0,
        tuning: Tuning::default(),
    };
    let far = Far::start(&task).await.unwrap();
    let hello = far.hello().clone();
    (far, hello)
}

fn task(hello: &Hello, way: Way, bytes: u64) -> NearTask {
    NearTask {
        way,
        to: (Ipv4Addr::LOCALHOST, hello.port(way)).into(),
        peer: hello.peer.clone(),
        from: None,
        bytes,
        limit_s: 50,
        tuning: Tuning::default(),
    }
}

async fn sent(task: &NearTask) -> Result<Figures, String> {
    let sent = timeout(PATIENCE, send(task)).await.expect("the test hangs");
    sent.map_err(|error| error.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_way_delivers_all_bytes_and_measures_what_it_can() {
    const BYTES: u64 = 3_000_001;
    let (_far, hello) = far().await;
    for way in Way::ALL {
        let figures = sent(&task(&hello, way, BYTES)).await.unwrap();
        assert_eq!(figures.bytes, BYTES, "{way}");
        assert!(
            figures.seconds > 0.0 && figures.near_cpu_s > 0.0 && figures.far_cpu_s > 0.0,
            "{way}"
        );
        // So few bytes may be transferred before a message beside them is answered.
        assert!(!figures.rtt_idle_us.is_empty(), "{way}");
        let tells = matches!(way, Way::Quinn | Way::Bulk | Way::Control);
        let told = figures.path.map(|path| path.sent_bytes > BYTES);
        assert_eq!(told, tells.then_some(true), "{way}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_not_arrived_in_time_does_not_count() {
    let (_far, hello) = far().await;
    for way in [Way::Bulk, Way::TcpNoise, Way::Tcp] {
        let endless = NearTask {
            limit_s: 1,
            ..task(&hello, way, u64::MAX)
        };
        let figures = sent(&endless).await.unwrap();
        assert!(
            figures.bytes > 0 && figures.bytes < endless.bytes,
            "{way}: {figures:?}"
        );
        assert!(figures.seconds >= 1.0, "{way}: {figures:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_at_the_port_is_not_measured() {
    let (_far, mut hello) = far().await;
    let (_other, other) = far().await;
    hello.peer = other.peer;
    for way in [Way::Quinn, Way::Bulk, Way::Control, Way::TcpNoise] {
        let error = sent(&task(&hello, way, 1_000)).await.unwrap_err();
        assert!(!error.is_empty(), "{way}");
    }
}

#[tokio::test]
async fn an_order_that_is_none_ends_its_channel_and_nothing_else() {
    let (_far, hello) = far().await;
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, hello.tcp));
    let mut stranger = TcpStream::connect(at).await.unwrap();
    stranger.write_all(&[0; 17]).await.unwrap();
    let mut rest = Vec::new();
    timeout(PATIENCE, stranger.read_to_end(&mut rest))
        .await
        .unwrap()
        .unwrap();
    assert!(rest.is_empty());
    assert_eq!(
        sent(&task(&hello, Way::Tcp, 1_000)).await.unwrap().bytes,
        1_000
    );
}

#[tokio::test]
async fn every_process_that_asks_is_told_where_to_send() {
    let (far, hello) = far().await;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move { far.say_hello(listener, |_| {}).await });
    let asking = async {
        let mut line = String::new();
        TcpStream::connect(at)
            .await
            .unwrap()
            .read_to_string(&mut line)
            .await
            .unwrap();
        line
    };
    let line = timeout(PATIENCE, asking).await.unwrap();
    assert_eq!(serde_json::from_str::<Hello>(&line).unwrap(), hello);
}
