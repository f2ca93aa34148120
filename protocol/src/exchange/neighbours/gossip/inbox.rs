//! Slices that arrived and are not mixed yet, bounded for each sender.

use crate::exchange::neighbours::slices::unexpected;
use crate::limits::INBOX_SLICES_MAX;
use crate::{FragmentId, PeerError, PeerId, Round, SliceId};
use std::collections::BTreeMap;

/// A slice that arrived and is not mixed yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) from: PeerId,
    pub(super) slice: SliceId,
    pub(super) weight: f64,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    slices: Vec<Waiting>,
    count_of: BTreeMap<PeerId, usize>,
}

impl Inbox {
    /// Takes a slice in; false where it is here already.
    ///
    /// # Errors
    /// When its sender has too many slices here for a plan with this number of fragments.
    pub(super) fn put(&mut self, waiting: Waiting, fragments: usize) -> Result<bool, PeerError> {
        if self.slices.iter().any(|w| w.slice == waiting.slice) {
            return Ok(false);
        }
        let count = self.count_of.entry(waiting.from).or_default();
        if *count >= INBOX_SLICES_MAX * fragments {
            return unexpected("too many gossip slices at once");
        }
        *count += 1;
        self.slices.push(waiting);
        Ok(true)
    }

    /// Who has pushed a fragment of this round or a later one.
    pub(super) fn senders(
        &self,
        fragment: FragmentId,
        round: Round,
    ) -> impl Iterator<Item = PeerId> {
        let here = self
            .slices
            .iter()
            .filter(move |w| w.slice.fragment == fragment);
        here.filter(move |w| w.slice.round >= round).map(|w| w.from)
    }

    /// Takes a fragment's slices of some rounds out, the oldest `each` of every sender, in `PeerId`
    /// order: sums must not depend on which slice came first.
    pub(super) fn take(
        &mut self,
        fragment: FragmentId,
        each: usize,
        due: impl Fn(Round) -> bool,
    ) -> Vec<Waiting> {
        self.slices.sort_by_key(|w| (w.from, w.slice));
        let mut counted: Option<(PeerId, usize)> = None;
        let wanted = |w: &mut Waiting| {
            if w.slice.fragment != fragment || !due(w.slice.round) {
                return false;
            }
            let count = match counted {
                Some((from, count)) if from == w.from => count + 1,
                _ => 1,
            };
            counted = Some((w.from, count));
            count <= each
        };
        let taken: Vec<Waiting> = self.slices.extract_if(.., wanted).collect();
        for waiting in &taken {
            if let Some(count) = self.count_of.get_mut(&waiting.from) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    self.count_of.remove(&waiting.from);
                }
            }
        }
        taken
    }

    /// Weight that waits here.
    pub(super) fn mass(&self) -> f64 {
        self.slices.iter().map(|w| w.weight).sum()
    }

    /// Slices that wait here.
    pub(super) fn len(&self) -> usize {
        self.slices.len()
    }
}
