//! What arrives along a schedule: values of other members, aggregates that other members than their
//! owner forward, and the announcements of the owners.

use super::ballot::ShardVersion;
use super::fragment::FragmentRound;
use super::message::FragmentMessage;
use super::pipeline::Came;
use crate::core::context::Context;
use crate::exchange::broke;
use crate::{Attempt, Digest, Members, Order, Part, PeerError, PeerId, SliceId, SliceMeta, Wait};

impl FragmentRound {
    /// The next value is encoded.
    pub(super) fn next_stage(
        &mut self,
        cx: &mut Context,
        shard: u16,
        bytes: u64,
        digest: Option<Digest>,
    ) {
        let me = self.scope.group.peer(self.scope.group.me);
        let Some(pipeline) = &mut self.pipeline else {
            return;
        };
        let owner = pipeline.program.owner(shard);
        let ends = pipeline
            .program
            .role(shard)
            .map(|r| (r.ends, r.stages.len()));
        let work = &mut pipeline.works[usize::from(shard)];
        (work.busy, work.sent, work.bytes) = (false, false, Some(bytes));
        work.stage += 1;
        let (set, stage) = (work.set, work.stage);
        let Some(digest) = digest.filter(|_| ends == Some((true, stage))) else {
            return;
        };
        let meta = self.scope.mean_meta(bytes, set);
        if owner == self.scope.group.me {
            let version = ShardVersion {
                owner: me,
                attempt: Attempt::FIRST,
                contributors: set,
                digest,
            };
            for (_, peer) in self.scope.group.others() {
                cx.send(
                    peer,
                    self.scope
                        .scoped(FragmentMessage::Reduced { shard, version }),
                );
            }
            self.work(shard, |work| work.told = Some(version));
        }
        self.work(shard, |work| {
            work.came = Some(Came {
                from: me,
                meta,
                members: set,
                digest,
            })
        });
        self.check_aggregate(cx, shard);
    }

    /// An aggregate and its owner's announcement are here: forwarded if they match, dropped
    /// otherwise.
    fn check_aggregate(&mut self, cx: &mut Context, shard: u16) {
        let Some(pipeline) = &mut self.pipeline else {
            return;
        };
        let (program, open) = (pipeline.program.clone(), pipeline.open);
        let work = &mut pipeline.works[usize::from(shard)];
        let (Some(told), Some(came)) = (work.told, work.came) else {
            return;
        };
        work.came = None;
        let slice = self.scope.aggregate(shard, &told);
        let Came { from, meta, .. } = came;
        if (told.digest, told.contributors) != (came.digest, came.members) {
            self.transfers.slices.remove(&slice);
            cx.order(Order::Release { slice });
            // A forwarded aggregate may differ because its owner announced other bytes than it
            // made. It is unknown which of the two lied, so only an owner that sent it itself is
            // accused.
            let maker = self
                .scope
                .group
                .index(from)
                .filter(|_| from == slice.origin);
            if let Some(index) = maker.filter(|i| *i != self.scope.group.me) {
                cx.accuse(
                    from,
                    "an aggregate that differs from its owner's announcement".to_owned(),
                );
                self.give_up(Members::one(index));
            }
            self.pipeline_failed();
            return;
        }
        self.hold(shard, told);
        let serves = program.role(shard).map_or(&[][..], |role| &role.serves);
        for member in serves {
            if open && self.hopeful.has(*member) {
                self.push(cx, self.scope.group.peer(*member), slice, meta);
            }
        }
    }

    /// The owner of a shard announces its version.
    pub(super) fn on_reduced(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        shard: u16,
        version: ShardVersion,
    ) -> Result<(), PeerError> {
        let pipeline = self.pipeline.as_ref().filter(|_| shard < self.scope.of);
        let owner = pipeline.map(|pipeline| self.scope.group.peer(pipeline.program.owner(shard)));
        let members = version.contributors;
        let known = !members.is_empty() && members.is_within(self.scope.group.all());
        if owner != Some(from)
            || version.owner != from
            || version.attempt != Attempt::FIRST
            || !known
        {
            return broke("an announcement of another member's reduction");
        }
        let mut other = false;
        self.work(shard, |work| {
            other = *work.told.get_or_insert(version) != version;
        });
        if other {
            return broke("two versions of one shard under one name");
        }
        self.check_aggregate(cx, shard);
        self.advance(cx);
        Ok(())
    }

    /// A partial sum, or an aggregate of ballot zero, arrived.
    pub(super) fn pipeline_arrived(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        slice: SliceId,
        meta: SliceMeta,
        members: Members,
        digest: Option<Digest>,
    ) -> Result<(), PeerError> {
        let Some((pipeline, index)) = self.pipeline.as_ref().zip(self.scope.group.index(from))
        else {
            return broke("a slice of a schedule that the plan does not have");
        };
        let Some(role) = pipeline.program.role(slice.shard) else {
            return broke("a slice of a schedule that has no such shard");
        };
        if slice.part == Part::Aggregate {
            let owner = self.scope.group.peer(pipeline.program.owner(slice.shard));
            if role.server != Some(index) || slice.origin != owner {
                return broke("an aggregate from a member that does not hand it on");
            }
            let Some(digest) = digest else {
                return broke("an aggregate without a digest");
            };
            if self.transfers.slices.insert(slice) {
                self.work(slice.shard, |work| {
                    work.came = Some(Came {
                        from,
                        meta,
                        members,
                        digest,
                    })
                });
                self.check_aggregate(cx, slice.shard);
            }
        } else {
            let sources = role.stages.iter().flat_map(|stage| &stage.from);
            let mut named = sources.filter(|s| (s.member, s.value) == (index, slice.attempt.0));
            let set = members;
            let fits = named.any(|source| set.has(index) && set.is_within(source.set));
            if !fits {
                return broke("a partial sum that the schedule does not have");
            }
            self.transfers.slices.insert(slice);
            self.pipeline_came(cx, index, slice, set);
        }
        self.advance(cx);
        Ok(())
    }

    /// A value of another member is here.
    pub(super) fn pipeline_came(
        &mut self,
        cx: &mut Context,
        index: usize,
        slice: SliceId,
        set: Members,
    ) {
        let source = (index, slice.attempt.0);
        let role = self
            .pipeline
            .as_ref()
            .and_then(|r| r.program.role(slice.shard));
        let mut sources = role.iter().flat_map(|r| &r.stages).flat_map(|s| &s.from);
        if !sources.any(|s| (s.member, s.value) == source) {
            return;
        }
        let mut first = false;
        self.work(slice.shard, |work| {
            first = !work.arrived.contains_key(&source);
            work.arrived.entry(source).or_insert(set);
        });
        if first {
            let waited = cx.now.since(self.since);
            cx.deadlines
                .record(Wait::Contributions, slice.origin, waited);
        }
    }
}
