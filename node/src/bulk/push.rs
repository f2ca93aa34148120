//! One push: header, bytes, one byte of acknowledgement, and what its sender may conclude.

use crate::bulk::Core;
use crate::bulk::wire::{ACK_REFUSED, ACK_TAKEN, Request, finish, write_body, write_header};
use futures::io::{AsyncRead, AsyncReadExt};
use murmurate_protocol::{PeerId, PushOutcome, SliceId, SliceMeta};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// How long a receiver that stopped reading may take to say why.
const LAST_WORD_WAIT: Duration = Duration::from_secs(1);

/// Slices below this say more about the round trip than about the rate.
const RATED_BYTES_MIN: u64 = 64 * 1024;

/// A push that was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PushJob {
    /// What.
    pub(crate) slice: SliceId,
    /// Its header.
    pub(crate) meta: SliceMeta,
    /// Lower goes first.
    pub(crate) priority: u8,
    /// When to give up.
    pub(crate) deadline: Instant,
}

/// Performs one push to its end, its deadline or its cancellation.
pub(crate) async fn push(
    core: &Core,
    to: PeerId,
    job: PushJob,
    cancelled: CancellationToken,
) -> PushOutcome {
    // Until the last byte is handed to the transport the receiver surely lacks it.
    let all_sent = AtomicBool::new(false);
    let ended = tokio::select! {
        ended = transfer(core, to, job, &all_sent) => ended,
        () = tokio::time::sleep_until(job.deadline) => None,
        () = cancelled.cancelled() => None,
    };
    match ended {
        Some(outcome) => outcome,
        None if all_sent.load(Ordering::Relaxed) => PushOutcome::Unknown,
        None => PushOutcome::Lost,
    }
}

async fn transfer(
    core: &Core,
    to: PeerId,
    job: PushJob,
    all_sent: &AtomicBool,
) -> Option<PushOutcome> {
    let PushJob { slice, meta, .. } = job;
    let Some((_, bytes)) = core
        .store
        .get(&slice)
        .filter(|(_, b)| b.len() as u64 == meta.bytes)
    else {
        tracing::error!(peer = %to, round = %slice.round, "a slice to push is not in the store");
        return Some(PushOutcome::Lost);
    };
    let tally = core.counters.of(to);
    let pipe = core.transport.open(to).await.ok()?;
    let (mut read, mut write) = pipe.split();
    let began = Instant::now();
    let sending = async {
        write_header(
            &mut write,
            &Request::Push { slice, meta },
            core.limits.header_wait,
        )
        .await?;
        write_body(&mut write, &bytes, core.limits.piece_wait, |n| {
            tally.bulk_out(n)
        })
        .await?;
        all_sent.store(true, Ordering::Relaxed);
        finish(&mut write, core.limits.piece_wait).await
    };
    let answer = acknowledgement(&mut read);
    tokio::pin!(sending, answer);
    let outcome = tokio::select! {
        outcome = &mut answer => outcome,
        sent = &mut sending => match sent {
            Ok(()) => answer.await,
            Err(_) => timeout(LAST_WORD_WAIT, answer).await.ok().flatten(),
        },
    };
    if outcome == Some(PushOutcome::Delivered) && meta.bytes >= RATED_BYTES_MIN {
        core.measured_push(to, meta.bytes, began.elapsed());
    }
    outcome
}

async fn acknowledgement(from: &mut (impl AsyncRead + Unpin)) -> Option<PushOutcome> {
    let mut byte = [0u8; 1];
    from.read_exact(&mut byte).await.ok()?;
    match byte {
        [ACK_TAKEN] => Some(PushOutcome::Delivered),
        [ACK_REFUSED] => Some(PushOutcome::Refused),
        _ => None,
    }
}
