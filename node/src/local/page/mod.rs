//! One page for all daemons of a local swarm. This process serves it, so its address stays when daemons
//! are killed and start again. It asks the living daemons for its content, and changes nothing.

mod proxy;

use super::member::{Member, State};
use crate::api::{ApiError, ApiServer, page_of_local};
use crate::goal::Target;
use axum::Router;
use axum::extract::{Path, RawQuery};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Serialize;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Any free port of this machine.
const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

#[derive(Debug)]
pub(super) struct SwarmPage {
    shown: Shown,
    server: ApiServer,
}

/// `/api/v1/local`: the daemons as the process that started them sees them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Local {
    daemons: Vec<LocalDaemon>,
    /// The accuracy that ends the run.
    until_accuracy: Option<f64>,
    /// The loss that ends the run, in nats.
    until_loss: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct LocalDaemon {
    node: usize,
    /// `waiting`, `starting`, `running`, `stopped`, `killed`, `finished`, `interrupted` or
    /// `gone`.
    state: &'static str,
    /// Its peer's id, once it is known.
    peer: Option<String>,
    /// How often it was started again.
    restarts: u32,
    #[serde(skip)]
    http: Option<SocketAddr>,
}

/// What the server shares with the process that watches the daemons.
#[derive(Clone, Debug, Default)]
struct Shown(Arc<Mutex<Local>>);

impl Shown {
    fn lock(&self) -> MutexGuard<'_, Local> {
        // What is shown is replaced as a whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn address(&self, node: usize) -> Option<SocketAddr> {
        let local = self.lock();
        local
            .daemons
            .iter()
            .find(|daemon| daemon.node == node)?
            .http
    }
}

impl SwarmPage {
    /// Serves the page of a swarm that ends at `target`.
    ///
    /// # Errors
    /// If no port is free.
    pub(super) async fn start(target: Target) -> Result<Self, ApiError> {
        let shown = Shown::default();
        *shown.lock() = Local {
            daemons: Vec::new(),
            until_accuracy: target.accuracy,
            until_loss: target.loss,
        };
        let server = ApiServer::listen(ANY, Vec::new(), routes(&shown)).await?;
        Ok(Self { shown, server })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/", self.server.address())
    }

    pub(super) fn show(&self, members: &[Member]) {
        self.shown.lock().daemons = members.iter().map(LocalDaemon::of).collect();
    }
}

impl LocalDaemon {
    fn of(member: &Member) -> Self {
        let http = member.http.as_ref().and_then(|http| http.parse().ok());
        let ended = member.has_ended();
        let state = match member.state {
            State::Waiting => "waiting",
            State::Running if http.is_none() => "starting",
            State::Running => "running",
            State::Stopped => "stopped",
            State::Killed | State::Away(_) => "killed",
            State::Finished => "finished",
            State::Interrupted => "interrupted",
            State::Gone => "gone",
        };
        Self {
            node: member.plan.index,
            state,
            peer: member.peer.clone(),
            restarts: member.life,
            http: http.filter(|_| state == "running" && !ended),
        }
    }
}

fn routes(shown: &Shown) -> Router {
    let (list, of_one) = (shown.clone(), shown.clone());
    page_of_local()
        .route("/api/v1/local", get(move || async move { json(&list) }))
        .route(
            "/daemons/{node}/{*path}",
            get(
                move |Path((node, path)): Path<(usize, String)>,
                      RawQuery(query): RawQuery,
                      headers: HeaderMap| async move {
                    match of_one.address(node) {
                        Some(address) => {
                            proxy::ask(address, &path, query.as_deref(), &headers).await
                        }
                        None => away(node),
                    }
                },
            ),
        )
        .fallback(|| async { (StatusCode::NOT_FOUND, "see / and /api/v1/local\n") })
}

fn json(shown: &Shown) -> Response {
    let local = shown.lock().clone();
    match serde_json::to_string(&local) {
        Ok(text) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

fn away(node: usize) -> Response {
    let text = format!("daemon {node} does not run\n");
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}

/// The program that opens a page in the user's browser.
const OPENER: &str = if cfg!(target_os = "macos") {
    "open"
} else {
    "xdg-open"
};

/// Opens a page. The browser is not waited for.
pub(in crate::local) fn open(url: &str) -> io::Result<()> {
    let mut command = Command::new(OPENER);
    command.arg(url);
    let command = command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(Stdio::null()).spawn().map(drop)
}

#[cfg(test)]
mod tests;
