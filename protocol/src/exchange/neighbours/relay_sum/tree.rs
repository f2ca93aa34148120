//! Where one peer stands in the tree that sums travel along, by its own view.

use crate::core::context::Context;
use crate::exchange::neighbours::ranks::Ranks;
use crate::{FragmentId, PeerId, SpanningTree, Topology};

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
    /// The peers whose parent this one is, where they have the same view.
    children: Vec<Near>,
}

impl Place {
    pub(super) fn near(&self) -> impl Iterator<Item = &Near> {
        self.parent.iter().chain(&self.children)
    }

    pub(super) fn is_near(&self, peer: PeerId) -> bool {
        self.near().any(|near| near.peer == peer)
    }
}

/// The tree over all peers that take part.
#[derive(Debug)]
pub(super) struct Tree {
    shape: SpanningTree,
    members: Ranks,
    /// Of even fragments, whose parents have lower ids, and of odd ones, whose parents have higher.
    places: [Place; 2],
}

impl Tree {
    /// The tree by this peer's view, after `old`; and whether it is over other peers. `relays` says
    /// which peers do their part in which of the two trees.
    pub(super) fn of(
        old: Option<Self>,
        cx: &Context,
        topology: &dyn Topology,
        relays: impl Fn(usize, PeerId) -> bool,
    ) -> (Self, bool) {
        // Suspected peers included: they are passed over one by one, and the tree keeps its shape.
        let others = cx.view.greeted().filter(|(_, remote)| remote.ready);
        let members = Ranks::among(cx.me(), others.map(|(id, _)| id));
        let same = old.as_ref().is_some_and(|old| old.members == members);
        // A shape depends on the number of peers alone, and making one takes time.
        let kept = old.filter(|old| old.members.count() == members.count());
        let shape = kept.map_or_else(
            || SpanningTree::of(topology, members.count()),
            |old| old.shape,
        );
        let last = members.count() - 1;
        let even = place(
            &shape,
            members.me(),
            |rank| members.peer(rank),
            |id| relays(0, id),
        );
        let reversed = |rank: usize| members.peer(last.checked_sub(rank)?);
        let odd = place(&shape, last - members.me(), reversed, |id| relays(1, id));
        let tree = Self {
            shape,
            places: [even, odd],
            members,
        };
        (tree, !same)
    }

    pub(super) fn place(&self, fragment: FragmentId) -> &Place {
        &self.places[usize::from(fragment.0 % 2)]
    }

    /// How many peers there are, this one included.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.members.count()).unwrap_or(u32::MAX)
    }
}

/// The place of a rank. A parent that does not relay is passed over: for its own parent and so on,
/// then for the lowest rank below that relays. Ids on the way to the root only fall (rise, in odd
/// fragments), so that no two views make a circle.
fn place(
    shape: &SpanningTree,
    rank: usize,
    id: impl Fn(usize) -> Option<PeerId>,
    relays: impl Fn(PeerId) -> bool,
) -> Place {
    let relays = |of: &usize| id(*of).is_some_and(&relays);
    let near = |of: usize, behind: usize| {
        Some(Near {
            peer: id(of)?,
            behind: u32::try_from(behind).ok()?,
        })
    };
    let above = std::iter::successors(shape.parent(rank), |of| shape.parent(*of));
    let is_root = shape.parent(rank).is_none();
    let instead = (0..rank).filter(|_| !is_root);
    let parent = above.chain(instead).find(relays);
    let children = shape.children(rank).iter();
    Place {
        parent: parent.and_then(|of| near(of, shape.len() - shape.size(rank))),
        children: children
            .filter_map(|of| near(*of, shape.size(*of)))
            .collect(),
    }
}

/// The order of ids in a fragment's tree allows this parent.
pub(super) fn may_be_above(fragment: FragmentId, parent: PeerId, child: PeerId) -> bool {
    match fragment.0 % 2 {
        0 => parent < child,
        _ => parent > child,
    }
}
