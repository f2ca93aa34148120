//! A machine gets slower for a while. A training order in progress keeps its speed.

use crate::due::Due;
use crate::swarm::Swarm;
use core::time::Duration;

impl Swarm<'_> {
    /// Makes a machine's inner steps `factor` times slower.
    pub(crate) fn slow_down(&mut self, index: usize, factor: f64, lasts: Duration) {
        self.slots[index].slowness *= factor;
        self.note_fault("straggler", index);
        self.queue.push(
            self.now + lasts,
            Due::SpeedUp {
                host: index as u32,
                factor,
            },
        );
    }

    /// Restores the machine's speed.
    pub(crate) fn speed_up(&mut self, index: usize, factor: f64) {
        self.slots[index].slowness /= factor;
    }
}
