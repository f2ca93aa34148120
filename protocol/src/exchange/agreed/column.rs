//! A column of a grid: its members agree on one shard of a fragment. Everything that a group of the
//! whole fragment does holds for it, with the means of rows in place of contributions.

use super::fragment::FragmentRound;
use super::group::Group;
use super::member::Member;
use super::message::FragmentMessage;
use super::scope::{ColumnShard, Reduce, Scope};
use crate::core::context::Context;
use crate::sorted::SortedMap;
use crate::{FragmentId, GroupTag, Members, PeerId, TallyEntry};
use core::time::Duration;

/// A column's shard of its fragment, and the parts that it is cut into.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) column: u16,
    pub(crate) columns: u16,
    /// Into how many parts its shard is cut.
    pub(crate) parts: u16,
    /// The members among whom these are dealt, in `PeerId` order.
    pub(crate) owners: Vec<PeerId>,
    /// Set where it decides a note beside the parameters.
    pub(crate) noted: bool,
}

/// The agreement of a column.
#[derive(Debug)]
pub(crate) struct GridColumn {
    pub(crate) round: FragmentRound,
}

impl GridColumn {
    /// Begins, with members in `PeerId` order. `longer` is added to the wait for the rows.
    pub(crate) fn new(
        cx: &mut Context,
        fragment: FragmentId,
        members: &[PeerId],
        tag: GroupTag,
        shape: &Shape,
        longer: Duration,
    ) -> Self {
        // A row's weight is known with its mean. Until then it counts as one that contributes.
        let all = members.iter().map(|peer| Member::new(*peer, 1.0));
        let group = Group::new(&cx.plan, cx.round, all.collect(), cx.me());
        let mut group = group.expect("a peer is in its own column");
        group.tag = tag;
        // One that came back a moment ago is not waited for, but may vote.
        let unsure = group.others().filter(|(_, peer)| !cx.view.serves(*peer));
        let lost = unsure.map(|(index, _)| index).collect();
        let owners = shape.owners.iter().filter_map(|peer| group.index(*peer));
        let shard = ColumnShard {
            column: shape.column,
            columns: shape.columns,
            owners: owners.collect(),
            longer,
            fed: None,
            weight: 0.0,
            note: shape.noted.then(Vec::new),
            tallies: SortedMap::new(),
        };
        let scope = Scope {
            round: cx.round,
            fragment,
            group,
            of: shape.parts,
            reduce: Reduce::Column(shard),
        };
        let round = FragmentRound::about(cx, scope, None, lost);
        Self { round }
    }

    /// The mean of this peer's row lies in the Executor. `tally` says whose contributions it holds.
    pub(crate) fn feed(&mut self, cx: &mut Context, weight: f64, tally: Vec<TallyEntry>) {
        let me = self.round.scope.group.me;
        if let Some(shard) = self.round.scope.column_mut() {
            shard.weight = weight;
            shard.fed = Some(cx.now);
            shard.tallies.insert(me, tally);
        }
        self.round.scope.group.members[me].said.weight = weight;
        self.round.encode_all(cx);
        self.round.advance(cx);
    }

    /// This peer's row brings nothing: its column need not wait for it.
    pub(crate) fn pass(&mut self, cx: &mut Context) {
        self.round.brings_nothing(self.round.scope.group.me);
        for peer in self.round.scope.group.other_peers() {
            if cx.view.takes_part(peer) {
                self.round.scope.send(cx, peer, FragmentMessage::Nothing);
            }
        }
        self.round.advance(cx);
    }

    /// Sets what to decide beside the parameters, while that is open.
    pub(crate) fn set_note(&mut self, note: Vec<u8>) {
        if let Some(shard) = self.round.scope.column_mut()
            && shard.note.is_some()
        {
            shard.note = Some(note);
        }
    }

    /// The member that makes the note in the first ballot.
    pub(crate) fn notary(&self) -> Option<PeerId> {
        let target = self.round.targets.first()?;
        Some(self.round.scope.group.peer(target.owner))
    }

    /// The rows whose contributions are in every decided part, in the order of the members.
    pub(crate) fn rows(&self) -> Members {
        let all = self.round.scope.group.all();
        let versions = self.round.agreement.decided.iter().flat_map(|(_, v)| v);
        versions.fold(all, |rows, version| rows & version.contributors)
    }

    /// This peer's row is in every decided part.
    pub(crate) fn has_own_row(&self) -> bool {
        self.rows().has(self.round.scope.group.me)
    }
}
