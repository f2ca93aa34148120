//! Which daemon is watched: by its directory, or by the address of its HTTP server.

use hyper::Uri;
use murmurate_node::api::{AskError, Connection, NotedError, noted_address};
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

const ANSWER_WAIT: Duration = Duration::from_secs(4);

/// A daemon to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The daemon of a directory. Its address may change when it starts again.
    Dir(PathBuf),
    /// The HTTP server at this name or address, with its port.
    At(String),
}

/// Why a text names no daemon.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// Another protocol than HTTP.
    #[error("{url}: a daemon answers over http; write http://ADDRESS:PORT/")]
    Protocol {
        /// The given text.
        url: String,
    },
    /// No address, no port, or a path.
    #[error("{url} is not the address of a daemon; write http://ADDRESS:PORT/ as it prints it")]
    Address {
        /// The given text.
        url: String,
    },
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let url = || text.to_owned();
        let wrong = || TargetError::Address { url: url() };
        match text.split_once("://") {
            Some(("http", _)) => {
                let uri: Uri = text.parse().map_err(|_| wrong())?;
                let authority = uri.authority().filter(|a| a.port().is_some());
                let plain = matches!(uri.path(), "" | "/") && uri.query().is_none();
                match authority.filter(|a| plain && !a.as_str().contains('@')) {
                    Some(authority) => Ok(Self::At(authority.to_string())),
                    None => Err(wrong()),
                }
            }
            Some(_) => Err(TargetError::Protocol { url: url() }),
            None if is_address(text) && !Path::new(text).exists() => Ok(Self::At(text.to_owned())),
            None => Ok(Self::Dir(PathBuf::from(text))),
        }
    }
}

/// A text has the form `NAME:PORT`.
fn is_address(text: &str) -> bool {
    let port = text.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    text.parse::<SocketAddr>().is_ok() || (matches!(port, Some(Ok(_))) && !text.contains('/'))
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dir(dir) => write!(f, "{}", dir.display()),
            Self::At(host) => write!(f, "http://{host}/"),
        }
    }
}

impl Target {
    pub(crate) async fn connect(&self) -> Result<Connection, AskError> {
        Connection::open(self.host()?, ANSWER_WAIT).await
    }

    /// The name or address with the port, as it is now.
    fn host(&self) -> Result<String, NotedError> {
        match self {
            Self::Dir(dir) => noted_address(dir).map(|address| address.to_string()),
            Self::At(host) => Ok(host.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Result<Target, TargetError> {
        text.parse()
    }

    #[test]
    fn directories_and_addresses_are_told_apart() {
        let at = |host: &str| Ok(Target::At(host.to_owned()));
        assert_eq!(target("node-0"), Ok(Target::Dir("node-0".into())));
        assert_eq!(target("a/b:1"), Ok(Target::Dir("a/b:1".into())));
        assert_eq!(target("127.0.0.1:46367"), at("127.0.0.1:46367"));
        assert_eq!(target("[::1]:80"), at("[::1]:80"));
        assert_eq!(target("gpu1.lan:9100"), at("gpu1.lan:9100"));
        assert_eq!(target("http://127.0.0.1:46367/"), at("127.0.0.1:46367"));
        assert_eq!(target("http://gpu1.lan:9100"), at("gpu1.lan:9100"));
    }

    #[test]
    fn a_foreign_url_is_refused_with_what_to_write() {
        for url in [
            "http://",
            "http://gpu1.lan",
            "http://gpu1.lan:9100/status",
            "http://gpu1.lan:9100/?x=1",
            "http://user@gpu1.lan:9100/",
            "http://gpu1.lan:99999/",
        ] {
            let line = target(url).unwrap_err().to_string();
            assert!(
                line.ends_with("write http://ADDRESS:PORT/ as it prints it"),
                "{line}"
            );
        }
        for url in ["https://gpu1.lan:9100/", "ftp://gpu1.lan:21/"] {
            let line = target(url).unwrap_err().to_string();
            assert!(line.contains("answers over http;"), "{line}");
        }
    }
}
