//! What a peer keeps from round to round: the tree, and what is here of each neighbour.

use super::edge::Edge;
use super::message::{Sent, Served};
use super::tree::Tree;
use crate::core::context::Context;
use crate::exchange::neighbours::ledger::SliceLedger;
use crate::exchange::neighbours::mix::FragmentMix;
use crate::{FragmentId, Order, PeerId, SliceId, Topology};
use std::collections::BTreeMap;

/// The rule of relayed sums.
pub(in crate::exchange::neighbours) struct RelaySum {
    topology: Box<dyn Topology>,
    /// The tree of this round.
    pub(super) tree: Option<Tree>,
    pub(super) edges: BTreeMap<(FragmentId, PeerId), Edge>,
    /// Messages whose push is under way.
    pub(super) sent: SliceLedger<Sent>,
}

impl RelaySum {
    pub(in crate::exchange::neighbours) fn new(topology: Box<dyn Topology>) -> Self {
        Self {
            topology,
            tree: None,
            edges: BTreeMap::new(),
            sent: SliceLedger::default(),
        }
    }

    /// The tree of the round by this peer's view; true where it is over other peers than before.
    pub(super) fn grow_tree(&mut self, cx: &Context) -> bool {
        let relays = |parity: usize, peer: PeerId| {
            let edges = self.edges.iter();
            let of = |fragment: FragmentId| usize::from(fragment.0 % 2) == parity;
            let mut edges = edges.filter(|((f, id), _)| *id == peer && of(*f));
            let suspected = cx.view.get(peer).is_none_or(|remote| remote.suspected);
            // While a message of it counts, another parent would add the same peers a second time.
            edges.clone().any(|(_, edge)| edge.held().is_some())
                || !(suspected || edges.any(|(_, edge)| edge.is_silent()))
        };
        let (tree, changed) = Tree::of(self.tree.take(), cx, &*self.topology, relays);
        self.tree = Some(tree);
        changed
    }

    /// The tree is over other peers: peers that are no longer neighbours have another parent, and
    /// every neighbour is awaited again.
    pub(super) fn part(&mut self, cx: &mut Context) {
        let Some(tree) = &self.tree else {
            return;
        };
        for ((fragment, peer), edge) in &mut self.edges {
            (edge.missed, edge.unanswered) = (0, 0);
            if !tree.place(*fragment).is_near(*peer) {
                release(cx, edge.part(cx.round));
            }
        }
    }

    /// From here on what came for this round counts, and with it what is relayed in the next.
    pub(super) fn collect(&mut self, cx: &mut Context, mix: &FragmentMix<Served>) {
        let parent = self.parent(mix.fragment);
        let edges = self.edges.iter_mut();
        for ((_, peer), edge) in edges.filter(|((of, _), _)| *of == mix.fragment) {
            release(cx, edge.take(parent == Some(*peer), mix.round));
        }
    }

    pub(super) fn parent(&self, fragment: FragmentId) -> Option<PeerId> {
        let place = self.tree.as_ref()?.place(fragment);
        place.parent.map(|near| near.peer)
    }

    /// A slice is bad: true where it counted, and no longer does.
    pub(super) fn forget(&mut self, cx: &mut Context, fragment: FragmentId, bad: SliceId) -> bool {
        let edge = self.edges.get_mut(&(fragment, bad.origin));
        let counted = edge.is_some_and(|edge| edge.forget(bad));
        if counted {
            release(cx, [bad]);
        }
        counted
    }
}

pub(super) fn release(cx: &mut Context, slices: impl IntoIterator<Item = SliceId>) {
    for slice in slices {
        cx.order(Order::Release { slice });
    }
}
