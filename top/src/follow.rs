//! Follows the events of a daemon: server-sent events, whose data are entries of its log.

use crate::client::{AskError, Connection};
use crate::target::Target;
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::Incoming;
use murmurate_node::events::Entry;

/// The longest line: the log has none longer than 64 KiB.
const LINE_BYTES_MAX: usize = 128 << 10;

/// A stream of events.
#[derive(Debug)]
pub(crate) struct Follower {
    /// It ends with the connection.
    _connection: Connection,
    body: Incoming,
    lines: Lines,
}

impl Follower {
    /// Asks a daemon for the events after number `last` that it still has, and for all to come.
    pub(crate) async fn open(target: &Target, last: u64) -> Result<Self, AskError> {
        let mut connection = Connection::open(target).await?;
        let response = connection.follow(last).await?;
        if response.status() != StatusCode::OK {
            return Err(AskError::Refused {
                host: connection.host().to_owned(),
                text: response.status().to_string(),
            });
        }
        Ok(Self {
            _connection: connection,
            body: response.into_body(),
            lines: Lines::default(),
        })
    }

    /// The next events; none at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Vec<Entry>> {
        let frame = self.body.frame().await?.ok()?;
        let Ok(bytes) = frame.into_data() else {
            return Some(Vec::new());
        };
        self.lines.take(&bytes)
    }
}

/// The beginning of a line whose end has not come yet.
#[derive(Debug, Default)]
struct Lines {
    open: Vec<u8>,
}

impl Lines {
    /// The entries of all lines that end in these bytes; none if a line is longer than any entry. What is no
    /// entry, such as the number of an event or a sign of life, is left out.
    fn take(&mut self, bytes: &[u8]) -> Option<Vec<Entry>> {
        let mut entries = Vec::new();
        for byte in bytes {
            match byte {
                b'\n' => {
                    let data = self.open.strip_prefix(b"data:");
                    entries.extend(data.and_then(|data| serde_json::from_slice(data).ok()));
                    self.open.clear();
                }
                byte => self.open.push(*byte),
            }
            if self.open.len() > LINE_BYTES_MAX {
                return None;
            }
        }
        Some(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_however_the_bytes_are_cut() {
        let entry = |seq: u64| {
            format!(
                "id: {seq}\ndata: {{\"v\":1,\"seq\":{seq},\"time\":1.5,\"daemon\":\"ab\",\"round\":7,\
                 \"kind\":\"saved\"}}\n\n"
            )
        };
        let text = format!("{}:\n\ndata: no entry\n\n{}", entry(1), entry(2));
        for size in [1, 7, 64, 4096] {
            let mut lines = Lines::default();
            let found = text
                .as_bytes()
                .chunks(size)
                .flat_map(|part| lines.take(part).unwrap());
            let numbers: Vec<u64> = found.map(|entry| entry.seq).collect();
            assert_eq!(numbers, [1, 2], "{size}");
        }
    }

    #[test]
    fn a_line_without_an_end_ends_the_stream() {
        let mut lines = Lines::default();
        assert_eq!(lines.take(&[b'x'; LINE_BYTES_MAX]), Some(Vec::new()));
        assert_eq!(lines.take(b"x"), None);
    }
}
