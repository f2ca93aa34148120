//! The pushes to one peer. A few run at the same time, the most urgent first.

use crate::bulk::push::{PushJob, push, urgency};
use crate::bulk::remote::Remote;
use crate::bulk::{BulkEvent, Core};
use crate::spans;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use murmurate_protocol::{PeerId, PushOutcome, SliceId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// A command to a lane.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LaneCommand {
    /// Start this push when its turn comes.
    Push(PushJob),
    /// Stop pushing this slice.
    Cancel(SliceId),
}

/// Waiting pushes, ordered by priority and then by arrival.
#[derive(Debug, Default)]
struct Waiting {
    jobs: BTreeMap<(u8, u64), (PushJob, Instant)>,
    sequence: u64,
}

/// A push whose turn has come.
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

    /// The priority of the next push.
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

/// The running pushes.
#[derive(Debug, Default)]
struct Active(BTreeMap<SliceId, (u8, CancellationToken)>);

impl Active {
    /// Whether a push of this priority may start: within `max`, or within twice `max` if it is more
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
        for slice in lost {
            core.tell(BulkEvent::Pushed {
                to,
                slice,
                outcome: PushOutcome::Lost,
            })
            .await;
        }
    }
    end(&core, to, waiting, under_way, active).await;
}

/// Ends the lane because the link is down: waiting pushes are lost, running ones end in their
/// current state.
async fn end(
    core: &Core,
    to: PeerId,
    mut waiting: Waiting,
    under_way: Active,
    mut active: FuturesUnordered<impl Future<Output = (SliceId, PushOutcome)>>,
) {
    under_way.0.keys().for_each(|slice| under_way.cancel(slice));
    for slice in waiting.take_if(|_| true) {
        core.tell(BulkEvent::Pushed {
            to,
            slice,
            outcome: PushOutcome::Lost,
        })
        .await;
    }
    while let Some((slice, outcome)) = active.next().await {
        core.tell(BulkEvent::Pushed { to, slice, outcome }).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_protocol::{FragmentId, Part, Round, SliceMeta, Tag};

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
