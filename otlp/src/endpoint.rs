//! The address of a collector.

use http::Uri;
use std::fmt;
use std::str::FromStr;

const PORT: u16 = 4318;

/// The address of a collector: `http://HOST:PORT`, with a path before `/v1/traces` if it needs one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    host: String,
    port: u16,
    path: String,
}

/// Why a text is no address of a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// It is no URL.
    #[error("give the URL of a collector, such as http://127.0.0.1:4318")]
    NoUrl,
    /// It asks for TLS.
    #[error(
        "only http:// is spoken: run a collector on this machine or network, and let it pass things on \
         over https"
    )]
    Tls,
}

impl Endpoint {
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{self}{path}")
    }

    /// Host and port, as a connection needs them.
    pub(crate) fn address(&self) -> (&str, u16) {
        let bare = self.host.trim_start_matches('[').trim_end_matches(']');
        (bare, self.port)
    }

    /// Host and port, as a header has them.
    pub(crate) fn host(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let uri: Uri = text.parse().map_err(|_| EndpointError::NoUrl)?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => return Err(EndpointError::Tls),
            _ => return Err(EndpointError::NoUrl),
        }
        if uri.query().is_some() {
            return Err(EndpointError::NoUrl);
        }
        let host = uri.host().filter(|host| !host.is_empty());
        Ok(Self {
            host: host.ok_or(EndpointError::NoUrl)?.to_owned(),
            port: uri.port_u16().unwrap_or(PORT),
            path: uri.path().trim_end_matches('/').to_owned(),
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}:{}{}", self.host, self.port, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_url_without_tls() {
        let of = |text: &str| text.parse::<Endpoint>().map(|found| found.to_string());
        assert_eq!(of("http://gpu1.lan"), Ok("http://gpu1.lan:4318".to_owned()));
        let path = of("http://127.0.0.1:9/otlp/");
        assert_eq!(path, Ok("http://127.0.0.1:9/otlp".to_owned()));
        let six: Endpoint = "http://[::1]:4318".parse().unwrap();
        assert_eq!(six.address(), ("::1", 4318));
        assert_eq!(six.host(), "[::1]:4318");
        assert_eq!(six.url("/v1/traces"), "http://[::1]:4318/v1/traces");
        assert_eq!(of("https://a"), Err(EndpointError::Tls));
        for text in [
            "",
            "a",
            "127.0.0.1:4318",
            "ftp://a",
            "http://",
            "http://a/?b",
        ] {
            assert_eq!(of(text), Err(EndpointError::NoUrl), "{text}");
        }
    }
}
