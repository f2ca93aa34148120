//! Asks a daemon over HTTP. Every wait has a deadline, and every answer a bound.

use crate::target::Target;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{ACCEPT, HOST};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use murmurate_node::api::NotedError;
use serde::de::DeserializeOwned;
use std::future::Future;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long a connection or an answer may take.
const ANSWER_WAIT: Duration = Duration::from_secs(4);

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
        "the daemon at {host} does not answer: its process is stopped, or its machine is overloaded"
    )]
    Silent {
        /// Where it was asked.
        host: String,
    },
    /// It refused the question.
    #[error("the daemon at {host} refuses: {text}")]
    Refused {
        /// Where it was asked.
        host: String,
        /// Its reason.
        text: String,
    },
    /// What answers is no daemon.
    #[error("{host} answers, but is no Murmurate daemon, or one of another version ({reason})")]
    Foreign {
        /// Where it was asked.
        host: String,
        /// What is wrong with the answer.
        reason: String,
    },
}

impl From<NotedError> for AskError {
    fn from(error: NotedError) -> Self {
        Self::Noted(error.to_string())
    }
}

/// A connection to a daemon.
#[derive(Debug)]
pub(crate) struct Connection {
    host: String,
    requests: SendRequest<Empty<Bytes>>,
    driver: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    /// Connects to a daemon.
    pub(crate) async fn open(target: &Target) -> Result<Self, AskError> {
        let host = target.host()?;
        let unreachable = |reason: String| AskError::Unreachable {
            host: host.clone(),
            reason,
        };
        let stream = in_time(&host, TcpStream::connect(&host)).await?;
        let stream = stream.map_err(|error| unreachable(error.to_string()))?;
        let shaken = in_time(&host, http1::handshake(TokioIo::new(stream))).await?;
        let (requests, connection) = shaken.map_err(|error| unreachable(error.to_string()))?;
        let driver = tokio::spawn(async move {
            // An error also ends the request, which tells it.
            let _ = connection.await;
        });
        Ok(Self {
            host,
            requests,
            driver,
        })
    }

    /// Where it leads.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Asks for a page of JSON.
    pub(crate) async fn ask<T: DeserializeOwned>(&mut self, path: &str) -> Result<T, AskError> {
        let host = self.host.clone();
        let response = self.send(path, None).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect();
        let body = in_time(&host, body).await?;
        let foreign = |reason: String| AskError::Foreign {
            host: host.clone(),
            reason,
        };
        let body = body.map_err(|error| foreign(error.to_string()))?.to_bytes();
        match status {
            StatusCode::OK => {
                serde_json::from_slice(&body).map_err(|error| foreign(error.to_string()))
            }
            StatusCode::NOT_FOUND => Err(foreign(format!("it has no {path}"))),
            status => {
                let text = String::from_utf8_lossy(&body);
                let text: String = text.trim().chars().take(REFUSAL_MAX).collect();
                let text = if text.is_empty() {
                    status.to_string()
                } else {
                    text
                };
                Err(AskError::Refused { host, text })
            }
        }
    }

    /// Asks for events after number `last`. The answer has no end.
    pub(crate) async fn follow(&mut self, last: u64) -> Result<Response<Incoming>, AskError> {
        self.send("/api/v1/events", Some(last)).await
    }

    async fn send(
        &mut self,
        path: &str,
        last_event: Option<u64>,
    ) -> Result<Response<Incoming>, AskError> {
        let mut request = Request::get(path).header(HOST, self.host.as_str());
        if let Some(last) = last_event {
            let last = last.to_string();
            request = request.header(ACCEPT, "text/event-stream");
            request = request.header("Last-Event-ID", last);
        }
        let foreign = |reason: String| AskError::Foreign {
            host: self.host.clone(),
            reason,
        };
        let request = request.body(Empty::new());
        let request = request.map_err(|error| foreign(error.to_string()))?;
        let response = in_time(&self.host, self.requests.send_request(request)).await?;
        response.map_err(|error| match error.is_parse() {
            true => foreign(error.to_string()),
            false => AskError::Unreachable {
                host: self.host.clone(),
                reason: error.to_string(),
            },
        })
    }
}

async fn in_time<T>(host: &str, wait: impl Future<Output = T>) -> Result<T, AskError> {
    timeout(ANSWER_WAIT, wait)
        .await
        .map_err(|_| AskError::Silent {
            host: host.to_owned(),
        })
}
