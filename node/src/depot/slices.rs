//! Encoded slices by name, with bounds on the slices of each sender.

use crate::bulk::Refusal;
use bytes::Bytes;
use murmurate_protocol::limits::{
    EARLY_SLICES_MAX, GRID_COLUMNS_MAX, GROUP_MEMBERS_MAX, HISTORY_ROUNDS_MAX, ROUNDS_AHEAD_MAX,
};
use murmurate_protocol::{
    GroupTag, JoinedGroups, Part, PeerId, Plan, Round, SliceId, SliceMeta, SortedMap, Tag,
};

/// Bytes that one sender may park here, if the model is small. A round of a model of 20 MB fits three
/// times.
const PARKED_PER_SENDER: u64 = 64 << 20;

/// Models that one sender may park here, if the model is large: the round under way, the next one, and
/// what the history keeps.
const PARKED_MODELS: u64 = 3;

/// The bytes of all senders together, in shares of one sender: 1 GiB if the model is small.
const PARKED_SENDERS: u64 = 16;

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

#[derive(Clone, Copy, Debug, Default)]
struct Parked {
    slices: usize,
    bytes: u64,
}

/// The stored slices, with counts that enforce the bounds.
#[derive(Debug, Default)]
pub(super) struct Slices {
    entries: SortedMap<SliceId, Entry>,
    per_sender: SortedMap<PeerId, Parked>,
    /// Bytes of all senders.
    parked: u64,
    round: Round,
    joined: JoinedGroups,
    bytes: u64,
}

impl Slices {
    pub(super) fn set_round(&mut self, round: Round, group: Option<GroupTag>) {
        self.round = round;
        self.joined.note(round, group);
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

    /// Stores what a peer pushed; false where the slice is here already. Peers vote on what came first,
    /// so a second push replaces it only while it is of no use here ([`JoinedGroups`]).
    pub(super) fn put_from(
        &mut self,
        from: PeerId,
        slice: SliceId,
        meta: SliceMeta,
        bytes: Bytes,
    ) -> bool {
        let new = !self.holds(&slice, &meta);
        if new {
            self.put_fetched(from, slice, meta, bytes);
        }
        new
    }

    /// True where a slice is here that a push of its name does not replace.
    fn holds(&self, slice: &SliceId, pushed: &SliceMeta) -> bool {
        let here = self.entries.get(slice);
        here.is_some_and(|entry| {
            let unused = |meta: SliceMeta| self.joined.replaces(slice, meta.tag, pushed.tag);
            entry.from.is_none() || !entry.meta.is_some_and(unused)
        })
    }

    /// Stores what this peer fetched, in place of an earlier version.
    pub(super) fn put_fetched(
        &mut self,
        from: PeerId,
        slice: SliceId,
        meta: SliceMeta,
        bytes: Bytes,
    ) {
        let parked = self.per_sender.entry(from).or_default();
        parked.slices += 1;
        parked.bytes += bytes.len() as u64;
        self.parked += bytes.len() as u64;
        let (meta, from) = (Some(meta), Some(from));
        self.insert(slice, Entry { meta, bytes, from });
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
            Part::Aggregate | Part::Bundle | Part::Scores => entry.meta.unwrap_or_else(alone),
            Part::Contribution | Part::Partial | Part::RowMean | Part::Basis | Part::Second => {
                entry.meta?
            }
        };
        Some((meta, entry.bytes.clone()))
    }

    pub(super) fn remove(&mut self, slice: &SliceId) {
        let Some(entry) = self.entries.remove(slice) else {
            return;
        };
        let bytes = entry.bytes.len() as u64;
        self.bytes -= bytes;
        let Some(from) = entry.from else {
            return;
        };
        self.parked = self.parked.saturating_sub(bytes);
        if let Some(parked) = self.per_sender.get_mut(&from) {
            parked.slices = parked.slices.saturating_sub(1);
            parked.bytes = parked.bytes.saturating_sub(bytes);
            if parked.slices == 0 {
                self.per_sender.remove(&from);
            }
        }
    }

    /// True where a peer may push this slice: otherwise one could push something in the name of another
    /// before that one does. Along a schedule members forward the aggregates of others.
    pub(super) fn may_push(plan: &Plan, from: PeerId, slice: &SliceId) -> bool {
        let handed_on = slice.part == Part::Aggregate && plan.schedule.relays();
        // All members of a column make the same bundle, in the name of one of them.
        let bundle = slice.part == Part::Bundle && plan.agreement.grouping.is_grid();
        slice.origin == from || handed_on || bundle
    }

    pub(super) fn accepts(
        &self,
        plan: &Plan,
        from: PeerId,
        slice: &SliceId,
        meta: &SliceMeta,
    ) -> Result<(), Refusal> {
        if self.holds(slice, meta) {
            return Err(Refusal::AlreadyHere);
        }
        let fragment = plan.fragment(slice.fragment).ok_or(Refusal::Unwanted)?;
        let of = u64::from(meta.of);
        let most = if plan.agreement.grouping.is_grid() {
            GROUP_MEMBERS_MAX * GRID_COLUMNS_MAX
        } else {
            GROUP_MEMBERS_MAX
        };
        let fits = (1..=most as u64).contains(&of) && u64::from(slice.shard) < of;
        let past = self.round.since(slice.round) > HISTORY_ROUNDS_MAX as u64;
        let ahead = slice.round.since(self.round) > ROUNDS_AHEAD_MAX + HISTORY_ROUNDS_MAX as u64;
        let by_rounds = plan.exchange.waits();
        if !fits || (by_rounds && (past || ahead)) {
            return Err(Refusal::Unwanted);
        }
        if meta.bytes > plan.shard_bytes_max(fragment, slice.part, of) {
            return Err(Refusal::TooLong);
        }
        let parked = self.per_sender.get(&from).copied().unwrap_or_default();
        let most = parked_max(plan);
        if parked.bytes.saturating_add(meta.bytes) > most {
            return Err(Refusal::Full);
        }
        if self.parked.saturating_add(meta.bytes) > most.saturating_mul(PARKED_SENDERS) {
            return Err(Refusal::NoRoom);
        }
        // With a relaying schedule, one member forwards the shards of all owners.
        let shards = if plan.schedule.relays() {
            GROUP_MEMBERS_MAX
        } else {
            1
        };
        if parked.slices < SLICES_PER_SENDER_MAX * shards * plan.fragments.len() {
            Ok(())
        } else {
            Err(Refusal::Full)
        }
    }
}

fn parked_max(plan: &Plan) -> u64 {
    let model: u64 = plan
        .fragments
        .iter()
        .map(|fragment| plan.slice_bytes_max(fragment))
        .sum();
    PARKED_PER_SENDER.max(model.saturating_mul(PARKED_MODELS))
}

#[cfg(test)]
pub(super) mod tests;
