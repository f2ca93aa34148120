//! `murmurate limit`: shows or changes a running daemon's limits on its sending rate, through
//! `/limits`.

use crate::cli::LimitArgs;
use anyhow::{Context, anyhow, bail};
use murmurate_node::api::TOKEN_FILE;
use serde_json::{Map, Value};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

/// How long the daemon may take to answer.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

pub(crate) fn run(args: &LimitArgs) -> anyhow::Result<()> {
    let mut change = Map::new();
    let rates = [
        ("max_rate", &args.max_rate),
        ("max_rate_per_peer", &args.max_rate_per_peer),
    ];
    for (key, rate) in rates {
        if let Some(rate) = rate {
            change.insert(key.to_owned(), value(rate));
        }
    }
    let body = match change.is_empty() {
        true => None,
        false => Some(Value::Object(change).to_string()),
    };
    let answer = ask(&args.dir, body.as_deref())?;
    write!(std::io::stdout().lock(), "{answer}")?;
    Ok(())
}

fn value(rate: &str) -> Value {
    match rate {
        "none" => Value::Null,
        rate => rate
            .parse::<u64>()
            .map_or_else(|_| Value::from(rate), Value::from),
    }
}

/// Sends the change, if there is one, and returns the page's content.
fn ask(dir: &Path, body: Option<&str>) -> anyhow::Result<String> {
    let file = dir.join("http.addr");
    let no_daemon = || {
        format!(
            "no daemon runs in {}: start it, or give its directory",
            dir.display()
        )
    };
    let address = std::fs::read_to_string(&file).with_context(no_daemon)?;
    let address: SocketAddr = address
        .trim()
        .parse()
        .with_context(|| format!("{} holds no address: restart the daemon", file.display()))?;
    let token = match body {
        None => String::new(),
        Some(_) => {
            let file = dir.join(TOKEN_FILE);
            let token = std::fs::read_to_string(&file).with_context(|| {
                format!(
                    "{} cannot be read: ask as the daemon's user",
                    file.display()
                )
            })?;
            format!("Authorization: Bearer {}\r\n", token.trim())
        }
    };
    let mut stream =
        TcpStream::connect_timeout(&own(address), ANSWER_WAIT).with_context(no_daemon)?;
    stream.set_read_timeout(Some(ANSWER_WAIT))?;
    let (method, body) = body.map_or(("GET", ""), |body| ("PUT", body));
    write!(
        stream,
        "{method} /limits HTTP/1.1\r\nHost: {address}\r\n{token}Content-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, content) = answer
        .split_once("\r\n\r\n")
        .ok_or_else(|| anyhow!("{address} does not speak HTTP: restart the daemon"))?;
    if !head
        .lines()
        .next()
        .is_some_and(|line| line.contains(" 200 "))
    {
        bail!("the daemon refused the change: {}", content.trim());
    }
    Ok(content.to_owned())
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
