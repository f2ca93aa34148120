//! The pushes to one peer: the most urgent first, a few at a time.

use crate::bulk::Core;
use crate::bulk::push::{PushJob, push};
use crate::net::NetEvent;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use murmurate_protocol::{PeerId, PushOutcome, SliceId};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// What a lane is told.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LaneCommand {
    /// Push this.
    Push(PushJob),
    /// Stop pushing this.
    Cancel(SliceId),
}

/// Pushes that wait for their turn, in order of priority and then of arrival.
#[derive(Debug, Default)]
struct Waiting {
    jobs: BTreeMap<(u8, u64), PushJob>,
    sequence: u64,
}

impl Waiting {
    fn add(&mut self, job: PushJob) {
        self.jobs.insert((job.priority, self.sequence), job);
        self.sequence += 1;
    }

    fn pop(&mut self) -> Option<PushJob> {
        self.jobs.pop_first().map(|(_, job)| job)
    }

    fn earliest(&self) -> Option<Instant> {
        self.jobs.values().map(|job| job.deadline).min()
    }

    fn take_if(&mut self, gone: impl Fn(&PushJob) -> bool) -> Vec<SliceId> {
        self.jobs
            .extract_if(.., |_, job| gone(job))
            .map(|(_, job)| job.slice)
            .collect()
    }
}

/// Runs the pushes to `to` until the lane's sender is dropped; then all of them end.
pub(crate) async fn run_lane(
    core: Arc<Core>,
    to: PeerId,
    mut commands: mpsc::Receiver<LaneCommand>,
) {
    let mut waiting = Waiting::default();
    let mut active = FuturesUnordered::new();
    let mut tokens: BTreeMap<SliceId, CancellationToken> = BTreeMap::new();
    loop {
        while active.len() < core.limits.push_streams_per_peer.max(1)
            && let Some(job) = waiting.pop()
        {
            let token = CancellationToken::new();
            tokens.insert(job.slice, token.clone());
            let core = &core;
            active.push(async move { (job.slice, push(core, to, job, token).await) });
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
                    if let Some(token) = tokens.get(&slice) {
                        token.cancel();
                    }
                }
                None => break,
            },
            Some((slice, outcome)) = active.next(), if !active.is_empty() => {
                tokens.remove(&slice);
                core.tell(NetEvent::Pushed { to, slice, outcome }).await;
            }
            () = sleep_until(earliest.unwrap_or_else(Instant::now)), if earliest.is_some() => {
                let now = Instant::now();
                lost = waiting.take_if(|job| job.deadline <= now);
            }
        }
        for slice in lost {
            core.tell(NetEvent::Pushed {
                to,
                slice,
                outcome: PushOutcome::Lost,
            })
            .await;
        }
    }
    end(&core, to, waiting, tokens, active).await;
}

/// The link is down: what waits is lost, what is under way ends as it stands.
async fn end(
    core: &Core,
    to: PeerId,
    mut waiting: Waiting,
    tokens: BTreeMap<SliceId, CancellationToken>,
    mut active: FuturesUnordered<impl Future<Output = (SliceId, PushOutcome)>>,
) {
    tokens.values().for_each(CancellationToken::cancel);
    for slice in waiting.take_if(|_| true) {
        core.tell(NetEvent::Pushed {
            to,
            slice,
            outcome: PushOutcome::Lost,
        })
        .await;
    }
    while let Some((slice, outcome)) = active.next().await {
        core.tell(NetEvent::Pushed { to, slice, outcome }).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_protocol::{FragmentId, Part, Round, SliceMeta};
    use std::time::Duration;

    fn job(shard: u16, priority: u8, deadline: Instant) -> PushJob {
        let origin = PeerId::from_bytes([1; 32]);
        PushJob {
            slice: SliceId {
                round: Round(1),
                fragment: FragmentId(0),
                shard,
                part: Part::Contribution,
                origin,
                attempt: 0,
            },
            meta: SliceMeta {
                of: 9,
                weight: 1.0,
                contributors: 0,
                group: 0,
                bytes: 0,
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
            .map(|job| job.slice.shard)
            .collect();
        assert_eq!(order, [1, 3, 0, 2]);
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
