//! The HTTP server. It listens on loopback unless configured otherwise.
//!
//! It refuses requests that a browser sends for a foreign page: a host name of an attacker can resolve to
//! this machine (DNS rebinding), and then the page could read what the daemon tells. It also sets the
//! headers that tell browsers to load nothing from elsewhere.

use super::door::{Caller, Door};
use super::{MetricsFormat, StatusHandle, Token, limits, metrics_text, page, v1};
use crate::events::Recent;
use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Router, middleware};
use murmurate_net::congestion::MaxRate;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// Another process listens on the port.
    #[error("--http: {address} is in use; give another port, or port 0 for any free one")]
    Busy { address: SocketAddr },
    /// The address cannot be used.
    #[error("--http: cannot listen on {address}: {source}")]
    Listen {
        address: SocketAddr,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
}

/// The running server. Dropping it stops the task that serves.
#[derive(Debug)]
pub struct ApiServer {
    address: SocketAddr,
    task: JoinHandle<()>,
}

/// Parts of a daemon that the server shows.
#[derive(Clone, Debug)]
pub struct Served {
    /// The daemon's status and memory.
    pub status: StatusHandle,
    /// Its last events.
    pub recent: Recent,
    /// The limits that `/limits` shows, and changes for those who have the token.
    pub rate: MaxRate,
    /// The token.
    pub token: Token,
    /// Host names under which it answers, beside addresses and `localhost`.
    pub names: Vec<String>,
}

impl ApiServer {
    /// Starts the server. Needs a tokio runtime.
    ///
    /// # Errors
    /// If the address cannot be listened on.
    pub async fn start(address: SocketAddr, served: Served) -> Result<Self, ApiError> {
        let names = served.names.clone();
        Self::listen(address, names, routes(served)).await
    }

    /// Serves these routes to those who ask for an address, `localhost` or one of `names`.
    ///
    /// # Errors
    /// If the address cannot be listened on.
    pub(crate) async fn listen(
        address: SocketAddr,
        names: Vec<String>,
        routes: Router,
    ) -> Result<Self, ApiError> {
        let failed = |source: std::io::Error| match source.kind() {
            std::io::ErrorKind::AddrInUse => ApiError::Busy { address },
            _ => ApiError::Listen { address, source },
        };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let task = tokio::spawn(async move {
            let names: Arc<[String]> = names.into();
            let known = move |request, next| only_known(Arc::clone(&names), request, next);
            let routes = routes.layer(middleware::from_fn(known));
            let service = routes.into_make_service_with_connect_info::<Caller>();
            if let Err(error) = axum::serve(Door::new(listener), service).await {
                tracing::warn!(%error, "the HTTP server ended");
            }
        });
        Ok(Self { address, task })
    }

    /// The address that it listens on, with the real port if port 0 was requested.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn routes(served: Served) -> Router {
    let Served {
        status,
        recent,
        rate,
        token,
        ..
    } = served;
    let metrics = status.clone();
    let pages = v1::routes(&status, recent).merge(page::routes());
    pages
        .route(
            "/status",
            get(move || async move {
                let text = serde_json::to_string_pretty(&status.status());
                page::json(text.map(|text| text + "\n"))
            }),
        )
        .route(
            "/metrics",
            get(move |headers: HeaderMap| async move { metrics_page(&metrics, &headers) }),
        )
        .merge(limits::routes(rate, token))
        .fallback(|| async {
            let text = "see /, /status, /metrics, /limits and /api/v1\n";
            (StatusCode::NOT_FOUND, text)
        })
}

fn metrics_page(status: &StatusHandle, headers: &HeaderMap) -> Response {
    let format = MetricsFormat::accepted(headers);
    let kind = [
        (header::CONTENT_TYPE, format.content_type()),
        (header::VARY, "Accept"),
    ];
    (kind, metrics_text(&status.status(), format)).into_response()
}

/// Headers of every answer, for browsers.
const HEADERS: [(header::HeaderName, &str); 4] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
];

/// Passes on requests whose `Host` is an address or `localhost`, which no attacker can make resolve to
/// something else, or one of the names that the configuration allows.
async fn only_known(names: Arc<[String]>, request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok()).unwrap_or("");
    let mut response = if is_known(host, &names) {
        next.run(request).await
    } else {
        let text = "ask for an IP address, for localhost, or for a name in daemon.http_names\n";
        (StatusCode::MISDIRECTED_REQUEST, text).into_response()
    };
    protect(response.headers_mut());
    response
}

fn protect(headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

fn is_known(host: &str, names: &[String]) -> bool {
    let Ok(authority) = host.parse::<Authority>() else {
        return false;
    };
    let name = authority.host();
    let address = name.trim_start_matches('[').trim_end_matches(']');
    let known = |known: &String| name.eq_ignore_ascii_case(known);
    name.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok()
        || names.iter().any(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{About, Clock, Observer};
    use crate::events::{EventLog, Kind};
    use crate::store::Progress;
    use crate::tests::{assert_ends, assert_has};
    use murmurate_protocol::Time;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const TOKEN: Token = Token::new([1; 32]);

    #[derive(Debug)]
    struct Still;

    impl Clock for Still {
        fn now(&self) -> Time {
            Time::ZERO
        }
    }

    async fn get(address: SocketAddr, path: &str) -> String {
        ask(address, "GET", path, "").await
    }

    async fn ask(address: SocketAddr, method: &str, path: &str, body: &str) -> String {
        ask_as(&address.to_string(), address, method, path, body).await
    }

    async fn ask_as(
        host: &str,
        address: SocketAddr,
        method: &str,
        path: &str,
        body: &str,
    ) -> String {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\
             Authorization: Bearer {}\r\nConnection: close\r\n\r\n{body}",
            TOKEN.text()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    fn served(rate: MaxRate) -> Served {
        Served {
            status: handle(),
            recent: Recent::default(),
            rate,
            token: TOKEN,
            names: vec!["gpu1.lan".to_owned()],
        }
    }

    fn handle() -> StatusHandle {
        let about = About {
            run: "test run".to_owned(),
            ..About::default()
        };
        let observer = Observer::new(about, Progress::default());
        StatusHandle::new(observer, Arc::new(Still))
    }

    #[tokio::test]
    async fn three_hundred_half_open_requests_delay_no_answer() {
        let any = "127.0.0.1:0".parse().unwrap();
        let server = ApiServer::start(any, served(MaxRate::default()));
        let server = server.await.unwrap();
        let mut half_open = Vec::new();
        for _ in 0..300 {
            let mut stream = tokio::net::TcpStream::connect(server.address())
                .await
                .unwrap();
            stream
                .write_all(b"GET /status HTTP/1.1\r\nHost: ")
                .await
                .unwrap();
            half_open.push(stream);
        }
        let started = std::time::Instant::now();
        let status = get(server.address(), "/status").await;
        assert!(status.contains("200 OK"), "{status}");
        println!(
            "an answer beside 300 half-open requests: {:?}",
            started.elapsed()
        );
        // The first were closed for the last, and the others end without a request.
        let mut ended = 0;
        for mut stream in half_open {
            let mut rest = Vec::new();
            // A reset is an end too.
            let _ = stream.read_to_end(&mut rest).await;
            ended += 1;
        }
        assert_eq!(ended, 300);
    }

    #[tokio::test]
    async fn the_pages_answer_and_a_busy_port_is_named() {
        let any = "127.0.0.1:0".parse().unwrap();
        let rate = MaxRate::default();
        let server = ApiServer::start(any, served(rate.clone()));
        let server = server.await.unwrap();
        let status = get(server.address(), "/status").await;
        assert_has(&status, "200 OK");
        assert_has(&status, "\"run\": \"test run\"");
        let metrics = get(server.address(), "/metrics").await;
        assert!(metrics.contains("murmurate_round 0.0"), "{metrics}");
        assert_has(&metrics, "content-type: text/plain; version=0.0.4");
        assert!(get(server.address(), "/none").await.contains("404"));
        let foreign = ask_as("evil.example", server.address(), "GET", "/status", "").await;
        assert_has(&foreign, "421");
        assert!(!foreign.contains("test run"), "{foreign}");
        let to = "{\"max_rate\": \"1 MB/s\"}";
        let answer = ask(server.address(), "PUT", "/limits", to).await;
        let now = "{\"max_rate\":1000000,\"max_rate_per_peer\":null}\n";
        assert_has(&answer, "200 OK");
        assert_ends(&answer, now);
        assert_eq!(rate.get().daemon, Some(1_000_000));
        assert!(get(server.address(), "/limits").await.ends_with(now));
        let long = ask(server.address(), "PUT", "/limits", &" ".repeat(9999)).await;
        assert!(long.contains("413"), "{long}");
        let line = ApiServer::start(server.address(), served(rate))
            .await
            .unwrap_err()
            .to_string();
        let expected = format!(
            "--http: {} is in use; give another port, or port 0 for any free one",
            server.address()
        );
        assert_eq!(line, expected);
    }

    #[tokio::test]
    async fn every_route_refuses_foreign_hosts_and_protects_its_answers() {
        let any = "127.0.0.1:0".parse().unwrap();
        let server = ApiServer::start(any, served(MaxRate::default()));
        let server = server.await.unwrap();
        let paths = [
            "/",
            "/page.js",
            "/page.css",
            "/icon.svg",
            "/status",
            "/metrics",
            "/limits",
            "/healthz",
            "/readyz",
            "/api/v1/swarm",
            "/api/v1/history",
            "/api/v1/contributions",
            "/api/v1/why",
            "/none",
        ];
        for path in paths {
            let foreign = ask_as("evil.example", server.address(), "GET", path, "").await;
            assert!(foreign.starts_with("HTTP/1.1 421 "), "{path}: {foreign}");
            let known = ask_as("gpu1.lan:80", server.address(), "GET", path, "").await;
            assert!(!known.starts_with("HTTP/1.1 421 "), "{path}: {known}");
            assert!(
                known.contains("content-security-policy: default-src 'self'"),
                "{path}: {known}"
            );
        }
        let foreign = ask_as(
            "evil.example",
            server.address(),
            "GET",
            "/api/v1/events",
            "",
        )
        .await;
        assert!(foreign.starts_with("HTTP/1.1 421 "), "{foreign}");
    }

    #[tokio::test]
    async fn questions_are_answered_or_refused_with_a_reason() {
        let any = "127.0.0.1:0".parse().unwrap();
        let server = ApiServer::start(any, served(MaxRate::default()));
        let server = server.await.unwrap();
        let page = get(server.address(), "/").await;
        assert_has(&page, "200 OK");
        assert_has(&page, "<title>");
        let why = get(server.address(), "/api/v1/why?what=slow&round=3&peer=ab").await;
        assert_has(&why, "200 OK");
        assert_has(&why, "\"action\":");
        let ready = get(server.address(), "/readyz").await;
        assert!(ready.contains("503") && ready.ends_with("new\n"), "{ready}");
        for wrong in ["what=luck", "round=-1", "colour=red"] {
            let answer = get(server.address(), &format!("/api/v1/why?{wrong}")).await;
            assert!(answer.starts_with("HTTP/1.1 400 "), "{wrong}: {answer}");
        }
        let wrong = get(server.address(), "/api/v1/history?since=x").await;
        assert!(wrong.starts_with("HTTP/1.1 400 "), "{wrong}");
        let history = get(server.address(), "/api/v1/history").await;
        assert!(history.ends_with("{\"points\":[]}"), "{history}");
    }

    /// What a follower reads until it has seen this text.
    async fn follow(address: SocketAddr, head: &str, until: &str) -> String {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let request = format!("GET /api/v1/events HTTP/1.1\r\nHost: {address}\r\n{head}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut seen = String::new();
        let mut bytes = [0; 4096];
        while !seen.contains(until) {
            let count = stream.read(&mut bytes).await.unwrap();
            assert!(count > 0, "the stream ended: {seen}");
            seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        seen
    }

    #[tokio::test]
    async fn followers_get_the_events_after_the_last_that_they_saw() {
        let mut log = EventLog::in_memory("me");
        for round in 1..=5 {
            log.add(Time::ZERO, round, Kind::Saved);
        }
        let any = "127.0.0.1:0".parse().unwrap();
        let mut shown = served(MaxRate::default());
        shown.recent = log.recent();
        let server = ApiServer::start(any, shown).await.unwrap();
        let all = follow(server.address(), "", "id: 5").await;
        assert_has(&all, "id: 1\n");
        assert_has(&all, "text/event-stream");
        let rest = follow(server.address(), "Last-Event-ID: 3\r\n", "id: 5").await;
        assert!(
            !rest.contains("id: 3\n") && rest.contains("id: 4\n"),
            "{rest}"
        );
        let address = server.address();
        let live =
            tokio::spawn(async move { follow(address, "Last-Event-ID: 5\r\n", "id: 6").await });
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        log.add(Time::ZERO, 6, Kind::Finished);
        let live = live.await.unwrap();
        assert_has(&live, "\"kind\":\"finished\"");
        assert!(!live.contains("id: 5\n"), "{live}");
        // Of many followers some are told to come back later, and the pages still answer.
        let mut followers = Vec::new();
        for _ in 0..16 {
            let mut stream = tokio::net::TcpStream::connect(server.address())
                .await
                .unwrap();
            let request = b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n";
            stream.write_all(request).await.unwrap();
            let mut first = [0; 12];
            stream.read_exact(&mut first).await.unwrap();
            followers.push((stream, first));
        }
        let accepted = followers
            .iter()
            .filter(|(_, first)| first.ends_with(b"200"));
        assert!((13..=16).contains(&accepted.count()));
        let one_more = get(server.address(), "/healthz").await;
        assert!(one_more.ends_with("ok\n"), "{one_more}");
    }

    #[test]
    fn addresses_localhost_and_configured_names_are_this_machine() {
        let names = ["gpu1.lan".to_owned()];
        for host in [
            "127.0.0.1",
            "127.0.0.1:8080",
            "[::1]:80",
            "localhost:1",
            "LOCALHOST",
            "10.1.2.3",
            "gpu1.lan:9100",
            "GPU1.lan",
        ] {
            assert!(is_known(host, &names), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:80",
            "127.0.0.1.evil.example",
            "localhost.evil",
            "gpu1.lan.evil",
            "a b",
        ] {
            assert!(!is_known(host, &names), "{host}");
        }
    }
}
