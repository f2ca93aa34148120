//! Where one peer stands in the tree that sums travel along, by its own view.

use crate::core::context::Context;
use crate::{FragmentId, PeerId, SpanningTree, Topology};

/// A neighbour in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Near {
    pub(super) peer: PeerId,
    /// How many peers lie behind the edge to it: its message weighs no more.
    pub(super) behind: u32,
}

/// One peer's place in one of the two trees.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// The neighbour on the way to the root; none at a root.
    pub(super) parent: Option<Near>,
    /// Those whose parent it is where they have the same view.
    pub(super) children: Vec<Near>,
}

/// The tree over all peers that take part.
#[derive(Debug)]
pub(super) struct Tree {
    ranks: SpanningTree,
    members: Vec<PeerId>,
    /// Of even fragments, whose parents have lower ids, and of odd ones, where they have higher ones.
    places: [Place; 2],
}

impl Tree {
    /// The tree by this peer's view, after `old`; and whether it is over another list of peers. `does` says
    /// who does its part in which of the two trees.
    pub(super) fn of(
        old: Option<Self>,
        cx: &Context,
        topology: &dyn Topology,
        does: impl Fn(usize, PeerId) -> bool,
    ) -> (Self, bool) {
        let others = cx.view.greeted().filter(|(_, remote)| remote.ready);
        let mut members: Vec<PeerId> = others.map(|(id, _)| id).collect();
        let rank = members.partition_point(|id| *id < cx.me());
        members.insert(rank, cx.me());
        let same = old.as_ref().is_some_and(|old| old.members == members);
        let kept = old.filter(|old| old.members.len() == members.len());
        let ranks = kept.map_or_else(
            || SpanningTree::of(topology, members.len()),
            |old| old.ranks,
        );
        let last = members.len() - 1;
        let member = |rank: usize| members.get(rank).copied();
        let even = place(&ranks, rank, member, |id| does(0, id));
        let reversed = |rank: usize| member(last.checked_sub(rank)?);
        let odd = place(&ranks, last - rank, reversed, |id| does(1, id));
        let tree = Self {
            ranks,
            places: [even, odd],
            members,
        };
        (tree, !same)
    }

    /// Where this peer stands in a fragment's tree.
    pub(super) fn place(&self, fragment: FragmentId) -> &Place {
        &self.places[usize::from(fragment.0 % 2)]
    }

    /// How many peers there are, this one among them.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.members.len()).unwrap_or(u32::MAX)
    }
}

/// The place of a rank. A parent that does not do its part is passed over: for its own parent and so on, then
/// for the lowest rank below that does. Ids on the way to the root only fall (or rise, in odd fragments), so that
/// no two views make a circle.
fn place(
    ranks: &SpanningTree,
    rank: usize,
    id: impl Fn(usize) -> Option<PeerId>,
    does: impl Fn(PeerId) -> bool,
) -> Place {
    let does = |of: &usize| id(*of).is_some_and(&does);
    let near = |of: usize, behind: usize| {
        Some(Near {
            peer: id(of)?,
            behind: u32::try_from(behind).ok()?,
        })
    };
    let above = std::iter::successors(ranks.parent(rank), |of| ranks.parent(*of));
    let is_root = ranks.parent(rank).is_none();
    let instead = (0..rank).filter(|_| !is_root);
    let parent = above.chain(instead).find(does);
    let children = ranks.children(rank).iter();
    Place {
        parent: parent.and_then(|of| near(of, ranks.len() - ranks.size(rank))),
        children: children
            .filter_map(|of| near(*of, ranks.size(*of)))
            .collect(),
    }
}

/// Whether a parent in a fragment's tree may have this id.
pub(super) fn may_be_above(fragment: FragmentId, parent: PeerId, child: PeerId) -> bool {
    match fragment.0 % 2 {
        0 => parent < child,
        _ => parent > child,
    }
}
