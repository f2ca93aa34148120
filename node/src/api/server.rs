//! The HTTP server. It listens on loopback unless configured otherwise.

use super::door::{Caller, Door};
use super::{StatusHandle, Token, host, limits, metrics_text, page, v1};
use crate::events::Recent;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use murmurate_net::congestion::MaxRate;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// Another process listens on the port.
    #[error("--http: {address} is in use; give another port, or port 0 for any free one")]
    Busy {
        /// The requested address.
        address: SocketAddr,
    },
    /// The address cannot be used.
    #[error("--http: cannot listen on {address}: {source}")]
    Listen {
        /// The requested address.
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

/// What the server shows.
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
        let failed = |source: std::io::Error| match source.kind() {
            std::io::ErrorKind::AddrInUse => ApiError::Busy { address },
            _ => ApiError::Listen { address, source },
        };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let task = tokio::spawn(async move {
            let names: Arc<[String]> = served.names.clone().into();
            let known = move |request, next| host::only_known(Arc::clone(&names), request, next);
            let routes = routes(served).layer(middleware::from_fn(known));
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
        .route("/status", get(move || async move { status_page(&status) }))
        .route(
            "/metrics",
            get(move || async move { metrics_page(&metrics) }),
        )
        .merge(limits::routes(rate, token))
        .fallback(|| async {
            let text = "see /, /status, /metrics, /limits and /api/v1\n";
            (StatusCode::NOT_FOUND, text)
        })
}

fn status_page(status: &StatusHandle) -> Response {
    match serde_json::to_string_pretty(&status.status()) {
        Ok(mut text) => {
            text.push('\n');
            ([(header::CONTENT_TYPE, "application/json")], text).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

fn metrics_page(status: &StatusHandle) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    (
        [(header::CONTENT_TYPE, kind)],
        metrics_text(&status.status()),
    )
        .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Clock;
    use crate::api::{About, Observer};
    use crate::store::Progress;
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
        assert!(
            status.contains("200 OK") && status.contains("\"run\": \"test run\""),
            "{status}"
        );
        let metrics = get(server.address(), "/metrics").await;
        assert!(metrics.contains("murmurate_round 0.0"), "{metrics}");
        assert!(get(server.address(), "/none").await.contains("404"));
        let foreign = ask_as("evil.example", server.address(), "GET", "/status", "").await;
        assert!(
            foreign.contains("421") && !foreign.contains("test run"),
            "{foreign}"
        );
        let to = "{\"max_rate\": \"1 MB/s\"}";
        let answer = ask(server.address(), "PUT", "/limits", to).await;
        let now = "{\"max_rate\":1000000,\"max_rate_per_peer\":null}\n";
        assert!(
            answer.contains("200 OK") && answer.ends_with(now),
            "{answer}"
        );
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
}
