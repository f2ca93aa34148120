//! A process is stopped for a while (SIGSTOP, a machine that sleeps): it neither sees nor does anything, and
//! then finds all that came meanwhile at once. Its clock goes on.

use crate::due::Due;
use crate::swarm::Swarm;
use core::time::Duration;
use murmurate_protocol::Time;

impl Swarm<'_> {
    /// Stops a machine for this long. Its links break if it is silent for longer than the others take to
    /// notice.
    pub(crate) fn pause(&mut self, index: usize, lasts: Duration) {
        let slot = &mut self.slots[index];
        slot.paused_until = slot.paused_until.max(self.now + lasts);
        self.note_fault("pause", index);
        if lasts > self.scenario.network.detection {
            self.cut_off(&[index], lasts);
        }
    }

    /// When the machine that handles an event can do so, if it is stopped now. Bytes that are on the network
    /// go on: the kernel takes them.
    pub(crate) fn held_until(&self, due: &Due) -> Option<Time> {
        let transfer = |number: &u32| &self.transfers[*number as usize];
        let fetch = |number: &u32| self.fetches.open.get(*number as usize)?.as_ref();
        let host = match due {
            Due::Timeout { host, .. }
            | Due::Directives { host, .. }
            | Due::Up { host, .. }
            | Due::Down { host, .. }
            | Due::Work { host, .. } => *host as usize,
            Due::Message { to, .. } => *to as usize,
            Due::SliceArrives { transfer: number } => transfer(number).to as usize,
            Due::PushLate {
                transfer: number, ..
            }
            | Due::PushEnds { transfer: number } => transfer(number).from as usize,
            Due::FetchAsked { fetch: number, .. } => fetch(number)?.donor?.0,
            Due::FetchLate { fetch: number, .. } | Due::FetchEnds { fetch: number, .. } => {
                fetch(number)?.host
            }
            Due::Start { .. }
            | Due::Flow { .. }
            | Due::Capacity { .. }
            | Due::Fault { .. }
            | Due::RandomCrash { .. }
            | Due::SpeedUp { .. }
            | Due::Heal { .. } => return None,
        };
        let until = self.slots.get(host)?.paused_until;
        (until > self.now).then_some(until)
    }
}
