//! In a grid: whose contributions the mean of a row holds, for the member that makes the note.

use super::fragment::FragmentRound;
use super::message::FragmentMessage;
use crate::core::context::Context;
use crate::exchange::broke;
use crate::{PeerError, PeerId, TallyEntry};

impl FragmentRound {
    /// Says whose contributions the mean of this peer's row holds to the member that makes the note.
    pub(super) fn tell_tally(&self, cx: &mut Context, shard: u16, owner: usize) {
        let within = self.scope.within.as_ref();
        let within = within.filter(|_| self.scope.is_noted(shard));
        let own = within.and_then(|within| within.tallies.get(&self.scope.group.me));
        if let Some(entries) = own.filter(|entries| !entries.is_empty()) {
            let tally = FragmentMessage::Tally(entries.clone());
            cx.send(self.scope.group.peer(owner), self.scope.scoped(tally));
        }
    }

    /// Another member says whose contributions the mean of its row holds.
    pub(super) fn on_tally(
        &mut self,
        from: PeerId,
        entries: &[TallyEntry],
    ) -> Result<(), PeerError> {
        let index = self.scope.group.index(from);
        let within = self.scope.within.as_mut();
        match (index, within.filter(|within| within.note.is_some())) {
            (Some(index), Some(within)) => {
                within.tallies.insert(index, entries.to_vec());
                Ok(())
            }
            _ => broke("contributions of a row where no note is made"),
        }
    }
}
