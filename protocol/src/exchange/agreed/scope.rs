//! What a fragment's round is about, and the names and headers that follow from it.

use super::ballot::{ShardPlan, ShardVersion};
use super::group::Group;
use super::message::{FragmentMessage, Scoped};
use super::owners::owners;
use crate::core::context::Context;
use crate::data::Tally;
use crate::exchange::{broke, foreign_tag};
use crate::limits::BALLOTS_MAX;
use crate::roll::RoundNote;
use crate::schedule::Program;
use crate::sorted::SortedMap;
use crate::{
    Attempt, Combination, Ending, Event, ExchangeKind, FragmentId, Members, Part, PeerError,
    PeerId, Plan, Round, Scoring, SliceId, SliceMeta, Source, StoreId, Tag, TallyEntry, Time, Wait,
};
use core::time::Duration;

pub(super) const EXCHANGE: &str = "agreement in a group";

/// The subject of a fragment's round. But for weights and notes in a grid it never changes.
#[derive(Debug)]
pub(super) struct Scope {
    pub(super) round: Round,
    pub(super) fragment: FragmentId,
    pub(super) group: Group,
    /// Parts that are voted on: shards, or the members' contributions where they are gathered.
    /// There is one shard for each member, and fewer when the fragment is shorter than the group or
    /// when only some members own shards.
    pub(super) of: u16,
    /// A part is a member's whole contribution, as it was encoded.
    pub(super) gathered: bool,
    /// How members score contributions. The scores of each come behind the contributions.
    pub(super) scoring: Option<Scoring>,
    /// Members contribute twice: for a basis that an owner makes of the first contributions.
    pub(super) two_passes: bool,
    /// All contributions are summed or none: they are masked.
    pub(super) whole: bool,
    /// In a grid: the shard that the group, a column, agrees on. Its parts are numbered from zero here
    /// and over the whole fragment in names of slices.
    pub(super) in_column: Option<ColumnShard>,
}

/// A column's shard of a fragment.
#[derive(Debug)]
pub(super) struct ColumnShard {
    /// The shard.
    pub(super) column: u16,
    /// Into how many shards the fragment is cut.
    pub(super) columns: u16,
    /// Members among whom parts are dealt in the first ballot.
    pub(super) owners: Vec<usize>,
    /// Time that is added to the wait for the rows, which have waits of their own.
    pub(super) longer: Duration,
    /// Arrival of the mean of this peer's row.
    pub(super) fed: Option<Time>,
    /// Samples behind the mean of this peer's row.
    pub(super) weight: f64,
    /// The note that goes behind the bytes of the first part, if this column decides one.
    pub(super) note: Option<Vec<u8>>,
    /// Where the column decides one: tallies of the contributions in the rows' means, by the rows' members.
    pub(super) tallies: SortedMap<usize, Vec<TallyEntry>>,
}

impl Scope {
    /// The subject of a round of this group about a fragment that is cut into `of` parts.
    pub(super) fn new(cx: &Context, fragment: FragmentId, group: Group, of: u16) -> Self {
        let (ordinary, agreement) = (group.follows_plan(), &cx.plan.agreement);
        Self {
            round: cx.round,
            fragment,
            of,
            gathered: cx.plan.exchange == ExchangeKind::Gathered && ordinary,
            scoring: agreement.scoring.filter(|_| ordinary),
            two_passes: agreement.passes.are_two() && ordinary,
            whole: agreement.whole && ordinary,
            group,
            in_column: None,
        }
    }

    /// It is the fragment, and not the shard of one column.
    pub(super) fn is_whole_fragment(&self) -> bool {
        self.in_column.is_none()
    }

    /// What a member of a column contributes is known once its row has summed it.
    pub(super) fn contributes_at_once(&self) -> bool {
        self.in_column.is_none()
    }

    /// The roll names members, so some are missing for a moment, and a column of few needs their
    /// votes. Other groups formed a moment ago: who is missing there is gone.
    pub(super) fn members_return(&self) -> bool {
        self.in_column.is_some()
    }

    /// Contributions take much longer than one message: of rows, second ones, or scores.
    pub(super) fn may_take_long(&self) -> bool {
        self.in_column.is_some() || self.two_passes || self.scores()
    }

    /// The owner of every part in the first ballot.
    pub(super) fn first_owners(&self, cx: &Context) -> Vec<usize> {
        let all = 0..self.group.len();
        match &self.in_column {
            Some(shard) => rotated(self.round, &shard.owners, self.of),
            // Each member owns its contribution, and what it says about those of the others.
            None if self.scores() => all.clone().chain(all).collect(),
            None => owners(cx, &self.group, self.of),
        }
    }

    pub(super) fn wait_for_contributions(
        &self,
        cx: &Context,
        program: Option<&Program>,
        lost: Members,
    ) -> Duration {
        let senders = program.map_or(!Members::NONE, Program::neighbours);
        let senders = senders.without(lost);
        let peers = self.group.others().filter(|(i, _)| senders.has(*i));
        let peers = peers.map(|(_, peer)| peer);
        let wait = Wait::Contributions;
        match (&self.in_column, program) {
            (Some(shard), _) => cx.deadlines.allow_mates(wait, peers) + shard.longer,
            (None, Some(program)) => cx.deadlines.allow_chain(wait, peers, program.hops),
            (None, None) => cx.deadlines.allow(wait, peers),
        }
    }

    /// Time that aggregates and votes are waited for, where members push directly to owners.
    pub(super) fn wait_for_votes(&self, cx: &Context) -> Duration {
        let peers = || self.group.other_peers();
        match &self.in_column {
            // Another member may have to wait for a row first, as long as this one might have.
            Some(shard) => {
                let rows = cx.deadlines.allow_mates(Wait::Contributions, peers());
                cx.deadlines.allow_mates(Wait::Agreement, peers()) + rows + shard.longer
            }
            // Owners wait twice for all members.
            None if self.two_passes => {
                let second = cx.deadlines.allow(Wait::Contributions, peers());
                cx.deadlines.allow(Wait::Agreement, peers()) + second
            }
            None => cx.deadlines.allow(Wait::Agreement, peers()),
        }
    }

    /// How long a contribution was waited for; that of a row only since this peer's own was done.
    pub(super) fn waited_since(&self, now: Time, began: Time) -> Duration {
        match &self.in_column {
            Some(shard) => shard.fed.map_or(Duration::ZERO, |fed| now.since(fed)),
            None => now.since(began),
        }
    }

    /// Members score one another's contributions.
    pub(super) fn scores(&self) -> bool {
        self.scoring.is_some()
    }

    /// So few contributions make no mean. Branches are averaged, whatever the rule for contributions is.
    pub(super) fn too_few(&self, plan: &Plan, bringing: usize) -> bool {
        // Masks cancel only where all are summed.
        let missing = self.whole && bringing < self.group.bringing().count();
        bringing == 0 || missing || (self.group.follows_plan() && plan.too_few(bringing))
    }

    pub(super) fn combination(&self, inputs: Vec<(SliceId, f64)>) -> Combination {
        if self.group.merges() {
            Combination::Average(inputs)
        } else {
            Combination::Reduce(inputs)
        }
    }

    /// The codec hears whether this peer's contributions counted: not those of a branch, nor of a row's mean.
    pub(super) fn settles(&self) -> bool {
        self.group.follows_plan() && self.in_column.is_none()
    }

    pub(super) fn contribution(&self, shard: u16, member: usize) -> SliceId {
        SliceId {
            round: self.round,
            fragment: self.fragment,
            shard: self.numbered(shard),
            part: match self.in_column {
                Some(_) => Part::RowMean,
                None => Part::Contribution,
            },
            origin: self.group.peer(member),
            attempt: Attempt::FIRST,
        }
    }

    pub(super) fn aggregate(&self, shard: u16, version: &ShardVersion) -> SliceId {
        SliceId {
            round: self.round,
            fragment: self.fragment,
            shard: self.numbered(shard),
            part: self.named(shard),
            origin: version.owner,
            attempt: version.attempt,
        }
    }

    pub(super) fn own_aggregate(&self, shard: u16, attempt: Attempt) -> SliceId {
        SliceId {
            part: self.named(shard),
            attempt,
            ..self.contribution(shard, self.group.me)
        }
    }

    pub(super) fn named(&self, part: u16) -> Part {
        if self.scores() && usize::from(part) >= self.group.len() {
            Part::Scores
        } else {
            Part::Aggregate
        }
    }

    pub(super) fn basis(&self, shard: u16, member: usize, attempt: Attempt) -> SliceId {
        SliceId {
            part: Part::Basis,
            attempt,
            ..self.contribution(shard, member)
        }
    }

    pub(super) fn second(&self, shard: u16, member: usize, attempt: Attempt) -> SliceId {
        SliceId {
            part: Part::Second,
            attempt,
            ..self.contribution(shard, member)
        }
    }

    pub(super) fn value(&self, shard: u16, member: usize, stage: usize) -> SliceId {
        let contribution = self.contribution(shard, member);
        match stage {
            0 => contribution,
            _ => SliceId {
                part: Part::Partial,
                attempt: Attempt(stage as u8),
                ..contribution
            },
        }
    }

    /// The number of a shard in names of slices.
    pub(super) fn numbered(&self, shard: u16) -> u16 {
        match &self.in_column {
            _ if self.gathered => 0,
            Some(own) => own.column * self.of + shard,
            None => shard,
        }
    }

    /// Into how many shards a slice's fragment is cut.
    pub(super) fn cut(&self) -> u16 {
        match &self.in_column {
            _ if self.gathered => 1,
            Some(own) => own.columns * self.of,
            None => self.of,
        }
    }

    /// The part that a slice is of: a shard, or its origin's contribution.
    pub(super) fn part_of(&self, slice: &SliceId) -> u16 {
        match &self.in_column {
            _ if self.gathered => {
                let index = self.group.index(slice.origin).unwrap_or(0);
                let behind = match slice.part {
                    Part::Scores => self.group.len(),
                    _ => 0,
                };
                (behind + index) as u16
            }
            // One of another column has a number that no part of this one has.
            Some(own) => slice.shard.wrapping_sub(own.column * self.of),
            None => slice.shard,
        }
    }

    /// A note goes behind a part's bytes.
    pub(super) fn is_noted(&self, shard: u16) -> bool {
        let noted = self.in_column.as_ref().is_some_and(|w| w.note.is_some());
        noted && shard == 0
    }

    /// The note that goes behind the bytes of the first part, the mean of these rows.
    pub(super) fn note_with(&self, rows: Members) -> Vec<u8> {
        let Some(own) = &self.in_column else {
            return Vec::new();
        };
        let known = rows.iter().filter_map(|row| own.tallies.get(&row));
        let entries: Vec<TallyEntry> = known.flatten().copied().collect();
        let change = own.note.clone().unwrap_or_default();
        RoundNote::join(change, Tally::of(&entries).to_bytes())
    }

    /// What members contribute: of their training, or their branch.
    pub(super) fn source(&self) -> Source {
        if self.whole {
            let bringing = self.group.bringing().iter();
            let member = |i: usize| (self.group.peer(i), self.group.members[i].said.weight);
            return Source::Masked(bringing.map(member).collect());
        }
        Source::Store(match self.group.merges() {
            true => StoreId::Branch,
            false if self.in_column.is_some() => StoreId::Row,
            false => StoreId::Local,
        })
    }

    pub(super) fn reduction(&self, shard: u16) -> StoreId {
        if self.group.merges() {
            StoreId::Merged(shard)
        } else {
            StoreId::Shard(self.numbered(shard))
        }
    }

    pub(super) fn ending(&self, aggregates: Vec<SliceId>) -> Ending {
        if self.group.merges() {
            Ending::Merge(aggregates)
        } else {
            Ending::Apply(aggregates)
        }
    }

    pub(super) fn left_out(&self, version: &ShardVersion) -> bool {
        self.gathered && version.contributors.is_empty()
    }

    /// Checks that a slice of this member fits the group; gives the members whose mean it is.
    pub(super) fn contributors_of(
        &self,
        index: usize,
        slice: &SliceId,
        meta: &SliceMeta,
        ballots: u8,
    ) -> Result<Members, PeerError> {
        let attempts = match slice.part {
            Part::Contribution | Part::RowMean | Part::Bundle => 1,
            Part::Aggregate => ballots,
            // No ballot makes scores again.
            Part::Scores => 1,
            Part::Basis | Part::Second => BALLOTS_MAX,
            Part::Partial => u8::MAX,
        };
        if meta.of != self.cut()
            || slice.shard >= self.cut()
            || (self.in_column.is_some() && self.part_of(slice) >= self.of)
            || slice.attempt.0 >= attempts
        {
            return broke("a slice that does not fit the group's shards");
        }
        let two_passes = self.two_passes;
        let contributors = match (slice.part, meta.tag) {
            (Part::Contribution, Tag::Contribution { .. }) if self.in_column.is_none() => {
                Members::NONE
            }
            // The weight of a row is its sender's word alone, so it is checked before it can scale
            // a mean.
            (Part::RowMean, Tag::RowMean { weight, .. }) if self.in_column.is_some() => {
                if !weight.is_finite() || weight <= 0.0 {
                    return broke("a row without weight");
                }
                Members::NONE
            }
            (Part::Partial | Part::Aggregate, Tag::Mean { members, .. }) => members,
            (Part::Scores, Tag::Mean { members, .. }) if self.scores() => members,
            (Part::Basis, Tag::Mean { members, .. }) if two_passes => members,
            (Part::Second, Tag::Contribution { .. }) if two_passes => Members::NONE,
            _ => return Err(foreign_tag(meta.tag, EXCHANGE)),
        };
        if self.gathered
            && (!matches!(slice.part, Part::Aggregate | Part::Scores)
                || contributors != Members::one(index))
        {
            return broke("a contribution that is not its sender's own");
        }
        Ok(contributors)
    }

    pub(super) fn contribution_meta(&self, bytes: u64) -> SliceMeta {
        let group = self.group.tag;
        SliceMeta {
            of: self.cut(),
            bytes,
            tag: match &self.in_column {
                Some(ColumnShard { weight, .. }) => Tag::RowMean {
                    group,
                    weight: *weight,
                },
                None => Tag::Contribution { group },
            },
        }
    }

    pub(super) fn mean_meta(&self, bytes: u64, members: Members) -> SliceMeta {
        let group = self.group.tag;
        SliceMeta {
            of: self.cut(),
            bytes,
            tag: Tag::Mean { group, members },
        }
    }

    /// Samples behind these members' contributions.
    pub(super) fn weight(&self, set: Members) -> f64 {
        let known = set.iter().filter_map(|i| self.group.members.get(i));
        known.map(|member| member.said.weight).sum()
    }

    /// Versions of this number stand for all parts or, with none, for a void round.
    pub(super) fn may_decide(&self, versions: usize) -> bool {
        // A decision on some parts would leave members with anchors of two rounds.
        versions == 0 || versions == usize::from(self.of)
    }

    pub(super) fn names_members(&self, shards: &[ShardPlan]) -> bool {
        let member = |peer: &PeerId| self.group.index(*peer).is_some();
        shards.iter().all(|plan| match plan {
            ShardPlan::Keep { version, holder } => member(&version.owner) && member(holder),
            ShardPlan::Redo { owner } => member(owner),
        })
    }

    /// In a grid: says whose contributions the mean of this peer's row holds to the member that makes the note.
    pub(super) fn tell_tally(&self, cx: &mut Context, shard: u16, owner: usize) {
        let noted = self.in_column.as_ref().filter(|_| self.is_noted(shard));
        let own = noted.and_then(|noted| noted.tallies.get(&self.group.me));
        if let Some(entries) = own.filter(|entries| !entries.is_empty()) {
            let tally = FragmentMessage::Tally(entries.clone());
            self.send(cx, self.group.peer(owner), tally);
        }
    }

    /// In a grid: another member says whose contributions the mean of its row holds.
    pub(super) fn on_tally(
        &mut self,
        from: PeerId,
        entries: &[TallyEntry],
    ) -> Result<(), PeerError> {
        let index = self.group.index(from);
        let noted = self.in_column.as_mut().filter(|own| own.note.is_some());
        let (Some(index), Some(noted)) = (index, noted) else {
            return broke("contributions of a row where no note is made");
        };
        noted.tallies.insert(index, entries.to_vec());
        Ok(())
    }

    /// Reports the contributors to each part of the decision, with their weights.
    pub(super) fn emit_decided(
        &self,
        cx: &mut Context,
        ballot: u8,
        contributors: Vec<Vec<(PeerId, f64)>>,
    ) {
        let (round, fragment) = (self.round, self.fragment);
        cx.emit(Event::Decided {
            round,
            fragment,
            ballot,
            contributors,
        });
    }

    pub(super) fn send(&self, cx: &mut Context, to: PeerId, body: FragmentMessage) {
        cx.send(to, self.scoped(body));
    }

    pub(super) fn send_all(&self, cx: &mut Context, body: &FragmentMessage) {
        for peer in self.group.other_peers() {
            self.send(cx, peer, body.clone());
        }
    }

    pub(super) fn scoped(&self, body: FragmentMessage) -> Scoped {
        Scoped {
            round: self.round,
            fragment: self.fragment,
            group: self.group.tag,
            body,
        }
    }
}

/// The owners of a column's parts: as many members as there are parts, others in each round.
fn rotated(round: Round, members: &[usize], of: u16) -> Vec<usize> {
    let of = usize::from(of);
    let first = (round.0 as usize).wrapping_mul(of);
    let at = |part| first.wrapping_add(part) % members.len().max(1);
    let owners = (0..of).filter_map(|part| members.get(at(part)));
    owners.copied().collect()
}
