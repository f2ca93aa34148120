//! Small messages to the far end and back, at regular intervals, during other work.

use crate::net::channel::{Channel, Receiving};
use bytes::Bytes;
use std::future::Future;
use std::io;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval};

/// Size of a message in bytes, about that of a vote.
pub(super) const PING_BYTES: usize = 64;

/// Time between two messages, whether or not the earlier ones have returned.
const PING_EVERY: Duration = Duration::from_millis(10);

/// Sends messages until `work` is done, then waits for the last answer.
pub(super) async fn ping_during<T>(
    channel: &mut Channel,
    work: impl Future<Output = T>,
) -> io::Result<(T, Vec<Duration>)> {
    let (done, mut over) = oneshot::channel::<()>();
    let (left, mut under_way) = mpsc::unbounded_channel();
    let Channel { sending, receiving } = channel;
    let work = async {
        let result = work.await;
        drop(done);
        io::Result::Ok(result)
    };
    let asking = async move {
        let message = Bytes::from_static(&[7; PING_BYTES]);
        let mut ticks = interval(PING_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                _ = &mut over => return Ok(()),
                _ = ticks.tick() => {}
            }
            // The receiver is dropped if the answers failed, which ends the whole transfer.
            let _ = left.send(Instant::now());
            sending.write(message.clone()).await?;
            sending.flush().await?;
        }
    };
    let hearing = async {
        let mut took = Vec::new();
        while let Some(at) = under_way.recv().await {
            answer(receiving).await?;
            took.push(at.elapsed());
        }
        Ok(took)
    };
    let (result, (), took) = tokio::try_join!(work, asking, hearing)?;
    Ok((result, took))
}

async fn answer(receiving: &mut Receiving) -> io::Result<()> {
    receiving.exact(&mut [0; PING_BYTES]).await
}
