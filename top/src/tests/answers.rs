//! Daemons that answer, answer badly, or do not answer.

use super::{answers, recorded};
use crate::AskError;
use crate::app::Source;
use crate::feed::{Feed, News};
use crate::once::Still;
use crate::target::Target;
use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Serves on a free port of this machine.
async fn serve(router: Router) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (address, server)
}

/// A server that answers as the daemon did.
fn daemon() -> Router {
    let page = |text: String| get(move || async move { text });
    let why = get(|uri: axum::http::Uri| async move {
        match uri.query() {
            Some("what=slow") => recorded("slow.json"),
            _ => recorded("mine.json"),
        }
    });
    let events = recorded("events.jsonl");
    let events = events.lines().enumerate();
    let events: String = events
        .map(|(n, line)| format!("id: {n}\ndata: {line}\n\n"))
        .collect();
    Router::new()
        .route("/api/v1/swarm", page(recorded("swarm.json")))
        .route("/api/v1/history", page(recorded("history.json")))
        .route(
            "/api/v1/contributions",
            page(recorded("contributions.json")),
        )
        .route("/api/v1/why", why)
        .route("/api/v1/events", page(events))
}

fn at(address: SocketAddr) -> Target {
    Target::At(address.to_string())
}

async fn error_of(router: Router) -> String {
    let (address, _server) = serve(router).await;
    let still = Still::of(Source::Live(at(address))).await;
    still
        .unwrap_err()
        .to_string()
        .replace(&address.to_string(), "HOST")
}

#[tokio::test]
async fn a_daemon_is_read_with_its_events() {
    let (address, _server) = serve(daemon()).await;
    let still = Still::of(Source::Live(at(address))).await.unwrap();
    let picture = &still.picture;
    assert_eq!(picture.swarm.as_ref(), Some(&answers().swarm));
    assert_eq!(picture.history, answers().history);
    assert_eq!(picture.mine, answers().mine);
    assert!(picture.events.len() > 200);
    let frame = still.text((80, 24));
    assert!(
        frame.contains("▸ awaited") && frame.contains("peer_down"),
        "{frame}"
    );
}

#[tokio::test]
async fn no_daemon_is_an_error_that_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let error = Still::of(Source::Live(Target::Dir(dir.path().to_owned()))).await;
    let line = error.unwrap_err().to_string();
    assert!(line.starts_with("no daemon runs in "), "{line}");
    // A daemon that ended leaves its address.
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    std::fs::write(dir.path().join("http.addr"), format!("{address}\n")).unwrap();
    let error = Still::of(Source::Live(Target::Dir(dir.path().to_owned()))).await;
    let error = error.unwrap_err();
    assert!(matches!(error, AskError::Unreachable { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains("start it, or give its directory")
    );
}

#[tokio::test]
async fn what_is_no_daemon_is_named() {
    let foreign = "HOST answers, but is no Murmurate daemon, or one of another version";
    let page =
        |text: &'static str| Router::new().route("/api/v1/swarm", get(move || async move { text }));
    for router in [
        Router::new(),
        page("<html>hello</html>"),
        page("{}"),
        page(""),
    ] {
        let line = error_of(router).await;
        assert!(line.starts_with(foreign), "{line}");
    }
    let refusing = || async { (StatusCode::MISDIRECTED_REQUEST, "ask for an IP address\n") };
    let line = error_of(Router::new().fallback(refusing)).await;
    assert_eq!(line, "the daemon at HOST refuses: ask for an IP address");
}

#[tokio::test]
async fn a_daemon_that_went_away_is_asked_until_it_is_back() {
    let dir = tempfile::tempdir().unwrap();
    let note = |address: SocketAddr| {
        std::fs::write(dir.path().join("http.addr"), format!("{address}\n")).unwrap();
    };
    let (address, server) = serve(daemon()).await;
    note(address);
    let target = Target::Dir(dir.path().to_owned());
    let mut feed = Feed::begin(&target, Duration::from_millis(10));
    let mut next = async |wanted: fn(&News) -> bool| {
        while !wanted(&feed.next().await.unwrap()) {}
    };
    next(|news| matches!(news, News::Answers(_))).await;
    server.abort();
    assert!(server.await.unwrap_err().is_cancelled());
    // The connection that is open may still be answered.
    next(|news| matches!(news, News::Trouble(AskError::Unreachable { .. }))).await;
    let (address, _server) = serve(daemon()).await;
    note(address);
    next(|news| matches!(news, News::Answers(_))).await;
    next(|news| matches!(news, News::Entries(_))).await;
}
