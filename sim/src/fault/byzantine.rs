//! A machine that sends false slices. `liar` is about false control messages.

use super::lie::{Lie, Lying};
use crate::host::Host;
use crate::swarm::Swarm;
use bytes::Bytes;
use core::time::Duration;

impl Swarm<'_> {
    /// Makes a machine lie.
    pub(crate) fn corrupt(&mut self, index: usize, lie: Lie, lasts: Duration) {
        let until = self.now + lasts;
        self.slots[index].lying = Some(Lying { lie, until });
        self.note_fault("byzantine", index);
    }

    /// Whether a machine sends no slices.
    pub(crate) fn withholds(&self, index: usize) -> bool {
        let lying = self.slots[index]
            .lying
            .filter(|lying| self.now < lying.until);
        let comes = |host: &Host| host.peer.round().0 % 7 == 6;
        lying.is_some_and(|lying| match lying.lie {
            Lie::Withhold | Lie::Silent => true,
            Lie::Rare => !self.slots[index].host.as_deref().is_some_and(comes),
            _ => false,
        })
    }

    /// Whether a machine says nothing but that it takes part.
    pub(super) fn is_silent(&self, index: usize) -> bool {
        let lying = self.slots[index]
            .lying
            .filter(|lying| self.now < lying.until);
        lying.is_some_and(|lying| lying.lie == Lie::Silent)
    }

    /// The loss that a machine says it has, in place of a measured one.
    pub(crate) fn said_for(&mut self, index: usize, measured: f64) -> f64 {
        let lying = self.slots[index].lying;
        let lies = lying.is_some_and(|l| self.now < l.until && l.lie == Lie::Loss);
        if !lies {
            return measured;
        }
        self.counters.lies += 1;
        let absurd = [f64::NAN, f64::INFINITY, f64::MAX, -1.0, 0.0];
        absurd[self.lies.below(absurd.len())]
    }

    /// The loss of a contribution that a machine says it has measured: the other way round, so that what helps
    /// seems to harm.
    pub(crate) fn measured_for(&mut self, index: usize, measured: f64) -> f64 {
        let lying = self.slots[index].lying;
        let lies = lying.is_some_and(|l| self.now < l.until && l.lie == Lie::Scores);
        if !lies {
            return measured;
        }
        self.counters.lies += 1;
        -measured
    }

    /// The bytes that a machine sends instead of these.
    pub(crate) fn sent_for(&mut self, index: usize, honest: Bytes) -> Bytes {
        let lying = self.slots[index].lying;
        let Some(Lying { lie, .. }) = lying.filter(|lying| self.now < lying.until) else {
            return honest;
        };
        if matches!(lie, Lie::Loss | Lie::Scores | Lie::Ballots | Lie::Rare) {
            return honest;
        }
        // One that lies about everything sends true slices too, or it would be left out at once.
        if lie == Lie::Anything && self.lies.below(4) > 0 {
            return honest;
        }
        self.counters.lies += 1;
        let mut bytes = honest.to_vec();
        match lie {
            // Its pushes are not sent at all.
            Lie::Withhold | Lie::Silent | Lie::Loss | Lie::Scores | Lie::Ballots | Lie::Rare => {}
            Lie::Garbage => {
                for byte in &mut bytes {
                    *byte = self.lies.below(256) as u8;
                }
            }
            Lie::Truncated => bytes.truncate(honest.len() / 2),
            Lie::FlippedBit | Lie::Anything => {
                if let Some(last) = bytes.last_mut() {
                    *last ^= 1 << self.lies.below(8);
                }
            }
        }
        Bytes::from(bytes)
    }
}
