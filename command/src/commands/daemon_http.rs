//! Asks a running daemon over its HTTP interface, by its directory.

use anyhow::{Context, anyhow};
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
    let file = dir.join("http.addr");
    let text = std::fs::read_to_string(&file).with_context(|| no_daemon(dir))?;
    let address = text.trim().parse();
    address.with_context(|| format!("{} holds no address: restart the daemon", file.display()))
}

fn no_daemon(dir: &Path) -> String {
    format!(
        "no daemon runs in {}: start it, or give its directory",
        dir.display()
    )
}

/// Sends a request to the daemon of a directory.
pub(crate) fn ask(dir: &Path, request: Request<'_>) -> anyhow::Result<Answer> {
    let address = address(dir)?;
    let stream = TcpStream::connect_timeout(&own(address), ANSWER_WAIT);
    let mut stream = stream.with_context(|| no_daemon(dir))?;
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

/// The address to use from this machine. A daemon that listens on all addresses also listens on
/// loopback.
fn own(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}
