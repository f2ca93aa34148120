//! Asks a daemon again and again, follows its events (server-sent events, whose data are entries of its log), and
//! passes on its answers and events. If it does not answer, it is asked again.

use crate::picture::{Answers, POINTS_MAX};
use crate::target::Target;
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::Incoming;
use murmurate_node::api::{AskError, Connection, ContributionsPage, HistoryPage, Swarm};
use murmurate_node::events::Entry;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// News that may wait to be shown.
const NEWS_CAPACITY: usize = 64;

/// The longest line of events: the log has none longer than 64 KiB.
const LINE_BYTES_MAX: usize = 128 << 10;

const FOLLOW_PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) enum News {
    Answers(Box<Answers>),
    Entries(Vec<Entry>),
    Trouble(AskError),
}

/// A daemon that is asked. Dropping it ends that.
#[derive(Debug)]
pub(crate) struct Feed {
    news: mpsc::Receiver<News>,
    tasks: [JoinHandle<()>; 2],
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Feed {
    /// Begins to ask a daemon, with this pause between two questions.
    pub(crate) fn begin(target: &Target, interval: Duration) -> Self {
        let (sender, news) = mpsc::channel(NEWS_CAPACITY);
        let asking = tokio::spawn(ask(target.clone(), interval, sender.clone()));
        let following = tokio::spawn(follow(target.clone(), sender));
        Self {
            news,
            tasks: [asking, following],
        }
    }

    pub(crate) async fn next(&mut self) -> Option<News> {
        self.news.recv().await
    }
}

/// Memory of earlier questions, so that only newer rounds are asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    peer: String,
    /// The newest rounds that were read, oldest first. The last one is read again, because it may be evaluated
    /// later.
    newest: Option<(u64, u64)>,
    /// Rounds that were read. When they are many, the daemon has thinned its own, and all are read again.
    rounds: usize,
}

pub(crate) async fn read(
    connection: &mut Connection,
    known: &mut Known,
) -> Result<Answers, AskError> {
    let swarm: Swarm = connection.ask("/api/v1/swarm").await?;
    if swarm.daemon.peer.is_empty() {
        return Err(AskError::Foreign {
            host: connection.host().to_owned(),
            reason: "it names no daemon".to_owned(),
        });
    }
    let restarted = known
        .newest
        .is_some_and(|(_, newest)| swarm.daemon.round < newest);
    if known.peer != swarm.daemon.peer || restarted || known.rounds > POINTS_MAX {
        *known = Known {
            peer: swarm.daemon.peer.clone(),
            ..Known::default()
        };
    }
    let since = known
        .newest
        .map_or(String::new(), |(before, _)| format!("?since={before}"));
    let history: HistoryPage = connection.ask(&format!("/api/v1/history{since}")).await?;
    let page = format!("/api/v1/contributions{since}");
    let contributions: ContributionsPage = connection.ask(&page).await?;
    let mine = connection.ask("/api/v1/why?what=contribution").await?;
    let slow = connection.ask("/api/v1/why?what=slow").await?;
    if let [.., before, newest] = history.points.as_slice() {
        known.newest = Some((before.round, newest.round));
    }
    known.rounds += history.points.len().saturating_sub(1);
    Ok(Answers {
        swarm,
        history,
        contributions,
        mine,
        slow,
    })
}

async fn ask(target: Target, interval: Duration, news: mpsc::Sender<News>) {
    let mut known = Known::default();
    let mut open = None;
    loop {
        let told = match look(&target, &mut open, &mut known).await {
            Ok(answers) => News::Answers(Box::new(answers)),
            Err(error) => {
                open = None;
                News::Trouble(error)
            }
        };
        if news.send(told).await.is_err() {
            return;
        }
        sleep(interval).await;
    }
}

/// One read, over a new connection if there is none.
async fn look(
    target: &Target,
    open: &mut Option<Connection>,
    known: &mut Known,
) -> Result<Answers, AskError> {
    let connection = match open {
        Some(connection) => connection,
        None => open.insert(target.connect().await?),
    };
    read(connection, known).await
}

/// Follows the events. That the daemon does not answer is told by the questions.
async fn follow(target: Target, news: mpsc::Sender<News>) {
    let mut last = 0;
    loop {
        if let Ok(mut follower) = Follower::open(&target, last).await {
            while let Some(entries) = follower.next().await {
                last = entries.last().map_or(last, |entry| entry.seq);
                if !entries.is_empty() && news.send(News::Entries(entries)).await.is_err() {
                    return;
                }
            }
        }
        sleep(FOLLOW_PAUSE).await;
    }
}

/// A stream of events.
#[derive(Debug)]
pub(crate) struct Follower {
    body: Incoming,
    lines: Lines,
}

impl Follower {
    /// Asks a daemon for the events after number `last` that it still has, and for all to come.
    pub(crate) async fn open(target: &Target, last: u64) -> Result<Self, AskError> {
        let mut connection = target.connect().await?;
        let last = last.to_string();
        let head: [(&str, &[u8]); 2] = [
            ("accept", b"text/event-stream"),
            ("last-event-id", last.as_bytes()),
        ];
        let response = connection.send("GET", "/api/v1/events", &head, "").await?;
        if response.status() != StatusCode::OK {
            return Err(AskError::Refused {
                host: connection.host().to_owned(),
                text: response.status().to_string(),
            });
        }
        Ok(Self {
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
    /// The entries of all lines that end in these bytes; none if a line is longer than any entry. Other
    /// lines, such as the number of an event or a sign of life, are left out.
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
