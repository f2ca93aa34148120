//! Encoded slices by name, with bounds on the slices of each sender.

use crate::bulk::Refusal;
use bytes::Bytes;
use murmurate_protocol::limits::{
    EARLY_SLICES_MAX, GROUP_MEMBERS_MAX, HISTORY_ROUNDS_MAX, ROUNDS_AHEAD_MAX,
};
use murmurate_protocol::{Part, PeerId, Plan, Round, SliceId, SliceMeta, Tag};
use std::collections::BTreeMap;

/// Stored slices of one sender per fragment: those that may arrive early, plus those that the
/// history keeps.
const SLICES_PER_SENDER_MAX: usize = EARLY_SLICES_MAX + HISTORY_ROUNDS_MAX;

#[derive(Debug)]
struct Entry {
    /// The header; `None` until a slice of this peer is pushed for the first time.
    meta: Option<SliceMeta>,
    bytes: Bytes,
    from: Option<PeerId>,
}

/// The stored slices, with counts that enforce the bounds.
#[derive(Debug, Default)]
pub(super) struct Slices {
    entries: BTreeMap<SliceId, Entry>,
    per_sender: BTreeMap<PeerId, usize>,
    round: Round,
    bytes: u64,
}

impl Slices {
    pub(super) fn set_round(&mut self, round: Round) {
        self.round = round;
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn put_own(&mut self, slice: SliceId, bytes: Bytes) {
        self.insert(
            slice,
            Entry {
                meta: None,
                bytes,
                from: None,
            },
        );
    }

    pub(super) fn put_from(&mut self, from: PeerId, slice: SliceId, meta: SliceMeta, bytes: Bytes) {
        *self.per_sender.entry(from).or_default() += 1;
        self.insert(
            slice,
            Entry {
                meta: Some(meta),
                bytes,
                from: Some(from),
            },
        );
    }

    fn insert(&mut self, slice: SliceId, entry: Entry) {
        self.remove(&slice);
        self.bytes += entry.bytes.len() as u64;
        self.entries.insert(slice, entry);
    }

    pub(super) fn describe(&mut self, slice: &SliceId, meta: SliceMeta) -> Option<SliceMeta> {
        let entry = self.entries.get_mut(slice)?;
        let meta = SliceMeta {
            bytes: entry.bytes.len() as u64,
            ..meta
        };
        entry.meta = Some(meta);
        Some(meta)
    }

    /// The bytes of a slice.
    pub(super) fn bytes_of(&self, slice: &SliceId) -> Option<Bytes> {
        self.entries.get(slice).map(|entry| entry.bytes.clone())
    }

    /// Header and bytes; `None` too for a contribution of this peer that has no header yet, because peers
    /// must not receive it without its tag.
    ///
    /// An aggregate is always there. A group of one pushes its aggregate to no peer, so it gets no header;
    /// who replays its round checks the digest and needs no tag.
    pub(super) fn get(&self, slice: &SliceId) -> Option<(SliceMeta, Bytes)> {
        let entry = self.entries.get(slice)?;
        let alone = || SliceMeta {
            of: 1,
            bytes: entry.bytes.len() as u64,
            tag: Tag::Mass { weight: 0.0 },
        };
        let meta = match slice.part {
            Part::Aggregate => entry.meta.unwrap_or_else(alone),
            Part::Contribution | Part::Partial => entry.meta?,
        };
        Some((meta, entry.bytes.clone()))
    }

    pub(super) fn remove(&mut self, slice: &SliceId) {
        let Some(entry) = self.entries.remove(slice) else {
            return;
        };
        self.bytes -= entry.bytes.len() as u64;
        if let Some(count) = entry.from.and_then(|from| self.per_sender.get_mut(&from)) {
            *count = count.saturating_sub(1);
        }
    }

    /// Whether a peer may push this slice: otherwise one could push something in the name of another
    /// before that one does. Along a schedule members forward the aggregates of others.
    pub(super) fn may_push(plan: &Plan, from: PeerId, slice: &SliceId) -> bool {
        let handed_on = slice.part == Part::Aggregate && plan.schedule.relays();
        slice.origin == from || handed_on
    }

    pub(super) fn accepts(
        &self,
        plan: &Plan,
        from: PeerId,
        slice: &SliceId,
        meta: &SliceMeta,
    ) -> Result<(), Refusal> {
        if self.entries.contains_key(slice) {
            return Err(Refusal::AlreadyHere);
        }
        let fragment = plan.fragment(slice.fragment).ok_or(Refusal::Unwanted)?;
        let of = u64::from(meta.of);
        let fits = (1..=GROUP_MEMBERS_MAX as u64).contains(&of) && u64::from(slice.shard) < of;
        let past = self.round.since(slice.round) > HISTORY_ROUNDS_MAX as u64;
        let ahead = slice.round.since(self.round) > ROUNDS_AHEAD_MAX + HISTORY_ROUNDS_MAX as u64;
        let by_rounds = plan.exchange.waits();
        if !fits || (by_rounds && (past || ahead)) {
            return Err(Refusal::Unwanted);
        }
        let bound = match slice.part {
            Part::Contribution => fragment.contribution,
            Part::Aggregate | Part::Partial => fragment.aggregate,
        };
        if meta.bytes > bound.of(fragment.len.div_ceil(of)) {
            return Err(Refusal::TooLong);
        }
        let count = self.per_sender.get(&from).copied().unwrap_or(0);
        // With a relaying schedule, one member forwards the shards of all owners.
        let shards = match plan.schedule.relays() {
            true => GROUP_MEMBERS_MAX,
            false => 1,
        };
        match count < SLICES_PER_SENDER_MAX * shards * plan.fragments.len() {
            true => Ok(()),
            false => Err(Refusal::Full),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_protocol::{
        BytesBound, Contribution, DeadlinePlan, Digest, ExchangeKind, FragmentId, FragmentPlan,
        LayoutHash, RunId, StepBudget,
    };

    fn plan() -> Plan {
        let bound = BytesBound {
            fixed: 8,
            per_1024: 4096,
        };
        Plan {
            run: RunId::from_bytes([1; 32]),
            layout: LayoutHash::from_bytes([2; 32]),
            recipe: Digest::from_bytes([3; 32]),
            exchange: ExchangeKind::AllReduce,
            schedule: murmurate_protocol::Schedule::Butterfly,
            contribution: Contribution::Delta,
            budget: StepBudget::Steps(1),
            synchronization: murmurate_protocol::Synchronization::default(),
            rounds: 0,
            fragments: vec![FragmentPlan {
                len: 100,
                contribution: bound,
                aggregate: bound,
            }],
            overlap: murmurate_protocol::OverlapPlan::NONE,
            deadlines: DeadlinePlan::default(),
            state_bytes: 1000,
            liars: 0,
        }
    }

    fn slice(round: u64, shard: u16) -> SliceId {
        SliceId {
            round: Round(round),
            fragment: FragmentId(0),
            shard,
            part: Part::Contribution,
            origin: PeerId::from_bytes([9; 32]),
            attempt: murmurate_protocol::Attempt(0),
        }
    }

    fn meta(of: u16, bytes: u64) -> SliceMeta {
        SliceMeta {
            of,
            bytes,
            tag: Tag::Mass { weight: 1.0 },
        }
    }

    #[test]
    fn peers_get_a_slice_only_after_it_has_a_header() {
        let mut slices = Slices::default();
        slices.put_own(slice(0, 1), Bytes::from_static(b"four"));
        assert_eq!(slices.get(&slice(0, 1)), None);
        assert_eq!(slices.bytes_of(&slice(0, 1)).unwrap(), "four");
        let described = slices.describe(&slice(0, 1), meta(2, 0)).unwrap();
        assert_eq!(described, meta(2, 4));
        assert_eq!(slices.get(&slice(0, 1)).unwrap().0, described);
    }

    /// A daemon that comes back would ask for it again and again.
    #[test]
    fn the_aggregate_of_a_group_of_one_is_served() {
        let mut slices = Slices::default();
        let aggregate = SliceId {
            part: Part::Aggregate,
            ..slice(3, 0)
        };
        slices.put_own(aggregate, Bytes::from_static(b"four"));
        let (header, bytes) = slices.get(&aggregate).unwrap();
        assert_eq!((header.of, header.bytes, &bytes[..]), (1, 4, &b"four"[..]));
        let other = Slices::default();
        let from = aggregate.origin;
        assert_eq!(other.accepts(&plan(), from, &aggregate, &header), Ok(()));
    }

    /// A center names its replies by its versions, which change in every worker's round.
    #[test]
    fn a_center_s_versions_are_no_rounds() {
        let center = murmurate_protocol::CenterPlan {
            owners: 2,
            lead: None,
            buffer: 1,
        };
        let plan = Plan {
            exchange: ExchangeKind::Center(center),
            ..plan()
        };
        let from = PeerId::from_bytes([9; 32]);
        let reply = SliceId {
            part: Part::Aggregate,
            ..slice(10_000, 1)
        };
        let accepted = Slices::default().accepts(&plan, from, &reply, &meta(2, 208));
        assert_eq!(accepted, Ok(()));
    }

    #[test]
    fn only_what_the_plan_allows_is_taken() {
        let (plan, from) = (plan(), PeerId::from_bytes([9; 32]));
        let mut slices = Slices::default();
        assert_eq!(
            slices.accepts(&plan, from, &slice(0, 1), &meta(2, 208)),
            Ok(())
        );
        for (id, meta, refusal) in [
            (slice(0, 2), meta(2, 10), Refusal::Unwanted),
            (slice(0, 0), meta(0, 10), Refusal::Unwanted),
            (slice(0, 0), meta(65, 10), Refusal::Unwanted),
            (slice(1000, 0), meta(2, 10), Refusal::Unwanted),
            (slice(0, 0), meta(2, 209), Refusal::TooLong),
        ] {
            assert_eq!(
                slices.accepts(&plan, from, &id, &meta),
                Err(refusal),
                "{id:?} {meta:?}"
            );
        }
        slices.put_from(from, slice(0, 1), meta(2, 3), Bytes::from_static(b"abc"));
        let again = slices.accepts(&plan, from, &slice(0, 1), &meta(2, 3));
        assert_eq!(again, Err(Refusal::AlreadyHere));
        assert_eq!(slices.bytes(), 3);
        slices.remove(&slice(0, 1));
        assert_eq!(slices.bytes(), 0);
    }

    #[test]
    fn one_sender_cannot_fill_the_depot() {
        let (plan, from) = (plan(), PeerId::from_bytes([9; 32]));
        let mut slices = Slices::default();
        for i in 0..SLICES_PER_SENDER_MAX {
            let id = SliceId {
                attempt: murmurate_protocol::Attempt((i % 250) as u8),
                ..slice(0, (i / 250) as u16)
            };
            slices.put_from(from, id, meta(64, 0), Bytes::new());
        }
        let one_more = slices.accepts(&plan, from, &slice(1, 0), &meta(2, 1));
        assert_eq!(one_more, Err(Refusal::Full));
        let other = PeerId::from_bytes([8; 32]);
        let theirs = SliceId {
            origin: other,
            ..slice(1, 0)
        };
        assert_eq!(slices.accepts(&plan, other, &theirs, &meta(2, 1)), Ok(()));
    }

    #[test]
    fn no_peer_pushes_in_the_name_of_another() {
        let (owner, other) = (PeerId::from_bytes([9; 32]), PeerId::from_bytes([8; 32]));
        let allowed = |plan: &Plan, from, part| {
            let slice = SliceId {
                part,
                ..slice(0, 1)
            };
            Slices::may_push(plan, from, &slice)
        };
        let (butterfly, ring) = (
            plan(),
            Plan {
                schedule: murmurate_protocol::Schedule::Ring,
                ..plan()
            },
        );
        for part in [Part::Contribution, Part::Aggregate, Part::Partial] {
            assert!(allowed(&butterfly, owner, part));
            assert!(!allowed(&butterfly, other, part));
        }
        // Members of a ring forward what its owner has summed, and nothing else.
        assert!(allowed(&ring, other, Part::Aggregate));
        assert!(!allowed(&ring, other, Part::Partial));
    }
}
