//! `/api/v1`: what the page and programs ask of a daemon. All of it can only be read.

use super::StatusHandle;
use super::insight::{PeerTotals, Point, RoundEntry};
use super::page::json;
use super::swarm::Swarm;
use super::why::{Facts, Question, Topic, why};
use crate::events::Recent;
use crate::goal::Target;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use futures::stream::{self, Stream, StreamExt};
use murmurate_protocol::SortedMap;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Pages that follow the events at a time.
const FOLLOWERS_MAX: usize = 16;

const ENTRIES_TOGETHER: usize = 64;

/// Time between two signs of life to a follower. The server closes connections without progress.
const KEEP_ALIVE: Duration = Duration::from_secs(2);

/// `/api/v1/history`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HistoryPage {
    /// Rounds, oldest first; old ones are thinned.
    pub points: Vec<Point>,
}

/// `/api/v1/contributions`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContributionsPage {
    /// The daemon that answers.
    pub me: String,
    /// The last rounds, oldest first.
    pub rounds: Vec<RoundEntry>,
    /// Totals by peer since the daemon started.
    pub totals: SortedMap<String, PeerTotals>,
}

pub(super) fn routes(status: &StatusHandle, recent: Recent) -> Router {
    let followers = Arc::new(Semaphore::new(FOLLOWERS_MAX));
    let events = move |headers: HeaderMap| async move { follow(&recent, followers, &headers) };
    let ready = |State(status): State<StatusHandle>| async move { ready_page(&status) };
    Router::new()
        .route("/api/v1/swarm", asked(goal, Swarm::new))
        .route("/api/v1/history", asked(since, history_page))
        .route("/api/v1/contributions", asked(since, contributions_page))
        .route("/api/v1/why", asked(question, |facts, q| why(facts, &q)))
        .route("/api/v1/events", get(events))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .with_state(status.clone())
}

/// A page that answers the question of a request, or names the error in that question.
fn asked<Q: 'static, P: Serialize + 'static>(
    question: fn(&Uri) -> Result<Q, String>,
    page: fn(&Facts<'_>, Q) -> P,
) -> MethodRouter<StatusHandle> {
    get(
        move |State(status): State<StatusHandle>, uri: Uri| async move {
            match question(&uri) {
                Ok(question) => json(serde_json::to_string(
                    &status.look(|facts| page(facts, question)),
                )),
                Err(wrong) => (StatusCode::BAD_REQUEST, format!("{wrong}\n")).into_response(),
            }
        },
    )
}

/// The keys and values after the question mark. No value needs an escape.
fn pairs(uri: &Uri) -> impl Iterator<Item = (&str, &str)> {
    let pairs = uri.query().unwrap_or("").split('&');
    pairs
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

fn number(key: &str, value: &str) -> Result<u64, String> {
    value
        .parse()
        .map_err(|_| format!("`{key}` is a round, a number from 0 on"))
}

/// The round after which others are asked for.
fn since(uri: &Uri) -> Result<Option<u64>, String> {
    let mut since = None;
    for (key, value) in pairs(uri) {
        match key {
            "since" => since = Some(number(key, value)?),
            other => return Err(format!("there is no key `{other}`; there is `since`")),
        }
    }
    Ok(since)
}

/// The goal that the run has in the eyes of the one who asks; without one, the daemon's own.
fn goal(uri: &Uri) -> Result<Target, String> {
    let mut goal = Target::default();
    for (key, value) in pairs(uri) {
        let number = || {
            let found = value.parse().ok().filter(|number: &f64| number.is_finite());
            found.ok_or_else(|| format!("`{key}` is a number"))
        };
        match key {
            "until_accuracy" => goal.accuracy = Some(number()?),
            "until_loss" => goal.loss = Some(number()?),
            other => {
                let keys = "until_accuracy and until_loss";
                return Err(format!("there is no key `{other}`; there are {keys}"));
            }
        }
    }
    Ok(goal)
}

fn question(uri: &Uri) -> Result<Question, String> {
    let mut question = Question::default();
    for (key, value) in pairs(uri) {
        match (key, value) {
            ("what", word) => {
                let wrong = || "`what` is round, contribution, slow or accuracy".to_owned();
                question.what = Topic::of_word(word).ok_or_else(wrong)?;
            }
            ("round", value) => question.round = Some(number(key, value)?),
            ("peer", value) if value.len() <= 64 => question.peer = Some(value.to_owned()),
            ("peer", _) => return Err("`peer` is the beginning of an id".to_owned()),
            (other, _) => {
                let keys = "what, round and peer";
                return Err(format!("there is no key `{other}`; there are {keys}"));
            }
        }
    }
    Ok(question)
}

fn history_page(facts: &Facts<'_>, since: Option<u64>) -> HistoryPage {
    let after = |point: &&Point| since.is_none_or(|since| point.round > since);
    let points = facts.insight.history.points().filter(after);
    HistoryPage {
        points: points.cloned().collect(),
    }
}

fn contributions_page(facts: &Facts<'_>, since: Option<u64>) -> ContributionsPage {
    let ledger = &facts.insight.ledger;
    let after = |entry: &&RoundEntry| since.is_none_or(|since| entry.round > since);
    ContributionsPage {
        me: facts.status.peer.clone(),
        rounds: ledger.rounds().filter(after).cloned().collect(),
        totals: ledger.totals().clone(),
    }
}

/// Ready: the daemon takes part in rounds, or has finished them.
fn ready_page(status: &StatusHandle) -> Response {
    let phase = status.look(|facts| facts.status.phase.clone());
    let ready = !matches!(phase.as_str(), "new" | "join" | "leaving" | "left");
    let code = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (code, format!("{phase}\n")).into_response()
}

/// Sends the events in memory after the one that the browser saw last, then each event as it comes.
fn follow(recent: &Recent, followers: Arc<Semaphore>, headers: &HeaderMap) -> Response {
    let Ok(place) = followers.try_acquire_owned() else {
        let text = "too many pages follow the events; close some\n";
        return (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    };
    let last = headers.get("last-event-id");
    let last = last.and_then(|id| id.to_str().ok()?.parse().ok());
    let newest = recent.newest();
    // A number from before the log was deleted is not waited for.
    let last = last.unwrap_or(0).min(*newest.borrow());
    let follower = Follower {
        recent: recent.clone(),
        newest,
        last,
        ready: VecDeque::new(),
        _place: place,
    };
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    Sse::new(entries(follower))
        .keep_alive(keep_alive)
        .into_response()
}

struct Follower {
    recent: Recent,
    newest: watch::Receiver<u64>,
    last: u64,
    ready: VecDeque<(u64, Arc<str>)>,
    _place: OwnedSemaphorePermit,
}

fn entries(follower: Follower) -> impl Stream<Item = Result<Event, Infallible>> {
    let stream = stream::unfold(follower, |mut it| async move {
        loop {
            if let Some((seq, line)) = it.ready.pop_front() {
                it.last = seq;
                let event = Event::default().id(seq.to_string()).data(line.as_ref());
                return Some((event, it));
            }
            it.newest.borrow_and_update();
            it.ready.extend(it.recent.after(it.last, ENTRIES_TOGETHER));
            if it.ready.is_empty() {
                it.newest.changed().await.ok()?;
            }
        }
    });
    stream.map(Ok)
}
