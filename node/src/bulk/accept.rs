//! The answering side of a bulk connection: takes the streams that its remote opens.

use crate::bulk::remote::Remote;
use crate::bulk::serve::serve;
use crate::bulk::{Core, Pipe};
use murmurate_net::quic::{BulkConnection, CloseCode};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// How long a connection that is not kept may be idle. Longer than its remote may take to learn of the one
/// that replaced it.
const IDLE_WAIT: Duration = Duration::from_secs(30);

/// Answers streams until the connection ends. A stream beyond the remote's bound is not taken before another
/// one ended: it waits in QUIC's own bounds, and none is lost.
pub(crate) async fn accept_streams(core: Arc<Core>, remote: Remote, connection: BulkConnection) {
    let mut served = JoinSet::new();
    loop {
        // The semaphore is never closed.
        let Ok(permit) = Arc::clone(&remote.streams).acquire_owned().await else {
            break;
        };
        let opened = loop {
            tokio::select! {
                opened = connection.accept_bi() => break opened.ok(),
                // The protocol has no unidirectional streams: dropping the stream refuses it.
                Ok(_unwanted) = connection.accept_uni() => {}
                Some(ended) = served.join_next(), if !served.is_empty() => report(ended),
                () = sleep(IDLE_WAIT), if served.is_empty() => {
                    if !core.transport.keeps(&connection) {
                        connection.close(CloseCode::Done);
                        break None;
                    }
                }
            }
        };
        let Some(halves) = opened else {
            break;
        };
        let (core, remote) = (Arc::clone(&core), remote.clone());
        served.spawn(async move {
            serve(&core, &remote, Pipe::of_quic(halves)).await;
            drop(permit);
        });
    }
    // Those that have all their bytes still store them.
    while let Some(ended) = served.join_next().await {
        report(ended);
    }
}

/// A task that did not return has a bug.
fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a task of a bulk connection panicked (please report this)");
    }
}
