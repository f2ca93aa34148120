//! Passes a question on to a daemon of this machine, and its answer back as it comes.

use crate::api::{AskError, Connection};
use axum::body::Body;
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::timeout;

/// How long a daemon may take to begin its answer.
const ANSWER_WAIT: Duration = Duration::from_secs(3);

/// Questions that are passed on begin like this: they change nothing.
const ASKED: [&str; 1] = ["api/v1/"];

/// What a browser that follows events says that it saw last.
const LAST_EVENT: &str = "last-event-id";

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
    let question = format!("/{path}{question}");
    if let Err(error) = question.parse::<Uri>() {
        return (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response();
    }
    let passed_on = [ACCEPT.as_str(), LAST_EVENT];
    let head = passed_on.map(|name| Some((name, headers.get(name)?.as_bytes())));
    let head: Vec<(&str, &[u8])> = head.into_iter().flatten().collect();
    let answer = async {
        let mut connection = Connection::open(address.to_string(), ANSWER_WAIT).await?;
        connection.send("GET", &question, &head, "").await
    };
    match timeout(ANSWER_WAIT, answer).await {
        Ok(Ok(answer)) => shown(answer),
        Ok(Err(AskError::Unreachable { reason, .. } | AskError::Foreign { reason, .. })) => {
            failed(&reason)
        }
        Ok(Err(_)) | Err(_) => failed("the daemon does not answer"),
    }
}

fn failed(reason: &str) -> Response {
    (StatusCode::BAD_GATEWAY, format!("{reason}\n")).into_response()
}

/// The answer without what concerns only its connection.
fn shown(answer: axum::http::Response<Incoming>) -> Response {
    let (mut head, body) = answer.into_parts();
    let kept = [CONTENT_TYPE, CACHE_CONTROL];
    let kept = kept.map(|name| Some((name.clone(), head.headers.remove(&name)?)));
    head.headers = HeaderMap::from_iter(kept.into_iter().flatten());
    Response::from_parts(head, Body::new(body))
}
