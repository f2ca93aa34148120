//! Asks a running daemon over its HTTP interface, by its directory.

use anyhow::anyhow;
use murmurate_node::api::{AskError, Connection, NotedError, Swarm, noted_address};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tokio::runtime::Builder;

/// How long the daemon may take to answer.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// A request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    /// More fields of the head.
    pub(crate) head: &'a [(&'a str, &'a [u8])],
    pub(crate) body: &'a str,
}

impl<'a> Request<'a> {
    /// A question that changes nothing.
    pub(crate) fn get(path: &'a str) -> Self {
        Self {
            method: "GET",
            path,
            head: &[],
            body: "",
        }
    }
}

/// The daemon's answer: whether it did what was asked, and the content.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) ok: bool,
    pub(crate) content: String,
}

/// The address that the daemon of a directory has noted.
pub(crate) fn address(dir: &Path) -> anyhow::Result<SocketAddr> {
    Ok(noted_address(dir)?)
}

/// The swarm as the daemon of a directory knows it, if it runs.
pub(crate) fn swarm(dir: &Path) -> Option<Swarm> {
    let answer = ask(dir, Request::get("/api/v1/swarm")).ok()?;
    serde_json::from_str(&answer.content).ok()
}

/// Sends a request to the daemon of a directory.
pub(crate) fn ask(dir: &Path, request: Request<'_>) -> anyhow::Result<Answer> {
    let address = address(dir)?;
    let Request {
        method,
        path,
        head,
        body,
    } = request;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let connection = Connection::open(address.to_string(), ANSWER_WAIT).await;
        let mut connection = connection.map_err(|_| NotedError::Missing {
            dir: dir.to_owned(),
        })?;
        let answer = connection.page(method, path, head, body).await;
        let (status, content) = answer.map_err(|error| match error {
            AskError::Foreign { .. } => anyhow!("{address} does not speak HTTP: restart the daemon"),
            _ => anyhow!(
                "the daemon of {} does not answer: its process is stopped, or its machine is overloaded",
                dir.display()
            ),
        })?;
        Ok(Answer {
            ok: status == 200,
            content: String::from_utf8_lossy(&content).into_owned(),
        })
    })
}
