//! Asks a daemon over HTTP, at the address that it has noted in its directory. Every wait has a deadline, and every
//! answer a bound.

use axum::body::{Body, to_bytes};
use axum::http::header::HOST;
use axum::http::{Request, Response, StatusCode};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use std::fs;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The most bytes of an answer: 4,096 points take about 2 MB.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// The most characters of a refusal that are shown.
const REFUSAL_MAX: usize = 200;

/// Why a daemon did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// No daemon has noted an address.
    #[error("{0}")]
    Noted(String),
    /// There is no connection.
    #[error("no daemon answers at {host} ({reason}): start it, or give its directory")]
    Unreachable {
        /// Where it was asked.
        host: String,
        /// The system's error.
        reason: String,
    },
    /// The process answers nothing.
    #[error(
        "the daemon at {0} does not answer: its process is stopped, or its machine is overloaded"
    )]
    Silent(String),
    /// It refused the question.
    #[error("the daemon at {host} refuses: {text}")]
    Refused {
        /// Where it was asked.
        host: String,
        /// Its reason.
        text: String,
    },
    /// Another server than a daemon answers.
    #[error("{host} answers, but is no Murmurate daemon, or one of another version ({reason})")]
    Foreign {
        /// Where it was asked.
        host: String,
        /// The flaw of the answer.
        reason: String,
    },
}

impl From<NotedError> for AskError {
    fn from(error: NotedError) -> Self {
        Self::Noted(error.to_string())
    }
}

/// A connection to a daemon. It ends with its last answer, or when that is no longer read.
#[derive(Debug)]
pub struct Connection {
    host: String,
    requests: SendRequest<Body>,
    wait: Duration,
}

impl Connection {
    /// Connects to the server at a name or address with its port. Each step from now on may take as long as `wait`.
    ///
    /// # Errors
    /// If there is no connection in time.
    pub async fn open(host: String, wait: Duration) -> Result<Self, AskError> {
        let unreachable = |reason: String| AskError::Unreachable {
            host: host.clone(),
            reason,
        };
        let stream = in_time(&host, wait, TcpStream::connect(&host)).await?;
        let stream = stream.map_err(|error| unreachable(error.to_string()))?;
        let shaken = in_time(&host, wait, http1::handshake(TokioIo::new(stream))).await?;
        let (requests, connection) = shaken.map_err(|error| unreachable(error.to_string()))?;
        tokio::spawn(async move {
            // An error also ends the request, which tells it.
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a daemon's answer ended early");
            }
        });
        Ok(Self {
            host,
            requests,
            wait,
        })
    }

    /// Name or address that it leads to, with the port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Asks for a page of JSON.
    ///
    /// # Errors
    /// If the daemon does not answer, refuses, or what answers is no daemon.
    pub async fn ask<T: DeserializeOwned>(&mut self, path: &str) -> Result<T, AskError> {
        let (status, body) = self.page("GET", path, &[], "").await?;
        match status {
            StatusCode::OK => serde_json::from_slice(&body).map_err(|error| self.foreign(&error)),
            StatusCode::NOT_FOUND => Err(self.foreign(&format!("it has no {path}"))),
            status => {
                let text = String::from_utf8_lossy(&body);
                let text: String = text.trim().chars().take(REFUSAL_MAX).collect();
                Err(AskError::Refused {
                    host: self.host.clone(),
                    text: if text.is_empty() {
                        status.to_string()
                    } else {
                        text
                    },
                })
            }
        }
    }

    /// Sends a request with these fields in its head, and reads the whole answer.
    ///
    /// # Errors
    /// If the daemon does not answer in time, or what answers is no HTTP.
    pub async fn page(
        &mut self,
        method: &str,
        path: &str,
        head: &[(&str, &[u8])],
        body: &str,
    ) -> Result<(StatusCode, Bytes), AskError> {
        let response = self.send(method, path, head, body).await?;
        let status = response.status();
        let body = to_bytes(Body::new(response.into_body()), ANSWER_BYTES_MAX);
        let body = in_time(&self.host, self.wait, body).await?;
        Ok((status, body.map_err(|error| self.foreign(&error))?))
    }

    /// As [`Connection::page`], where the answer may have no end.
    ///
    /// # Errors
    /// If the answer does not begin in time, or is no HTTP.
    pub async fn send(
        &mut self,
        method: &str,
        path: &str,
        head: &[(&str, &[u8])],
        body: &str,
    ) -> Result<Response<Incoming>, AskError> {
        let request = Request::builder().method(method).uri(path);
        let mut request = request.header(HOST, self.host.as_str());
        for (name, value) in head {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_owned()));
        let request = request.map_err(|error| self.foreign(&error))?;
        let response = self.requests.send_request(request);
        let response = in_time(&self.host, self.wait, response).await?;
        response.map_err(|error| {
            if error.is_parse() {
                return self.foreign(&error);
            }
            AskError::Unreachable {
                host: self.host.clone(),
                reason: error.to_string(),
            }
        })
    }

    fn foreign(&self, reason: &impl ToString) -> AskError {
        AskError::Foreign {
            host: self.host.clone(),
            reason: reason.to_string(),
        }
    }
}

async fn in_time<T>(
    host: &str,
    wait: Duration,
    step: impl Future<Output = T>,
) -> Result<T, AskError> {
    let silent = |_| AskError::Silent(host.to_owned());
    timeout(wait, step).await.map_err(silent)
}

pub(crate) const ADDRESS_FILE: &str = "http.addr";

/// Why there is no address.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotedError {
    /// No daemon has noted one.
    #[error("no daemon runs in {}: start it, or give its directory", .0.display())]
    Missing(PathBuf),
    /// The file holds something else.
    #[error("{} holds no address: restart the daemon", .0.display())]
    Damaged(PathBuf),
}

/// The address of the daemon of a directory, for use on this machine.
///
/// # Errors
/// If no daemon has noted one. A daemon that has ended may have left its last one.
pub fn noted_address(dir: &Path) -> Result<SocketAddr, NotedError> {
    let file = dir.join(ADDRESS_FILE);
    let Ok(text) = fs::read_to_string(&file) else {
        let dir = dir.to_owned();
        return Err(NotedError::Missing(dir));
    };
    match text.trim().parse() {
        Ok(address) => Ok(own(address)),
        Err(_) => Err(NotedError::Damaged(file)),
    }
}

/// A daemon that listens on all addresses also listens on loopback.
fn own(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_its_absence_explained() {
        let dir = tempfile::tempdir().unwrap();
        let line = noted_address(dir.path()).unwrap_err().to_string();
        assert!(line.starts_with("no daemon runs in "), "{line}");
        let file = dir.path().join(ADDRESS_FILE);
        fs::write(&file, "0.0.0.0:9100\n").unwrap();
        let address = noted_address(dir.path()).unwrap();
        assert_eq!(address.to_string(), "127.0.0.1:9100");
        fs::write(&file, "nowhere\n").unwrap();
        let line = noted_address(dir.path()).unwrap_err().to_string();
        assert!(line.ends_with("http.addr holds no address: restart the daemon"));
    }
}
