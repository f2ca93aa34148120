//! Passes a question on to a daemon of this machine, and its answer back as it comes.

use axum::body::Body;
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HOST};
use axum::http::{HeaderMap, HeaderName, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long a daemon may take to begin its answer.
const ANSWER_WAIT: Duration = Duration::from_secs(3);

/// Questions that are passed on begin like this: they change nothing.
const ASKED: [&str; 1] = ["api/v1/"];

/// What a browser that follows events says that it saw last.
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// The answer of the daemon at `address`, or why there is none.
pub(super) async fn ask(
    address: SocketAddr,
    path: &str,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Response {
    if !ASKED.iter().any(|start| path.starts_with(start)) {
        return (StatusCode::NOT_FOUND, "only /api/v1 is passed on\n").into_response();
    }
    let question = query.map_or(String::new(), |query| format!("?{query}"));
    let mut request = Request::get(format!("/{path}{question}")).header(HOST, address.to_string());
    for name in [ACCEPT, LAST_EVENT] {
        if let Some(value) = headers.get(&name) {
            request = request.header(name, value);
        }
    }
    let answer = match request.body(Body::empty()) {
        Ok(request) => timeout(ANSWER_WAIT, send(address, request)).await,
        Err(error) => return (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
    };
    match answer {
        Ok(Ok(answer)) => answer,
        Ok(Err(reason)) => failed(&reason),
        Err(_) => failed("the daemon does not answer"),
    }
}

fn failed(reason: &str) -> Response {
    (StatusCode::BAD_GATEWAY, format!("{reason}\n")).into_response()
}

async fn send(address: SocketAddr, request: Request<Body>) -> Result<Response, String> {
    let words = |error: &dyn std::fmt::Display| error.to_string();
    let stream = TcpStream::connect(address).await.map_err(|e| words(&e))?;
    let connected = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = connected.map_err(|e| words(&e))?;
    // It ends with the answer, or when the browser no longer wants it.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a daemon's answer ended early");
        }
    });
    let answer = sender.send_request(request).await.map_err(|e| words(&e))?;
    let (head, body) = answer.into_parts();
    let mut passed_on = Response::builder().status(head.status);
    for name in [CONTENT_TYPE, CACHE_CONTROL] {
        if let Some(value) = head.headers.get(&name) {
            passed_on = passed_on.header(name, value);
        }
    }
    passed_on.body(Body::new(body)).map_err(|e| words(&e))
}
