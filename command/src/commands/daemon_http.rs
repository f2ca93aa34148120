//! Asks a running daemon over its HTTP interface, by its directory.

use anyhow::{Context, anyhow};
use murmurate_node::api::{NotedError, Swarm, noted_address};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

/// How long the daemon may take to answer.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// A request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    /// More lines of the head, each with its end.
    pub(crate) head: &'a str,
    pub(crate) body: &'a str,
}

impl<'a> Request<'a> {
    /// A question that changes nothing.
    pub(crate) fn get(path: &'a str) -> Self {
        Self {
            method: "GET",
            path,
            head: "",
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
    let stream = TcpStream::connect_timeout(&address, ANSWER_WAIT);
    let mut stream = stream.map_err(|_| NotedError::Missing {
        dir: dir.to_owned(),
    })?;
    stream.set_read_timeout(Some(ANSWER_WAIT))?;
    let Request {
        method,
        path,
        head,
        body,
    } = request;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\n{head}Content-Length: {}\r\nConnection: close\r\n\
         \r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).with_context(|| {
        format!(
            "the daemon of {} does not answer: its process is stopped, or its machine is overloaded",
            dir.display()
        )
    })?;
    let (head, content) = answer
        .split_once("\r\n\r\n")
        .ok_or_else(|| anyhow!("{address} does not speak HTTP: restart the daemon"))?;
    let ok = head
        .lines()
        .next()
        .is_some_and(|line| line.contains(" 200 "));
    let content = content.to_owned();
    Ok(Answer { ok, content })
}
