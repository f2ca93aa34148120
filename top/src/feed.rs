//! Asks a daemon again and again, and passes on what it answers. If it does not answer, it is asked again.

use crate::client::{AskError, Connection};
use crate::follow::Follower;
use crate::picture::{Answers, POINTS_MAX};
use crate::target::Target;
use murmurate_node::api::{ContributionsPage, HistoryPage, Swarm};
use murmurate_node::events::Entry;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// News that may wait to be shown.
const NEWS_CAPACITY: usize = 64;

/// Pause before events are followed again.
const FOLLOW_PAUSE: Duration = Duration::from_secs(1);

/// What a daemon said.
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

    /// What the daemon says next.
    pub(crate) async fn next(&mut self) -> Option<News> {
        self.news.recv().await
    }
}

/// What was asked for already, so that only newer rounds are asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    peer: String,
    /// The newest rounds that were read, oldest first. The last one is read again, because it may be evaluated
    /// later.
    newest: Option<(u64, u64)>,
    /// Rounds that were read. When they are many, the daemon has thinned its own, and all are read again.
    rounds: usize,
}

/// Reads all pages of a daemon.
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
        None => open.insert(Connection::open(target).await?),
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

/// The Unix time, seconds.
pub(crate) fn unix_s() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs_f64()
}
