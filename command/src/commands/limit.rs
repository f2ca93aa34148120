//! `murmurate limit`: shows or changes a running daemon's limits on its sending rate, through
//! `/limits`.

use crate::cli::LimitArgs;
use crate::commands::daemon_http::{self, Request};
use crate::out;
use anyhow::{Context, bail};
use murmurate_node::api::TOKEN_FILE;
use murmurate_node::progress::bytes;
use serde_json::{Map, Value};
use std::path::Path;

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
    if args.json {
        return out::text(answer);
    }
    let limits: Value = serde_json::from_str(&answer)?;
    let of = |key: &str| match limits[key].as_u64() {
        None => "no limit".to_owned(),
        Some(rate) => format!("{} a second", bytes(rate)),
    };
    out::line(format_args!(
        "all peers together: {}\neach peer: {}",
        of("max_rate"),
        of("max_rate_per_peer")
    ))
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
    daemon_http::address(dir)?;
    let head = match body {
        None => String::new(),
        Some(_) => {
            let file = dir.join(TOKEN_FILE);
            let token = std::fs::read_to_string(&file).with_context(|| {
                format!(
                    "{} cannot be read: ask as the daemon's user",
                    file.display()
                )
            })?;
            let token = token.trim();
            format!("Authorization: Bearer {token}\r\nContent-Type: application/json\r\n")
        }
    };
    let request = Request {
        method: if body.is_some() { "PUT" } else { "GET" },
        path: "/limits",
        head: &head,
        body: body.unwrap_or(""),
    };
    let answer = daemon_http::ask(dir, request)?;
    if !answer.ok {
        bail!("the daemon refused the change: {}", answer.content.trim());
    }
    Ok(answer.content)
}
