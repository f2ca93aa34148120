//! Bounds of waits, of the lead of a peer over others, and of everything that waits at a peer.
//!
//! No wait is longer than its deadline, but for the time in which its machine stands still, and no deadline
//! passes unnoticed. No peer begins a round while a peer that it waits for is more than `lead` rounds behind;
//! it waits for the peers that are linked, take part, and did not miss a deadline. Slices to mix, stored slices
//! and queued orders are bounded.

use crate::host::Host;
use core::time::Duration;
use murmurate_protocol::limits::{
    BALLOTS_MAX, EARLY_SCHEDULED_MAX, EARLY_SLICES_MAX, HISTORY_ROUNDS_MAX, INBOX_SLICES_MAX,
};
use murmurate_protocol::{Event, Peer, PeerId, Plan, Round, SortedMap, Time};

/// Tolerance. Deadlines are exact to the nanosecond here; rounding of durations may add a few.
const ROUNDING: Duration = Duration::from_nanos(10);

/// A wait that was longer than its deadline, but for the time in which its machine stands still.
pub(super) fn check_wait(event: &Event, paused: Duration) -> Result<(), String> {
    match event {
        Event::Waited {
            wait,
            waited,
            allowed,
            ..
        } if *waited > *allowed + paused + ROUNDING => Err(format!(
            "waited {waited:?} for {wait:?}, allowed were {allowed:?}"
        )),
        _ => Ok(()),
    }
}

/// A past deadline that still exists after the input that should have handled it.
pub(super) fn check_deadline(deadline: Option<Time>, now: Time) -> Result<(), String> {
    match deadline {
        Some(at) if at + STALE < now => Err(format!("the deadline of {at} was left behind")),
        _ => Ok(()),
    }
}

/// Timers fire at their time. An input at the same instant may come first.
const STALE: Duration = Duration::from_millis(1);

/// The actual rounds of the machines.
#[derive(Debug)]
pub(super) struct LeadBounded {
    lead: u64,
    rounds: SortedMap<PeerId, Round>,
}

impl LeadBounded {
    pub(super) const fn new(lead: u32) -> Self {
        Self {
            lead: lead as u64,
            rounds: SortedMap::new(),
        }
    }

    /// Forgets a machine.
    pub(super) fn gone(&mut self, peer: PeerId) {
        self.rounds.remove(&peer);
    }

    /// Checks a peer after an input.
    pub(super) fn check(&mut self, me: PeerId, peer: &Peer) -> Result<(), String> {
        let others = peer.view().live().filter(|(_, r)| !r.probation);
        let others = others.map(|(id, _)| id);
        self.moved(me, peer.round(), others)
    }

    fn moved(
        &mut self,
        me: PeerId,
        round: Round,
        others: impl Iterator<Item = PeerId>,
    ) -> Result<(), String> {
        let last = self.rounds.insert(me, round);
        // A peer that took a state over, or a straggler that caught up, jumps to the others' round.
        if last.is_none_or(|last| last.next() != round) {
            return Ok(());
        }
        for other in others {
            let Some(behind) = self.rounds.get(&other) else {
                continue;
            };
            let lead = round.since(*behind);
            if lead > self.lead {
                return Err(format!(
                    "began round {round}, {lead} ahead of {other} in round {behind}: at most {} may be",
                    self.lead
                ));
            }
        }
        Ok(())
    }
}

#[derive(Debug)]
pub(super) struct InboxBounded {
    waiting_max: usize,
    slices_max: usize,
    orders_max: usize,
}

impl InboxBounded {
    pub(super) fn new(plan: &Plan, peers: usize) -> Self {
        let fragments = plan.fragments.len();
        // A round holds at most every member's contribution to this peer's shard and the aggregate
        // of every shard, in each ballot. The history holds one aggregate for each shard.
        let round = fragments * peers * (2 + usize::from(BALLOTS_MAX));
        let history = fragments * peers * HISTORY_ROUNDS_MAX;
        let inbox = INBOX_SLICES_MAX * fragments;
        let early = if plan.schedule.relays() {
            EARLY_SCHEDULED_MAX
        } else {
            EARLY_SLICES_MAX
        };
        Self {
            waiting_max: inbox * peers,
            slices_max: round + history + (inbox + early) * peers,
            orders_max: 8 * fragments * peers + 64,
        }
    }

    pub(super) fn check(&self, host: &Host) -> Result<(), String> {
        let over = |what: &str, count: usize, max: usize| {
            if count <= max {
                Ok(())
            } else {
                Err(format!("{count} {what}, at most {max} may be"))
            }
        };
        over(
            "slices wait to be mixed",
            host.peer.inbox_len(),
            self.waiting_max,
        )?;
        over("slices are kept", host.slices(), self.slices_max)?;
        over("orders wait", host.orders(), self.orders_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_protocol::Wait;

    #[test]
    fn a_wait_beyond_its_deadline_is_found() {
        let waited = |ms| Event::Waited {
            wait: Wait::Partners,
            waited: Duration::from_millis(ms),
            allowed: Duration::from_millis(10),
            expired: true,
        };
        assert!(check_wait(&waited(10), Duration::ZERO).is_ok());
        assert!(check_wait(&waited(11), Duration::ZERO).is_err());
        assert!(check_wait(&waited(11), Duration::from_millis(1)).is_ok());
        let (early, late) = (Time::from_nanos(5), Time::from_nanos(9_000_000));
        assert!(check_deadline(Some(early), late).is_err());
        assert!(check_deadline(Some(late), early).is_ok());
    }

    #[test]
    fn one_round_too_far_is_found() {
        let [a, b] = [1, 2].map(|id| PeerId::from_bytes([id; 32]));
        let mut lead = LeadBounded::new(2);
        assert!(lead.moved(b, Round(0), [a].into_iter()).is_ok());
        for round in 0..=2 {
            assert!(lead.moved(a, Round(round), [b].into_iter()).is_ok());
        }
        assert!(lead.moved(a, Round(3), [b].into_iter()).is_err());
        lead.gone(b);
        assert!(lead.moved(a, Round(4), [b].into_iter()).is_ok());
    }
}
