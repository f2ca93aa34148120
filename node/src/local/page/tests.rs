//! The page with a daemon's server behind it.

use super::*;
use crate::api::{About, Clock, Observer, Served, StatusHandle, Token};
use crate::events::{EventLog, Kind};
use crate::store::Progress;
use murmurate_net::congestion::MaxRate;
use murmurate_protocol::Time;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Time {
        Time::ZERO
    }
}

async fn daemon(name: &str, log: &EventLog) -> ApiServer {
    let about = About {
        run: name.to_owned(),
        ..About::default()
    };
    let served = Served {
        status: StatusHandle::new(Observer::new(about, Progress::default()), Arc::new(Still)),
        recent: log.recent(),
        rate: MaxRate::default(),
        token: Token::new([1; 32]),
        names: Vec::new(),
    };
    ApiServer::start(ANY, served).await.unwrap()
}

/// The answer, read until it contains `until` or the connection ends.
async fn ask(page: &SwarmPage, line: &str, host: &str, until: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(page.server.address())
        .await
        .unwrap();
    let request = format!("{line} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let (mut seen, mut bytes) = (String::new(), [0; 4096]);
    while !seen.contains(until) {
        let count = stream.read(&mut bytes).await.unwrap();
        if count == 0 {
            break;
        }
        seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    assert!(seen.contains(until), "{line}: {seen}");
    seen
}

fn local_daemon(node: usize, state: &'static str, server: Option<&ApiServer>) -> LocalDaemon {
    LocalDaemon {
        node,
        state,
        peer: Some(format!("{node}")),
        restarts: 0,
        http: server.map(ApiServer::address),
    }
}

#[tokio::test]
async fn one_address_shows_every_daemon_and_survives_them() {
    let target = Target {
        accuracy: Some(0.96),
        loss: None,
    };
    let page = SwarmPage::start(target).await.unwrap();
    let mut log = EventLog::in_memory("me");
    log.add(Time::ZERO, 1, Kind::Saved);
    let (first, second) = (daemon("first", &log).await, daemon("second", &log).await);
    page.shown.lock().daemons = vec![
        local_daemon(0, "running", Some(&first)),
        local_daemon(1, "running", Some(&second)),
        local_daemon(2, "killed", None),
    ];
    ask(&page, "GET /", "localhost", "data-swarm=\"local\"").await;
    let list = ask(&page, "GET /api/v1/local", "localhost", "]").await;
    assert!(list.contains("\"state\":\"killed\"") && list.contains("\"until_accuracy\":0.96"));
    assert!(!list.contains("127.0.0.1:"), "no address is told: {list}");
    let swarm = "GET /daemons/1/api/v1/swarm?until_accuracy=0.96";
    let swarm = ask(&page, swarm, "127.0.0.1", "\"run\":\"second\"").await;
    assert!(swarm.contains("application/json") && swarm.contains("default-src 'self'"));
    ask(&page, "GET /daemons/0/api/v1/events", "localhost", "id: 1").await;
    ask(
        &page,
        "GET /daemons/0/api/v1/why?what=luck",
        "localhost",
        "400",
    )
    .await;
    ask(&page, "GET /daemons/2/api/v1/swarm", "localhost", "503").await;
    ask(&page, "GET /daemons/0/limits", "localhost", "404").await;
    ask(&page, "PUT /daemons/0/api/v1/swarm", "localhost", "405").await;
    let foreign = ask(&page, "GET /daemons/0/api/v1/swarm", "evil.example", "421").await;
    assert!(!foreign.contains("first"), "{foreign}");
    // The daemon dies, and another life of it has another address.
    drop(first);
    ask(&page, "GET /daemons/0/api/v1/swarm", "localhost", "502").await;
    let again = daemon("again", &log).await;
    page.shown.lock().daemons[0].http = Some(again.address());
    let swarm = "GET /daemons/0/api/v1/swarm";
    ask(&page, swarm, "localhost", "\"run\":\"again\"").await;
}
