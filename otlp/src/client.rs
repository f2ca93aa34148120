//! A small HTTP client: one request over one connection, without TLS. It blocks, because it runs on the
//! threads of the SDK, which have nothing else to do.

use crate::endpoint::Endpoint;
use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Time of the collector for one step of a request.
const STEP_WAIT: Duration = Duration::from_secs(5);

/// Bytes of a response's head. The body says nothing that is needed.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// Health of the collector: it answers, or why not.
#[derive(Debug, Default)]
pub(crate) struct Health(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Why the last request failed, if it did.
    failed: Option<String>,
    /// The operator was told last that requests fail.
    told: bool,
}

impl Health {
    fn note(&self, failed: Option<String>) {
        // Each change is complete before the lock is released.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).failed = failed;
    }

    /// A line when that has changed since the last one.
    pub(crate) fn news(&self) -> Option<String> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fails = state.failed.is_some();
        if std::mem::replace(&mut state.told, fails) == fails {
            return None;
        }
        Some(match &state.failed {
            Some(why) => {
                format!("the collector of `daemon.otlp` takes nothing: {why}; training goes on")
            }
            None => "the collector of `daemon.otlp` answers again".to_owned(),
        })
    }
}

/// Sends requests to one collector.
#[derive(Debug)]
pub(crate) struct Client {
    endpoint: Endpoint,
    health: Arc<Health>,
}

impl Client {
    pub(crate) const fn new(endpoint: Endpoint, health: Arc<Health>) -> Self {
        Self { endpoint, health }
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let mut failed = io::Error::from(io::ErrorKind::NotFound);
        for address in self.endpoint.address().to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, STEP_WAIT) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(STEP_WAIT))?;
                    stream.set_write_timeout(Some(STEP_WAIT))?;
                    return Ok(stream);
                }
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    fn send(&self, request: &Request<Bytes>) -> io::Result<u16> {
        let mut stream = self.connect()?;
        let (path, body) = (request.uri().path(), request.body());
        let mut head = format!(
            "{} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {}\r\n",
            request.method(),
            self.endpoint.host(),
            body.len()
        )
        .into_bytes();
        for (name, value) in request.headers() {
            let own = ["host", "connection", "content-length"].contains(&name.as_str());
            if !own {
                head.extend_from_slice(name.as_str().as_bytes());
                head.extend_from_slice(b": ");
                head.extend_from_slice(value.as_bytes());
                head.extend_from_slice(b"\r\n");
            }
        }
        head.extend_from_slice(b"\r\n");
        stream.write_all(&head)?;
        stream.write_all(body)?;
        stream.flush()?;
        status_of(&mut stream)
    }
}

fn status_of(stream: &mut impl Read) -> io::Result<u16> {
    let mut head = Vec::new();
    let mut part = [0; 512];
    while !head.contains(&b'\n') && head.len() < HEAD_BYTES_MAX {
        match stream.read(&mut part)? {
            0 => break,
            count => head.extend_from_slice(&part[..count]),
        }
    }
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_ascii_whitespace();
    let is_http = words.next().is_some_and(|word| word.starts_with("HTTP/1."));
    let status = words.next().and_then(|word| word.parse().ok());
    let foreign = || io::Error::new(io::ErrorKind::InvalidData, "what answers speaks no HTTP");
    status.filter(|_| is_http).ok_or_else(foreign)
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let endpoint = &self.endpoint;
        let status = self.send(&request).inspect_err(|error| {
            self.health.note(Some(format!("{endpoint}: {error}")));
        })?;
        let refused = (!(200..300).contains(&status))
            .then(|| format!("{endpoint}{} answers {status}", request.uri().path()));
        self.health.note(refused);
        Ok(Response::builder().status(status).body(Bytes::new())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_a_status_or_is_none() {
        let of = |bytes: &[u8]| status_of(&mut io::Cursor::new(bytes.to_vec()));
        assert_eq!(of(b"HTTP/1.1 200 OK\r\n\r\n").unwrap(), 200);
        assert_eq!(of(b"HTTP/1.0 503\r\nx: y\r\n\r\n").unwrap(), 503);
        let endless = vec![b'x'; 4 * HEAD_BYTES_MAX];
        for foreign in [&b""[..], b"\n", b"HTTP/2 200\r\n", b"200 OK\r\n", &endless] {
            assert!(of(foreign).is_err());
        }
    }

    #[test]
    fn a_change_is_told_once() {
        let health = Health::default();
        health.note(None);
        assert_eq!(health.news(), None, "all is well from the start");
        health.note(Some("refused".to_owned()));
        assert!(
            health
                .news()
                .is_some_and(|line| line.contains("takes nothing: refused"))
        );
        health.note(Some("refused".to_owned()));
        assert_eq!(health.news(), None);
        health.note(None);
        assert!(
            health
                .news()
                .is_some_and(|line| line.contains("answers again"))
        );
        assert_eq!(health.news(), None);
    }
}
