//! Accepts the streams that a remote opens on a bulk connection.

use crate::bulk::remote::Remote;
use crate::bulk::serve::serve;
use crate::bulk::{Core, Served};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// How long a superseded connection may be idle before it is closed. The remote needs less time to
/// notice the connection that replaced it.
const IDLE_WAIT: Duration = Duration::from_secs(30);

/// Serves streams until the connection ends. Beyond the remote's limit of streams, a new stream
/// waits in QUIC until an earlier one ends; none is lost.
pub(crate) async fn accept_streams(core: Arc<Core>, remote: Remote, connection: Served) {
    let mut served = JoinSet::new();
    loop {
        // The semaphore is never closed.
        let Ok(permit) = Arc::clone(&remote.streams).acquire_owned().await else {
            break;
        };
        let opened = loop {
            tokio::select! {
                opened = connection.accept() => break opened,
                Some((from, stream)) = connection.accept_told() => {
                    core.transport.told(&from, stream);
                }
                Some(ended) = served.join_next(), if !served.is_empty() => report(ended),
                () = sleep(IDLE_WAIT), if served.is_empty() => {
                    if !core.transport.keeps(&connection) {
                        connection.close();
                        break None;
                    }
                }
            }
        };
        let Some(pipe) = opened else {
            break;
        };
        let (core, remote) = (Arc::clone(&core), remote.clone());
        served.spawn(async move {
            serve(&core, &remote, pipe).await;
            drop(permit);
        });
    }
    // Streams whose bytes have all arrived still store them.
    while let Some(ended) = served.join_next().await {
        report(ended);
    }
}

/// Reports a stream's task that panicked, which is a bug.
fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a task of a bulk connection panicked (please report this)");
    }
}
