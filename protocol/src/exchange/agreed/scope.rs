//! What a fragment's round is about, and the names and headers that follow from it.

use super::group::Group;
use super::member::{ShardPlan, ShardVersion};
use super::message::{FragmentMessage, Scoped};
use super::owners::{equal, owners};
use crate::core::context::Context;
use crate::data::Tally;
use crate::exchange::{broke, forbid, foreign_tag};
use crate::limits::BALLOTS_MAX;
use crate::roll::RoundNote;
use crate::schedule::Program;
use crate::sorted::SortedMap;
use crate::{
    Attempt, Checked, Combination, Ending, Event, ExchangeKind, FragmentId, Members, Part,
    PeerError, PeerId, Piece, Plan, Round, Scoring, SliceId, SliceMeta, Source, StoreId, Tag,
    TallyEntry, Time, Wait,
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
    pub(super) reduce: Reduce,
}

/// How the members of a group make the result of a fragment. It is chosen when the fragment's round is built;
/// from then on neither the plan nor the group is asked about it.
#[derive(Debug)]
pub(super) enum Reduce {
    /// Means of shards: by their owners, or along a schedule while ballot zero follows one.
    Means,
    /// Sums of masked contributions by owners: of all contributions or of none.
    Masked,
    /// Members contribute twice: for a basis that an owner makes of the first contributions.
    TwoPasses,
    /// Every member combines the whole contributions of all, as they were encoded. Where members score
    /// contributions, the scores of each come behind the contributions.
    Gathered(Option<Scoring>),
    /// In a grid: means of the rows' means, for the shard that the group, a column, agrees on. Its parts are
    /// numbered from zero here and over the whole fragment in names of slices.
    Column(ColumnShard),
    /// After a split: the mean of branches, whatever the plan's rule for contributions is.
    Branches,
}

impl Reduce {
    /// How a group reduces a whole fragment.
    pub(super) fn of(plan: &Plan, group: &Group) -> Self {
        let agreement = &plan.agreement;
        if !group.follows_plan() {
            Self::Branches
        } else if plan.exchange == ExchangeKind::Gathered {
            Self::Gathered(agreement.scoring)
        } else if agreement.passes.are_two() {
            Self::TwoPasses
        } else if agreement.whole {
            Self::Masked
        } else {
            Self::Means
        }
    }

    /// Into how many parts a fragment of `len` values is cut: one for each member in a merge.
    pub(super) fn parts(&self, plan: &Plan, len: u64, members: usize) -> u16 {
        match self {
            Self::Branches => (members as u64).min(len) as u16,
            _ => plan.parts(len, members) as u16,
        }
    }
}

/// A column's shard of a fragment, and the state of its rows.
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

impl ColumnShard {
    /// The owners of its parts: as many members as there are parts, others in each round.
    fn first_owners(&self, round: Round, of: u16) -> Vec<usize> {
        let (members, of) = (&self.owners, usize::from(of));
        let first = (round.0 as usize).wrapping_mul(of);
        let at = |part| first.wrapping_add(part) % members.len().max(1);
        let owners = (0..of).filter_map(|part| members.get(at(part)));
        owners.copied().collect()
    }

    /// The note that goes behind the bytes of the first part, the mean of these rows.
    fn note_with(&self, rows: Members) -> Vec<u8> {
        let known = rows.iter().filter_map(|row| self.tallies.get(&row));
        let entries: Vec<TallyEntry> = known.flatten().copied().collect();
        let change = self.note.clone().unwrap_or_default();
        RoundNote::join(change, Tally::of(&entries).to_bytes())
    }
}

impl Scope {
    /// In a grid: the shard that the group agrees on.
    pub(super) fn column(&self) -> Option<&ColumnShard> {
        match &self.reduce {
            Reduce::Column(shard) => Some(shard),
            _ => None,
        }
    }

    /// As [`Scope::column`].
    pub(super) fn column_mut(&mut self) -> Option<&mut ColumnShard> {
        match &mut self.reduce {
            Reduce::Column(shard) => Some(shard),
            _ => None,
        }
    }

    /// It is the fragment, and not the shard of one column.
    pub(super) fn is_whole_fragment(&self) -> bool {
        self.column().is_none()
    }

    /// The roll names members, so some are missing for a moment, and a column of few needs their
    /// votes. Other groups formed a moment ago: who is missing there is gone.
    pub(super) fn members_return(&self) -> bool {
        self.column().is_some()
    }

    /// A part is a member's whole contribution, as it was encoded.
    pub(super) fn is_gathered(&self) -> bool {
        matches!(self.reduce, Reduce::Gathered(_))
    }

    /// All contributions are summed or none: they are masked.
    pub(super) fn is_masked(&self) -> bool {
        matches!(self.reduce, Reduce::Masked)
    }

    /// Contributions take much longer than one message: of rows, second ones, or scores.
    pub(super) fn may_take_long(&self) -> bool {
        let long = matches!(self.reduce, Reduce::Column(_) | Reduce::TwoPasses);
        long || self.scores()
    }

    /// The owner of every part in the first ballot.
    pub(super) fn first_owners(&self, cx: &Context) -> Vec<usize> {
        match &self.reduce {
            Reduce::Column(shard) => shard.first_owners(self.round, self.of),
            Reduce::Gathered(Some(_)) => {
                // Each member owns its contribution, and what it says about those of the others.
                let all = 0..self.group.len();
                all.clone().chain(all).collect()
            }
            Reduce::Branches => equal(cx, &self.group, self.of),
            _ => owners(cx, &self.group, self.of),
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
        match (&self.reduce, program) {
            (Reduce::Column(shard), _) => cx.deadlines.allow_alike(wait, peers) + shard.longer,
            (_, Some(program)) => cx.deadlines.allow_chain(wait, peers, program.hops),
            (_, None) => cx.deadlines.allow(wait, peers),
        }
    }

    /// Time that contributions to shards that a ballot has reduced again are waited for.
    pub(super) fn wait_for_repeated(&self, cx: &Context) -> Duration {
        let peers = self.group.other_peers();
        let allowed = cx.deadlines.allow(Wait::Contributions, peers);
        match self.reduce {
            // A shard that is reduced again goes through both passes.
            Reduce::TwoPasses => allowed * 2,
            _ => allowed,
        }
    }

    /// Time that aggregates and votes are waited for, where members push directly to owners.
    pub(super) fn wait_for_votes(&self, cx: &Context) -> Duration {
        let peers = || self.group.other_peers();
        match &self.reduce {
            // Another member may have to wait for a row first, as long as this one might have.
            Reduce::Column(shard) => {
                let rows = cx.deadlines.allow_alike(Wait::Contributions, peers());
                cx.deadlines.allow_alike(Wait::Agreement, peers()) + rows + shard.longer
            }
            // Owners wait twice for all members.
            Reduce::TwoPasses => {
                let second = cx.deadlines.allow(Wait::Contributions, peers());
                cx.deadlines.allow(Wait::Agreement, peers()) + second
            }
            _ => cx.deadlines.allow(Wait::Agreement, peers()),
        }
    }

    /// How long a contribution was waited for; that of a row only since this peer's own was done.
    pub(super) fn waited_since(&self, now: Time, began: Time) -> Duration {
        match self.column() {
            Some(shard) => shard.fed.map_or(Duration::ZERO, |fed| now.since(fed)),
            None => now.since(began),
        }
    }

    /// Members score one another's contributions.
    pub(super) fn scores(&self) -> bool {
        matches!(self.reduce, Reduce::Gathered(Some(_)))
    }

    /// Batches of the sample by which members score.
    pub(super) fn batches(&self) -> u16 {
        match self.reduce {
            Reduce::Gathered(Some(scoring)) => scoring.batches,
            _ => 1,
        }
    }

    /// So few contributions make no mean.
    pub(super) fn too_few(&self, plan: &Plan, bringing: usize) -> bool {
        bringing == 0
            || match self.reduce {
                Reduce::Branches => false,
                // Masks cancel only where all are summed.
                Reduce::Masked if bringing < self.group.bringing().count() => true,
                _ => plan.too_few(bringing),
            }
    }

    /// A shard, as the Executor knows it.
    pub(super) fn piece(&self, shard: u16) -> Piece {
        Piece {
            fragment: self.fragment,
            shard: self.numbered(shard),
            of: self.cut(),
        }
    }

    pub(super) fn combination(&self, inputs: Vec<(SliceId, f64)>) -> Combination {
        match self.reduce {
            Reduce::Branches => Combination::Average(inputs),
            _ => Combination::Reduce(inputs),
        }
    }

    pub(super) fn contribution(&self, shard: u16, member: usize) -> SliceId {
        SliceId {
            round: self.round,
            fragment: self.fragment,
            shard: self.numbered(shard),
            part: match self.reduce {
                Reduce::Column(_) => Part::RowMean,
                _ => Part::Contribution,
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
        match &self.reduce {
            Reduce::Gathered(_) => 0,
            Reduce::Column(own) => own.column * self.of + shard,
            _ => shard,
        }
    }

    /// Into how many shards a slice's fragment is cut.
    pub(super) fn cut(&self) -> u16 {
        match &self.reduce {
            Reduce::Gathered(_) => 1,
            Reduce::Column(own) => own.columns * self.of,
            _ => self.of,
        }
    }

    /// The part that a slice is of: a shard, or its origin's contribution.
    pub(super) fn part_of(&self, slice: &SliceId) -> u16 {
        match &self.reduce {
            Reduce::Gathered(_) => {
                let index = self.group.index(slice.origin).unwrap_or(0);
                let behind = match slice.part {
                    Part::Scores => self.group.len(),
                    _ => 0,
                };
                (behind + index) as u16
            }
            // One of another column has a number that no part of this one has.
            Reduce::Column(own) => slice.shard.wrapping_sub(own.column * self.of),
            _ => slice.shard,
        }
    }

    /// A note goes behind a part's bytes.
    pub(super) fn is_noted(&self, shard: u16) -> bool {
        shard == 0 && self.column().is_some_and(|own| own.note.is_some())
    }

    /// What members contribute: of their training, or their branch.
    pub(super) fn source(&self) -> Source {
        Source::Store(match self.reduce {
            Reduce::Masked => {
                let bringing = self.group.bringing().iter();
                let member = |i: usize| (self.group.peer(i), self.group.members[i].said.weight);
                return Source::Masked(bringing.map(member).collect());
            }
            Reduce::Branches => StoreId::Branch,
            Reduce::Column(_) => StoreId::Row,
            _ => StoreId::Local,
        })
    }

    pub(super) fn reduction(&self, shard: u16) -> StoreId {
        match self.reduce {
            Reduce::Branches => StoreId::Merged(shard),
            _ => StoreId::Shard(self.numbered(shard)),
        }
    }

    pub(super) fn ending(&self, aggregates: Vec<SliceId>) -> Ending {
        match self.reduce {
            Reduce::Branches => Ending::Merge(aggregates),
            _ => Ending::Apply(aggregates),
        }
    }

    pub(super) fn left_out(&self, version: &ShardVersion) -> bool {
        self.is_gathered() && version.contributors.is_empty()
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
            || (!self.is_whole_fragment() && self.part_of(slice) >= self.of)
            || slice.attempt.0 >= attempts
        {
            return broke("a slice that does not fit the group's shards");
        }
        let two_passes = matches!(self.reduce, Reduce::TwoPasses);
        let contributors = match (slice.part, meta.tag) {
            (Part::Contribution, Tag::Contribution { .. }) if self.is_whole_fragment() => {
                Members::NONE
            }
            // The weight of a row is its sender's word alone, so it is checked before it can scale
            // a mean.
            (Part::RowMean, Tag::RowMean { weight, .. }) if !self.is_whole_fragment() => {
                forbid(!weight.is_finite() || weight <= 0.0, "a row without weight")?;
                Members::NONE
            }
            (Part::Partial | Part::Aggregate, Tag::Mean { members, .. }) => members,
            (Part::Scores, Tag::Mean { members, .. }) if self.scores() => members,
            (Part::Basis, Tag::Mean { members, .. }) if two_passes => members,
            (Part::Second, Tag::Contribution { .. }) if two_passes => Members::NONE,
            _ => return Err(foreign_tag(meta.tag, EXCHANGE)),
        };
        if self.is_gathered()
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
            tag: match self.column() {
                Some(own) => Tag::RowMean {
                    group,
                    weight: own.weight,
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

    /// The note behind a part's bytes, the mean of these rows' contributions; `None` for a part without one.
    pub(super) fn note_behind(&self, shard: u16, rows: Members) -> Option<Vec<u8>> {
        let own = self.column().filter(|_| self.is_noted(shard))?;
        Some(own.note_with(rows))
    }

    /// Says whose contributions the mean of this peer's row holds to the member that makes the note.
    pub(super) fn tell_tally(&self, cx: &mut Context, shard: u16, owner: usize) {
        let noted = self.column().filter(|_| self.is_noted(shard));
        let own = noted.and_then(|noted| noted.tallies.get(&self.group.me));
        if let Some(entries) = own.filter(|entries| !entries.is_empty()) {
            let tally = FragmentMessage::Tally(entries.clone());
            self.send(cx, self.group.peer(owner), tally);
        }
    }

    /// Another member says whose contributions the mean of its row holds.
    pub(super) fn on_tally(&mut self, from: PeerId, entries: &[TallyEntry]) -> Checked {
        let index = self.group.index(from);
        let noted = self.column_mut().filter(|own| own.note.is_some());
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
