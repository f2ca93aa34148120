//! A machine starts for the first time, or restarts from its last checkpoint as the same peer.

use crate::due::Due;
use crate::error::SimError;
use crate::swarm::Swarm;
use murmurate_protocol::Time;

impl Swarm<'_> {
    /// Schedules a start. The run does not end before it.
    pub(crate) fn schedule_start(&mut self, at: Time, index: usize) {
        self.starts_due += 1;
        self.queue.push(at, Due::Start { host: index as u32 });
    }

    /// Starts a machine. Does nothing if it is up.
    pub(crate) fn start(&mut self, index: usize) -> Result<(), SimError> {
        self.starts_due -= 1;
        if self.slots[index].host.is_some() {
            return Ok(());
        }
        let again = self.slots[index].life > 0;
        if again || self.now > Time::ZERO {
            self.note_fault(if again { "restart" } else { "join" }, index);
        }
        if again {
            let slot = &mut self.slots[index];
            slot.forgotten = slot.signed;
        }
        let join = again || self.now > Time::ZERO;
        self.boot(index, join)
    }
}
