//! What the daemon shows of itself: the HTTP server and the event log.

use crate::api::{ApiServer, Clock, Served, TOKEN_FILE, Token};
use crate::config::Config;
use crate::daemon::DaemonError;
use crate::daemon::clock::SteadyClock;
use crate::daemon::setup::Setup;
use crate::events::{EventLog, Kind, Recent};
use crate::net::Net;
use crate::store::random_bytes;

/// Opens the event log. A daemon whose log cannot be written runs without a file.
pub(super) fn event_log(
    config: &Config,
    setup: &Setup,
    clock: SteadyClock,
    ephemeral: bool,
) -> EventLog {
    let me = setup.peer_config.me.to_hex();
    let opened = match ephemeral {
        true => Ok(EventLog::in_memory(&me)),
        false => EventLog::open(&config.daemon.dir, &me),
    };
    let mut log = opened.unwrap_or_else(|error| {
        tracing::warn!(%error, "the event log cannot be opened");
        EventLog::in_memory(&me)
    });
    let started = Kind::Started {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        run: config.run.name.clone(),
        name: config.daemon.name.as_ref().map(ToString::to_string),
    };
    log.add(clock.now(), 0, started);
    log
}

/// Starts the HTTP server, and notes in the directory where it is and what changes need.
pub(super) async fn serve(
    config: &Config,
    setup: &Setup,
    net: &Net,
    recent: Recent,
) -> Result<ApiServer, DaemonError> {
    let token = Token::new(random_bytes());
    let served = Served {
        status: setup.status.clone(),
        recent,
        rate: net.max_rate(),
        token: token.clone(),
        names: config.daemon.http_names.clone(),
    };
    let api = ApiServer::start(config.daemon.http, served).await?;
    setup.store.note_secret(TOKEN_FILE, &token.text())?;
    setup.store.note_http(api.address())?;
    Ok(api)
}
