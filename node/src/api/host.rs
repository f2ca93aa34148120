//! Refuses requests that a browser sends for a foreign page: a host name of an attacker can resolve to
//! 127.0.0.1 (DNS rebinding), and then the page could read what the daemon tells programs of this machine.

use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::IpAddr;

/// Passes on requests whose `Host` is an address or `localhost`, which no attacker can make resolve to
/// something else. Meant for servers that listen on loopback: who may read others is said by
/// `http_public`.
pub(super) async fn only_addresses(request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok()).unwrap_or("");
    if names_this_machine(host) {
        return next.run(request).await;
    }
    let text = "ask for an IP address or localhost, not for a host name\n";
    (StatusCode::MISDIRECTED_REQUEST, text).into_response()
}

fn names_this_machine(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else {
        return false;
    };
    let name = authority.host();
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_localhost_are_this_machine() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:8080",
            "[::1]:80",
            "localhost:1",
            "LOCALHOST",
            "10.1.2.3",
        ] {
            assert!(names_this_machine(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:80",
            "127.0.0.1.evil.example",
            "localhost.evil",
            "a b",
        ] {
            assert!(!names_this_machine(host), "{host}");
        }
    }
}
