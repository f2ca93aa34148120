//! One push: it sends the header and the bytes, and reads the acknowledgement.

use crate::bulk::remote::Remote;
use crate::bulk::wire::{ACK_REFUSED, ACK_TAKEN, Request, finish, write_body, write_header};
use crate::bulk::{Core, Pipe, PipeReader, Way};
use bytes::Bytes;
use murmurate_protocol::{PushOutcome, SliceId, SliceMeta};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// How long a receiver that stopped reading may take to send its reason.
const LAST_WORD_WAIT: Duration = Duration::from_secs(1);

/// Smaller slices measure the round-trip time rather than the rate.
const RATED_BYTES_MIN: u64 = 64 * 1024;

/// Urgency of acknowledgements, requests and slices that a round waits for: higher than every push.
pub(crate) const ANSWER: i32 = 1;

/// Urgency of states: lower than every push.
pub(crate) const BACKGROUND: i32 = i32::MIN;

/// Bits of the urgency that order pushes of the same priority.
const TURN_BITS: u32 = 22;

/// The urgency of a push's stream. Lower priorities go first. Within one priority, the earlier push
/// is sent completely before the next, so that its receiver can continue early.
pub(crate) fn urgency(priority: u8, turn: u64) -> i32 {
    let turn = (turn & ((1 << TURN_BITS) - 1)) as i32;
    -((i32::from(priority) << TURN_BITS) | turn)
}

/// A requested push.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PushJob {
    /// The slice to push.
    pub(crate) slice: SliceId,
    /// The slice's header.
    pub(crate) meta: SliceMeta,
    /// Lower values go first.
    pub(crate) priority: u8,
    /// When to give up.
    pub(crate) deadline: Instant,
}

/// Runs one push until it completes, its deadline passes, or it is cancelled.
pub(crate) async fn push(
    core: &Core,
    remote: &Remote,
    job: PushJob,
    urgency: i32,
    cancelled: CancellationToken,
) -> PushOutcome {
    let since = Instant::now();
    // Until the last byte is handed to the transport, the receiver cannot have the slice.
    let all_sent = AtomicBool::new(false);
    let ended = tokio::select! {
        ended = transfer(core, remote, job, urgency, &all_sent) => ended,
        () = tokio::time::sleep_until(job.deadline) => None,
        () = cancelled.cancelled() => None,
    };
    let outcome = match ended {
        Some(outcome) => outcome,
        None if all_sent.load(Ordering::Relaxed) => PushOutcome::Unknown,
        None => PushOutcome::Lost,
    };
    let took_ms = since.elapsed().as_millis();
    tracing::debug!(shard = job.slice.shard, took_ms, ?outcome, "pushed");
    outcome
}

async fn transfer(
    core: &Core,
    remote: &Remote,
    job: PushJob,
    urgency: i32,
    all_sent: &AtomicBool,
) -> Option<PushOutcome> {
    let PushJob { slice, meta, .. } = job;
    let to = remote.peer;
    let Some((_, bytes)) = core
        .store
        .for_peer(to, &slice)
        .filter(|(_, b)| b.len() as u64 == meta.bytes)
    else {
        // The exchange was decided, and the slice released, while the push waited for its turn.
        tracing::debug!("push dropped: the slice was released while it waited");
        return Some(PushOutcome::Lost);
    };
    let pipe = core.transport.open(to).await.ok()?;
    let way = pipe.way();
    let sent = send(core, remote, job, (pipe, urgency), &bytes, all_sent).await;
    if sent.is_some() || way != Way::Tls {
        return sent;
    }
    // The connection over TCP broke. QUIC is still there, and a slice that arrived is not taken
    // twice.
    let pipe = core.transport.open(to).await.ok()?;
    send(core, remote, job, (pipe, urgency), &bytes, all_sent).await
}

/// Sends a slice on an open stream and waits for the answer.
async fn send(
    core: &Core,
    remote: &Remote,
    job: PushJob,
    (pipe, urgency): (Pipe, i32),
    bytes: &Bytes,
    all_sent: &AtomicBool,
) -> Option<PushOutcome> {
    let PushJob { slice, meta, .. } = job;
    let (to, way) = (remote.peer, pipe.way());
    let Pipe {
        mut write,
        mut read,
    } = pipe;
    write.set_urgency(urgency);
    let began = Instant::now();
    let outcome = {
        let limits = &core.limits;
        let sending = async {
            let header = Request::Push { slice, meta };
            write_header(&mut write, &header, limits.header_wait).await?;
            let left = |n| remote.tally.bulk_out(n);
            // The push has its own deadline, and more urgent ones may delay it.
            let wait = Duration::MAX;
            write_body(&mut write, bytes, wait, &remote.throttle, left).await?;
            all_sent.store(true, Ordering::Relaxed);
            finish(&mut write, limits.piece_wait).await
        };
        let answer = acknowledgement(&mut read);
        tokio::pin!(sending, answer);
        tokio::select! {
            outcome = &mut answer => outcome,
            sent = &mut sending => match sent {
                Ok(()) => answer.await,
                Err(_) => timeout(LAST_WORD_WAIT, answer).await.ok().flatten(),
            },
        }
    };
    if outcome == Some(PushOutcome::Delivered) {
        // Without this, dropping the writer would discard the bytes that are not yet sent.
        write.release();
        let took = remote.delivered(began, Instant::now());
        if meta.bytes >= RATED_BYTES_MIN {
            core.measured_push(to, meta.bytes, took);
            core.transport.measured(to, way, meta.bytes, took);
        }
    }
    outcome
}

async fn acknowledgement(from: &mut PipeReader) -> Option<PushOutcome> {
    let mut byte = [0u8; 1];
    from.read_exact(&mut byte).await.ok()?;
    match byte {
        [ACK_TAKEN] => Some(PushOutcome::Delivered),
        [ACK_REFUSED] => Some(PushOutcome::Refused),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urgency_follows_priority_and_then_the_order_of_asking() {
        let order = [
            (0, 0),
            (0, 1),
            (0, 4_000_000),
            (1, 0),
            (7, 3),
            (255, 0),
            (255, 4_000_000),
        ];
        let all: Vec<i32> = order.iter().map(|(p, turn)| urgency(*p, *turn)).collect();
        assert!(all.is_sorted_by(|a, b| a > b), "{all:?}");
        assert!(all.iter().all(|u| (BACKGROUND + 1..ANSWER).contains(u)));
    }
}
