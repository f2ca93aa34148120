//! Refuses requests that a browser sends for a foreign page: a host name of an attacker can resolve to
//! this machine (DNS rebinding), and then the page could read what the daemon tells. Also sets the
//! headers that tell browsers to load nothing from elsewhere.

use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::IpAddr;
use std::sync::Arc;

/// Headers of every answer, for browsers.
const HEADERS: [(header::HeaderName, &str); 4] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
];

/// Passes on requests whose `Host` is an address or `localhost`, which no attacker can make resolve to
/// something else, or one of the names that the configuration allows.
pub(super) async fn only_known(names: Arc<[String]>, request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok()).unwrap_or("");
    let mut response = if is_known(host, &names) {
        next.run(request).await
    } else {
        let text = "ask for an IP address, for localhost, or for a name in daemon.http_names\n";
        (StatusCode::MISDIRECTED_REQUEST, text).into_response()
    };
    protect(response.headers_mut());
    response
}

fn protect(headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

fn is_known(host: &str, names: &[String]) -> bool {
    let Ok(authority) = host.parse::<Authority>() else {
        return false;
    };
    let name = authority.host();
    let address = name.trim_start_matches('[').trim_end_matches(']');
    let known = |known: &String| name.eq_ignore_ascii_case(known);
    name.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok()
        || names.iter().any(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_localhost_and_configured_names_are_this_machine() {
        let names = ["gpu1.lan".to_owned()];
        for host in [
            "127.0.0.1",
            "127.0.0.1:8080",
            "[::1]:80",
            "localhost:1",
            "LOCALHOST",
            "10.1.2.3",
            "gpu1.lan:9100",
            "GPU1.lan",
        ] {
            assert!(is_known(host, &names), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:80",
            "127.0.0.1.evil.example",
            "localhost.evil",
            "gpu1.lan.evil",
            "a b",
        ] {
            assert!(!is_known(host, &names), "{host}");
        }
    }
}
