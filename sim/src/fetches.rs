//! The fetches under way, by number. A serial tells one use of a number from the next.

use core::time::Duration;
use murmurate_protocol::{FetchId, Time};

/// A fetch in progress.
#[derive(Debug)]
pub(crate) struct Fetching {
    pub(crate) host: usize,
    pub(crate) life: u32,
    pub(crate) what: FetchId,
    pub(crate) deadline: Time,
    /// The current donor and its life.
    pub(crate) donor: Option<(usize, u32)>,
    /// Donors to try next.
    pub(crate) next: Vec<usize>,
    pub(crate) flow: Option<u32>,
    pub(crate) extra: Duration,
    pub(crate) serial: u32,
}

/// All fetches by number.
#[derive(Debug, Default)]
pub(crate) struct Fetches {
    pub(crate) open: Vec<Option<Fetching>>,
    pub(crate) free: Vec<u32>,
    pub(crate) serials: u32,
}

impl Fetches {
    pub(crate) fn keep(&mut self, fetching: Fetching) -> (u32, u32) {
        self.serials = self.serials.wrapping_add(1);
        let serial = self.serials;
        let fetching = Some(Fetching { serial, ..fetching });
        match self.free.pop() {
            Some(number) => {
                self.open[number as usize] = fetching;
                (number, serial)
            }
            None => {
                self.open.push(fetching);
                ((self.open.len() - 1) as u32, serial)
            }
        }
    }

    pub(crate) fn get(&mut self, number: u32, serial: u32) -> Option<&mut Fetching> {
        let slot = self.open.get_mut(number as usize)?;
        slot.as_mut().filter(|fetching| fetching.serial == serial)
    }

    /// Ends a host's fetch of this, if one is under way. Gives back its flow.
    pub(crate) fn replace(&mut self, host: usize, life: u32, what: &FetchId) -> Option<u32> {
        let same = |f: &Fetching| f.host == host && f.life == life && f.what == *what;
        let mut open = self.open.iter();
        let number = open.position(|slot| slot.as_ref().is_some_and(same))? as u32;
        let serial = self.open[number as usize].as_ref()?.serial;
        self.take(number, serial)?.flow
    }

    pub(crate) fn take(&mut self, number: u32, serial: u32) -> Option<Fetching> {
        self.get(number, serial)?;
        self.free.push(number);
        self.open[number as usize].take()
    }
}
