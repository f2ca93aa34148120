//! The near end: one transfer over one way.

use crate::cpu_time;
use crate::net::channel::Channel;
use crate::net::line::Line;
use crate::net::order::{Answer, Order};
use crate::net::pings::ping_during;
use crate::net::{BenchError, CHUNK, Figures, NearTask};
use bytes::Bytes;
use std::io;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

/// How long small messages are sent without a transfer.
const IDLE: Duration = Duration::from_millis(500);

/// Time allowed beyond the limit of a transfer: to connect, to send small messages alone, and for the answer.
pub(super) const GRACE: Duration = Duration::from_secs(30);

/// Performs one transfer.
///
/// # Errors
/// If the far end cannot be reached over this way, or the connection fails.
pub async fn send(task: &NearTask) -> Result<Figures, BenchError> {
    let wait = Duration::from_secs(task.limit_s) + GRACE;
    timeout(wait, transfer(task))
        .await
        .map_err(|_| BenchError::NoAnswer {
            seconds: GRACE.as_secs(),
        })?
}

async fn transfer(task: &NearTask) -> Result<Figures, BenchError> {
    let sending = BenchError::failed("the transfer");
    let mut line = Line::dial(task).await?;
    let small = &mut line.small;
    Order::Echo
        .send(&mut small.sending)
        .await
        .map_err(&sending)?;
    let ((), idle) = ping_during(small, sleep(IDLE)).await.map_err(&sending)?;
    let work = spread(&mut line.bulk, task);
    let (outcome, loaded) = ping_during(small, work).await.map_err(&sending)?;
    let (answer, took, cpu) = outcome.map_err(&sending)?;
    Ok(Figures {
        bytes: answer.bytes,
        seconds: took.as_secs_f64(),
        connect_s: line.connect.as_secs_f64(),
        near_cpu_s: cpu.as_secs_f64(),
        far_cpu_s: answer.cpu_s,
        rtt_idle_us: micros(&idle),
        rtt_loaded_us: micros(&loaded),
        path: line.path(),
    })
}

/// Sends the bytes in equal parts over the channels and waits for the answers. Returns the duration
/// and the CPU time used.
async fn spread(
    channels: &mut [Channel],
    task: &NearTask,
) -> io::Result<(Answer, Duration, Duration)> {
    let (start, cpu) = (Instant::now(), cpu_time());
    let count = channels.len().max(1) as u64;
    let parts = channels.iter_mut().zip(0u64..).map(|(channel, index)| {
        let odd = u64::from(index < task.bytes % count);
        bulk(channel, task.bytes / count + odd, task.limit_s)
    });
    let answers = futures::future::try_join_all(parts).await?;
    let all = Answer {
        bytes: answers.iter().map(|answer| answer.bytes).sum(),
        // Each answer has the CPU time of the far end's whole process.
        cpu_s: answers
            .iter()
            .fold(0.0, |most, answer| answer.cpu_s.max(most)),
    };
    Ok((all, start.elapsed(), cpu_time().saturating_sub(cpu)))
}

/// Sends bytes over one channel and waits for the answer.
async fn bulk(channel: &mut Channel, bytes: u64, limit_s: u64) -> io::Result<Answer> {
    let Channel { sending, receiving } = channel;
    let chunk = Bytes::from(vec![7; CHUNK]);
    let order = Order::Bulk {
        bytes,
        limit: Duration::from_secs(limit_s),
    };
    let pushing = async {
        order.send(sending).await?;
        let mut left = bytes;
        while left > 0 {
            let length = left.min(CHUNK as u64);
            sending.write(chunk.slice(..length as usize)).await?;
            left -= length;
        }
        sending.flush().await
    };
    let pushed = async {
        if let Err(error) = pushing.await {
            // At the time limit the far end stops the stream and then answers. If it does not
            // answer, reading fails too.
            tracing::debug!(%error, "the far end takes no more");
        }
        std::future::pending::<()>().await
    };
    tokio::select! {
        biased;
        answer = Answer::receive(receiving) => answer,
        () = pushed => Err(io::ErrorKind::Interrupted.into()),
    }
}

fn micros(times: &[Duration]) -> Vec<u32> {
    let micros = |time: &Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
    times.iter().map(micros).collect()
}
