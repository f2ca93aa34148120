//! Reads a daemon's HTTP interface.

use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Time between two checks of a condition.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long an answer may take.
const ANSWER_WAIT: Duration = Duration::from_secs(10);

/// The body of `http://ADDRESS/PATH`. The answer must have status 200.
pub fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(ANSWER_WAIT)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    body.to_owned()
}

/// The status of the daemon at `address`.
pub fn status(address: &str) -> Value {
    serde_json::from_str(&get(address, "/status")).unwrap()
}

/// Waits until `condition` returns a value.
pub fn wait_until<T>(
    what: &str,
    deadline: Duration,
    mut condition: impl FnMut() -> Option<T>,
) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(
            since.elapsed() < deadline,
            "{what}: not within {deadline:?}"
        );
        std::thread::sleep(LOOK_EVERY);
    }
}
