//! A machine stops at once and loses everything but its last checkpoint.

use crate::due::Due;
use crate::error::SimError;
use crate::swarm::Swarm;
use core::time::Duration;

impl Swarm<'_> {
    /// Crashes a machine. Does nothing if it is down.
    pub(crate) fn crash(
        &mut self,
        index: usize,
        restart_after: Option<Duration>,
    ) -> Result<(), SimError> {
        if self.stop(index, "crash").is_none() {
            return Ok(());
        }
        if let Some(after) = restart_after {
            self.schedule_start(self.now + after, index);
        }
        Ok(())
    }

    /// Removes a machine with its host and links. The others notice after the detection time.
    /// Returns the fault's name if the machine was up.
    pub(crate) fn stop(&mut self, index: usize, what: &'static str) -> Option<&'static str> {
        let slot = &mut self.slots[index];
        let open = slot.host.take()?.open_pushes;
        slot.life += 1;
        slot.wake_at = None;
        self.live -= 1;
        self.finished -= usize::from(slot.finished);
        slot.finished = false;
        self.checks.gone(index, self.slots[index].id);
        self.note_fault(what, index);
        let linked: Vec<usize> = self.net.linked(index).collect();
        self.net.forget(index);
        let detection = self.scenario.network.detection;
        for other in linked {
            if let Some(connection) = self.net.connection(other, index) {
                let due = Due::Down {
                    host: other as u32,
                    other: index as u32,
                    connection,
                };
                self.queue.push(self.now + detection, due);
            }
        }
        self.break_links_through(index);
        self.transfers_of_dead(index, &open);
        Some(what)
    }

    /// Schedules the next crash of a process.
    pub(crate) fn schedule_random_crash(&mut self, process: usize) {
        if let Some(at) = self.random_crashes[process].next(self.now) {
            self.queue.push(
                at,
                Due::RandomCrash {
                    process: process as u32,
                },
            );
        }
    }

    /// Crashes a random live machine, unless `down_max` machines are down.
    pub(crate) fn random_crash(&mut self, process: usize) -> Result<(), SimError> {
        let crashes = &mut self.random_crashes[process];
        let (index, after) = (
            crashes.random.below(self.slots.len()),
            crashes.restart_after,
        );
        if self.scenario.peers - self.live < crashes.down_max {
            self.crash(index, after)?;
        }
        self.schedule_random_crash(process);
        Ok(())
    }
}
