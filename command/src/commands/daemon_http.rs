//! Asks a running daemon over its HTTP interface, by its directory.

use anyhow::anyhow;
use murmurate_node::api::{AskError, Connection, NotedError, Swarm, noted_address};
use std::path::Path;
use std::time::Duration;
use tokio::runtime::Builder;

/// How long the daemon may take to answer.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// The daemon's answer, with `ok` set if it granted the request, and the content.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) ok: bool,
    pub(crate) content: String,
}

/// The swarm as the daemon of a directory knows it, if it runs.
pub(crate) fn swarm(dir: &Path) -> Option<Swarm> {
    let answer = get(dir, "/api/v1/swarm").ok()?;
    serde_json::from_str(&answer.content).ok()
}

/// Asks what changes nothing.
pub(crate) fn get(dir: &Path, path: &str) -> anyhow::Result<Answer> {
    send(dir, "GET", path, &[], "")
}

/// Sends a request with these fields of its head.
pub(crate) fn send(
    dir: &Path,
    method: &str,
    path: &str,
    head: &[(&str, &[u8])],
    body: &str,
) -> anyhow::Result<Answer> {
    let address = noted_address(dir)?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let connection = Connection::open(address.to_string(), ANSWER_WAIT).await;
        let mut connection = connection.map_err(|_| NotedError::Missing(dir.to_owned()))?;
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
