//! Which neighbours' messages count in a mix or a message, and with which weights.

use super::edge::Edge;
use super::message::Served;
use super::state::RelaySum;
use crate::exchange::neighbours::mix::FragmentMix;
use crate::exchange::neighbours::mixture::Mixture;
use crate::{FragmentId, PeerId, SliceId};

impl RelaySum {
    /// What counts of a fragment, in `PeerId` order, each with its weight: the count that its
    /// sender gave, but no more than the number of peers behind it. Behind a child that is none in
    /// this peer's view may lie all others.
    pub(super) fn counting(&self, fragment: FragmentId) -> Vec<(PeerId, SliceId, u32)> {
        let Some(tree) = &self.tree else {
            return Vec::new();
        };
        let near = tree.place(fragment).near().filter_map(|near| {
            let edge = self.edges.get(&(fragment, near.peer))?;
            Some((near.peer, edge, near.behind))
        });
        let others = (tree.count() - 1).max(1);
        let strays = self.strays(fragment);
        let all = near.chain(strays.map(|(peer, edge)| (peer, edge, others)));
        let mut counting: Vec<(PeerId, SliceId, u32)> = all
            .filter_map(|(peer, edge, most)| {
                let (slice, count) = edge.held()?;
                // A message weighs no more than the peers behind its sender, even where an old one
                // counts beside a new one.
                Some((peer, slice, count.min(most)))
            })
            .collect();
        counting.sort_unstable_by_key(|(peer, ..)| *peer);
        counting
    }

    /// Peers that take this one for their parent, though in this peer's view it is not.
    pub(super) fn strays(&self, fragment: FragmentId) -> impl Iterator<Item = (PeerId, &Edge)> {
        let place = self.tree.as_ref().map(|tree| tree.place(fragment));
        let near = move |peer: PeerId| place.is_some_and(|place| place.is_near(peer));
        let edges = self.edges.iter();
        edges
            .filter(move |((of, peer), edge)| *of == fragment && edge.is_child() && !near(*peer))
            .map(|((_, peer), edge)| (*peer, edge))
    }

    /// The mean of what counts. This peer's parameters replace missing parts of the tree. Void if a
    /// message could not be made, because the parameters are not finite.
    pub(super) fn mean_of_all(&self, mix: &FragmentMix<Served>) -> Option<Mixture> {
        if mix.failed {
            return None;
        }
        let counting = self.counting(mix.fragment);
        let others: u32 = counting.iter().map(|(.., weight)| weight).sum();
        let neighbours = counting.len() as u32;
        let inputs = counting.into_iter();
        let inputs = inputs.map(|(_, slice, weight)| (slice, f64::from(weight)));
        // With children that this peer did not know of, more peers may count than it knows.
        let missing = self.tree.as_ref()?.count().saturating_sub(others).max(1);
        Some(Mixture {
            order: mix.mean(f64::from(missing), inputs.collect()),
            neighbours,
            weight: f64::from(1 + others),
        })
    }
}
