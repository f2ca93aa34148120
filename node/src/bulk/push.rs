//! Pushes: one sends the header and the bytes of a slice, and reads the acknowledgement. Of those to one peer a few run
//! at the same time, the most urgent first.

use super::core::Remote;
use super::wire::{ACK_REFUSED, ACK_TAKEN, Request, finish, write_body, write_header};
use super::{BulkEvent, Core, Pipe, PipeReader, Way};
use crate::spans;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use murmurate_protocol::{PeerId, PushOutcome, SliceId, SliceMeta};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

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

#[derive(Clone, Copy, Debug)]
pub(crate) struct PushJob {
    pub(crate) slice: SliceId,
    pub(crate) meta: SliceMeta,
    /// Lower values go first.
    pub(crate) priority: u8,
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
    let pipe = core.transport.open(to, meta.bytes).await.ok()?;
    let way = pipe.way();
    let sent = send(core, remote, job, (pipe, urgency), &bytes, all_sent).await;
    if sent.is_some() || way != Way::Tls {
        return sent;
    }
    // The connection over TCP broke. QUIC is still there, and a slice that arrived is not taken twice.
    let pipe = core.transport.open(to, meta.bytes).await.ok()?;
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

#[derive(Clone, Copy, Debug)]
pub(crate) enum LaneCommand {
    /// Start this push when its turn comes.
    Push(PushJob),
    Cancel(SliceId),
}

/// Waiting pushes, ordered by priority and then by arrival.
#[derive(Debug, Default)]
struct Waiting {
    jobs: BTreeMap<(u8, u64), (PushJob, Instant)>,
    sequence: u64,
}

#[derive(Debug)]
struct Turn {
    job: PushJob,
    urgency: i32,
    waited: Duration,
}

impl Waiting {
    fn add(&mut self, job: PushJob) {
        let key = (job.priority, self.sequence);
        self.jobs.insert(key, (job, Instant::now()));
        self.sequence += 1;
    }

    fn pop(&mut self) -> Option<Turn> {
        let ((priority, sequence), (job, since)) = self.jobs.pop_first()?;
        Some(Turn {
            job,
            urgency: urgency(priority, sequence),
            waited: since.elapsed(),
        })
    }

    fn next(&self) -> Option<u8> {
        self.jobs
            .first_key_value()
            .map(|((priority, _), _)| *priority)
    }

    fn earliest(&self) -> Option<Instant> {
        self.jobs.values().map(|(job, _)| job.deadline).min()
    }

    fn take_if(&mut self, gone: impl Fn(&PushJob) -> bool) -> Vec<SliceId> {
        self.jobs
            .extract_if(.., |_, (job, _)| gone(job))
            .map(|(_, (job, _))| job.slice)
            .collect()
    }
}

#[derive(Debug, Default)]
struct Active(BTreeMap<SliceId, (u8, CancellationToken)>);

impl Active {
    /// True where a push of this priority may start: within `max`, or within twice `max` if it is more
    /// urgent than all running ones.
    fn admits(&self, priority: u8, max: usize) -> bool {
        let overtakes = || self.0.values().all(|(other, _)| priority < *other);
        self.0.len() < max || (self.0.len() < 2 * max && overtakes())
    }

    fn begin(&mut self, job: &PushJob) -> CancellationToken {
        let token = CancellationToken::new();
        self.0.insert(job.slice, (job.priority, token.clone()));
        token
    }

    fn cancel(&self, slice: &SliceId) {
        if let Some((_, token)) = self.0.get(slice) {
            token.cancel();
        }
    }
}

/// Runs the pushes to a peer until the lane's sender is dropped, then ends all of them.
pub(crate) async fn run_lane(
    core: Arc<Core>,
    remote: Remote,
    mut commands: mpsc::Receiver<LaneCommand>,
) {
    let to = remote.peer;
    let mut waiting = Waiting::default();
    let mut active = FuturesUnordered::new();
    let mut under_way = Active::default();
    let max = core.limits.push_streams_per_peer.max(1);
    loop {
        while let Some(priority) = waiting.next()
            && under_way.admits(priority, max)
            && let Some(Turn {
                job,
                urgency,
                waited,
            }) = waiting.pop()
        {
            core.meters.queued(to, waited);
            let token = under_way.begin(&job);
            let (core, remote) = (&core, &remote);
            let span = spans::transfer(&job.slice, to);
            active.push(async move {
                let pushing = push(core, remote, job, urgency, token).instrument(span);
                (job.slice, pushing.await)
            });
        }
        let mut lost = Vec::new();
        let earliest = waiting.earliest();
        tokio::select! {
            command = commands.recv() => match command {
                Some(LaneCommand::Push(job)) if waiting.jobs.len() < core.limits.pushes_waiting_max => {
                    waiting.add(job);
                }
                Some(LaneCommand::Push(job)) => lost.push(job.slice),
                Some(LaneCommand::Cancel(slice)) => {
                    lost = waiting.take_if(|job| job.slice == slice);
                    under_way.cancel(&slice);
                }
                None => break,
            },
            Some((slice, outcome)) = active.next(), if !active.is_empty() => {
                under_way.0.remove(&slice);
                core.tell(BulkEvent::Pushed { to, slice, outcome }).await;
            }
            () = sleep_until(earliest.unwrap_or_else(Instant::now)), if earliest.is_some() => {
                let now = Instant::now();
                lost = waiting.take_if(|job| job.deadline <= now);
            }
        }
        tell_lost(&core, to, lost).await;
    }
    end(&core, to, waiting, under_way, active).await;
}

async fn tell_lost(core: &Core, to: PeerId, slices: Vec<SliceId>) {
    for slice in slices {
        let outcome = PushOutcome::Lost;
        core.tell(BulkEvent::Pushed { to, slice, outcome }).await;
    }
}

/// Ends the lane because the link is down: waiting pushes are lost, running ones end in their current state.
async fn end(
    core: &Core,
    to: PeerId,
    mut waiting: Waiting,
    under_way: Active,
    mut active: FuturesUnordered<impl Future<Output = (SliceId, PushOutcome)>>,
) {
    under_way.0.keys().for_each(|slice| under_way.cancel(slice));
    tell_lost(core, to, waiting.take_if(|_| true)).await;
    while let Some((slice, outcome)) = active.next().await {
        core.tell(BulkEvent::Pushed { to, slice, outcome }).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_protocol::{FragmentId, Part, Round, SliceMeta, Tag};

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

    fn job(shard: u16, priority: u8, deadline: Instant) -> PushJob {
        let origin = PeerId::from_bytes([1; 32]);
        PushJob {
            slice: SliceId {
                round: Round(1),
                fragment: FragmentId(0),
                shard,
                part: Part::Contribution,
                origin,
                attempt: murmurate_protocol::Attempt(0),
            },
            meta: SliceMeta {
                of: 9,
                bytes: 0,
                tag: Tag::Mass { weight: 1.0 },
            },
            priority,
            deadline,
        }
    }

    #[test]
    fn the_lowest_priority_number_goes_first_and_equals_in_order() {
        let later = Instant::now() + Duration::from_secs(60);
        let mut waiting = Waiting::default();
        for (shard, priority) in [(0, 5), (1, 1), (2, 5), (3, 1)] {
            waiting.add(job(shard, priority, later));
        }
        let order: Vec<u16> = std::iter::from_fn(|| waiting.pop())
            .map(|turn| turn.job.slice.shard)
            .collect();
        assert_eq!(order, [1, 3, 0, 2]);
    }

    #[test]
    fn a_more_urgent_push_does_not_wait_for_the_others_to_end() {
        let later = Instant::now() + Duration::from_secs(60);
        let mut active = Active::default();
        for shard in 0..2 {
            assert!(active.admits(5, 2));
            active.begin(&job(shard, 5, later));
        }
        assert!(!active.admits(5, 2) && active.admits(4, 2));
        active.begin(&job(2, 4, later));
        assert!(!active.admits(4, 2) && active.admits(3, 2));
        active.begin(&job(3, 3, later));
        assert!(!active.admits(0, 2), "never more than twice as many");
    }

    #[test]
    fn only_what_is_overdue_is_taken_out() {
        let now = Instant::now();
        let mut waiting = Waiting::default();
        waiting.add(job(0, 1, now));
        waiting.add(job(1, 1, now + Duration::from_secs(60)));
        assert_eq!(waiting.earliest(), Some(now));
        let gone = waiting.take_if(|job| job.deadline <= now);
        assert_eq!(gone.iter().map(|s| s.shard).collect::<Vec<_>>(), [0]);
        assert_eq!(waiting.jobs.len(), 1);
    }
}
