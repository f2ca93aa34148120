//! `/limits`: reads and changes the daemon's limits on bytes sent per second; and the token without which
//! nothing can be changed over HTTP. Programs of other users of the machine reach the server on loopback, and
//! cannot read the daemon's directory.
//!
//! A change is a `PUT` with a JSON object: `max_rate` for all peers together, `max_rate_per_peer` for each. A
//! rate is written as in the configuration, `null` removes the limit, and a missing key keeps it. A change
//! lasts until the daemon ends; the configuration file is not written. Only programs on the same machine that
//! can read the daemon's token may change limits, and no page in a browser.

use crate::api::door::Caller;
use crate::api::page::json;
use crate::config::RawRate;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, DefaultBodyLimit};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use murmurate_net::congestion::{Limits, MaxRate};
use murmurate_protocol::Digest;
use serde::{Deserialize, Deserializer, Serialize};
use std::net::SocketAddr;

/// Maximum size of a request's body, bytes.
const BODY_BYTES_MAX: usize = 1024;

/// Limits in bytes per second, as `/limits` shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LimitsPage {
    /// Limit for all peers together; `None` means no limit.
    pub max_rate: Option<u64>,
    /// Limit for each peer; `None` means no limit.
    pub max_rate_per_peer: Option<u64>,
}

impl From<Limits> for LimitsPage {
    fn from(limits: Limits) -> Self {
        Self {
            max_rate: limits.daemon,
            max_rate_per_peer: limits.peer,
        }
    }
}

/// A requested change. An outer `None` keeps the limit, an inner `None` removes it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    #[serde(default, deserialize_with = "given")]
    max_rate: Option<Option<RawRate>>,
    #[serde(default, deserialize_with = "given")]
    max_rate_per_peer: Option<Option<RawRate>>,
}

fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<RawRate>>, D::Error> {
    Option::deserialize(from).map(Some)
}

#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("limits can only be changed from the daemon's own machine")]
    Remote,
    #[error("limits cannot be changed from a page in a browser")]
    Browser,
    #[error(
        "changes need the token in the file http-token of the daemon's directory, as \
         `Authorization: Bearer TOKEN`; `murmurate limit DIR` reads it"
    )]
    Token,
    #[error("the body is not a change of limits: {0}")]
    Body(String),
    #[error(
        "`{0}` must be bytes a second above 0, a number with a unit such as \"10 MB/s\", or null"
    )]
    Rate(&'static str),
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let status = match self {
            Self::Remote | Self::Browser => StatusCode::FORBIDDEN,
            Self::Token => StatusCode::UNAUTHORIZED,
            Self::Body(_) | Self::Rate(_) => StatusCode::BAD_REQUEST,
        };
        (status, format!("{self}\n")).into_response()
    }
}

fn changed(mut limits: Limits, body: &[u8]) -> Result<Limits, Refused> {
    let change: Change =
        serde_json::from_slice(body).map_err(|error| Refused::Body(error.to_string()))?;
    let parts = [
        ("max_rate", change.max_rate, &mut limits.daemon),
        (
            "max_rate_per_peer",
            change.max_rate_per_peer,
            &mut limits.peer,
        ),
    ];
    for (name, part, limit) in parts {
        match part {
            None => {}
            Some(None) => *limit = None,
            Some(Some(rate)) => *limit = Some(rate.bytes().ok_or(Refused::Rate(name))?),
        }
    }
    Ok(limits)
}

fn change(
    rate: &MaxRate,
    token: &Token,
    from: SocketAddr,
    head: &HeaderMap,
    body: &[u8],
) -> Result<(), Refused> {
    if !from.ip().to_canonical().is_loopback() {
        return Err(Refused::Remote);
    }
    // Browsers name the origin of the page, even if a page's host name resolves to this machine.
    if head.contains_key(header::ORIGIN) {
        return Err(Refused::Browser);
    }
    if !token.admits(head) {
        return Err(Refused::Token);
    }
    let limits = changed(rate.get(), body)?;
    tracing::info!(?limits, "the limits on the sending rate were changed");
    rate.set(limits);
    Ok(())
}

fn page(rate: &MaxRate) -> Response {
    let text = serde_json::to_string(&LimitsPage::from(rate.get()));
    json(text.map(|text| text + "\n"))
}

/// The page's routes. `rate` holds the limits that the network applies.
pub(super) fn routes(rate: MaxRate, token: Token) -> Router {
    let shown = rate.clone();
    let put = move |ConnectInfo(Caller(from)): ConnectInfo<Caller>,
                    head: HeaderMap,
                    body: Bytes| async move {
        match change(&rate, &token, from, &head, &body) {
            Ok(()) => page(&rate),
            Err(refused) => refused.into_response(),
        }
    };
    Router::new()
        .route("/limits", get(move || async move { page(&shown) }).put(put))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
}

/// Name of the token's file in the daemon's directory.
pub const TOKEN_FILE: &str = "http-token";

/// 32 random bytes in hexadecimal, new with every start.
#[derive(Clone)]
pub struct Token(Digest);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// A token of these random bytes.
    pub const fn new(random: [u8; 32]) -> Self {
        Self(Digest::from_bytes(random))
    }

    /// The content of the file.
    pub fn text(&self) -> String {
        self.0.to_hex()
    }

    /// A request carries it: `Authorization: Bearer TOKEN`.
    pub(super) fn admits(&self, head: &HeaderMap) -> bool {
        let value = head.get(header::AUTHORIZATION);
        let value = value.and_then(|value| value.to_str().ok());
        let given = value.and_then(|value| value.strip_prefix("Bearer "));
        // Hashes are compared, so the time of the comparison tells nothing about the token.
        let hash = |text: &str| Digest::of(text.as_bytes());
        given.is_some_and(|given| hash(given) == hash(&self.text()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: Token = Token::new([1; 32]);

    fn with_token() -> HeaderMap {
        let value = format!("Bearer {}", TOKEN.text()).parse().unwrap();
        HeaderMap::from_iter([(header::AUTHORIZATION, value)])
    }

    fn from(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_named_is_changed_and_nothing_else() {
        let rate = MaxRate::default();
        let head = with_token();
        let here = from("127.0.0.1:9");
        for (body, daemon, peer) in [
            ("{\"max_rate\": \"8 Mbit/s\"}", Some(1_000_000), None),
            ("{\"max_rate_per_peer\": 5000}", Some(1_000_000), Some(5000)),
            ("{\"max_rate\": null}", None, Some(5000)),
            ("{}", None, Some(5000)),
        ] {
            change(&rate, &TOKEN, here, &head, body.as_bytes()).unwrap();
            assert_eq!(rate.get(), Limits { daemon, peer }, "{body}");
        }
    }

    #[test]
    fn what_is_wrong_or_from_elsewhere_changes_nothing() {
        let rate = MaxRate::default();
        let (none, here) = (HeaderMap::new(), from("[::1]:9"));
        let head = with_token();
        let mut page = with_token();
        page.insert(header::ORIGIN, "http://example.org".parse().unwrap());
        for (from, head, body, words) in [
            (
                from("192.0.2.1:9"),
                &head,
                "{\"max_rate\": 1}",
                "own machine",
            ),
            (here, &page, "{\"max_rate\": 1}", "browser"),
            (here, &none, "{\"max_rate\": 1}", "http-token"),
            (here, &head, "{\"max_rate\": 0}", "`max_rate` must be"),
            (
                here,
                &head,
                "{\"max_rate_per_peer\": \"fast\"}",
                "`max_rate_per_peer`",
            ),
            (here, &head, "{\"rate\": 1}", "unknown field"),
            (here, &head, "", "not a change of limits"),
        ] {
            let refused = change(&rate, &TOKEN, from, head, body.as_bytes()).unwrap_err();
            assert!(refused.to_string().contains(words), "{refused}");
            assert_eq!(rate.get(), Limits::default());
        }
    }

    #[test]
    fn only_the_whole_token_is_admitted() {
        let token = Token::new([7; 32]);
        let mut head = HeaderMap::new();
        assert!(!token.admits(&head));
        for (value, admitted) in [
            (format!("Bearer {}", token.text()), true),
            (format!("Bearer {}", &token.text()[1..]), false),
            (token.text(), false),
            ("Bearer ".to_owned(), false),
        ] {
            head.insert(header::AUTHORIZATION, value.parse().unwrap());
            assert_eq!(token.admits(&head), admitted, "{value}");
        }
        assert_eq!(format!("{token:?}"), "Token");
    }
}
