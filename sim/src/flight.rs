//! Transfers under way between machines: pushed slices, and fetches by number. A serial tells one use of a number
//! from the next.

use crate::net::Fate;
use bytes::Bytes;
use core::time::Duration;
use murmurate_protocol::{FetchId, PushOutcome, SliceId, SliceMeta, Time};

/// A pushed slice in flight.
#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    pub(crate) from: usize,
    pub(crate) from_life: u32,
    pub(crate) to: usize,
    pub(crate) connection: u32,
    pub(crate) slice: SliceId,
    pub(crate) meta: SliceMeta,
    pub(crate) bytes: Bytes,
    pub(crate) deadline: Time,
    /// Set once its deadline is on the calendar.
    pub(crate) may_be_late: bool,
    /// Distinguishes different uses of the same number.
    pub(crate) serial: u32,
    /// The flow that carries it, while its bytes flow.
    pub(crate) flow: Option<u32>,
    /// Time that slow start adds after the flow.
    pub(crate) extra: Duration,
    pub(crate) fate: Fate,
    pub(crate) outcome: PushOutcome,
    /// Set while the sender waits for the outcome.
    pub(crate) open: bool,
    /// Push-sum mass in flight.
    pub(crate) flying: f64,
}

#[derive(Debug)]
pub(crate) struct Fetching {
    pub(crate) host: usize,
    pub(crate) life: u32,
    pub(crate) what: FetchId,
    pub(crate) deadline: Time,
    /// The current donor and its life.
    pub(crate) donor: Option<(usize, u32)>,
    pub(crate) next: Vec<usize>,
    pub(crate) flow: Option<u32>,
    pub(crate) extra: Duration,
    pub(crate) serial: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Fetches {
    pub(crate) open: Vec<Option<Fetching>>,
    pub(crate) free: Vec<usize>,
    pub(crate) serials: u32,
}

impl Fetches {
    pub(crate) fn keep(&mut self, fetching: Fetching) -> (usize, u32) {
        self.serials = self.serials.wrapping_add(1);
        let serial = self.serials;
        let fetching = Some(Fetching { serial, ..fetching });
        match self.free.pop() {
            Some(number) => {
                self.open[number] = fetching;
                (number, serial)
            }
            None => {
                self.open.push(fetching);
                (self.open.len() - 1, serial)
            }
        }
    }

    pub(crate) fn get(&mut self, number: usize, serial: u32) -> Option<&mut Fetching> {
        let slot = self.open.get_mut(number)?;
        slot.as_mut().filter(|fetching| fetching.serial == serial)
    }

    /// Ends a host's fetch of this, if one is under way. Gives back its flow.
    pub(crate) fn replace(&mut self, host: usize, life: u32, what: &FetchId) -> Option<u32> {
        let same = |f: &Fetching| f.host == host && f.life == life && f.what == *what;
        let mut open = self.open.iter();
        let number = open.position(|slot| slot.as_ref().is_some_and(same))?;
        let serial = self.open[number].as_ref()?.serial;
        self.take(number, serial)?.flow
    }

    pub(crate) fn take(&mut self, number: usize, serial: u32) -> Option<Fetching> {
        self.get(number, serial)?;
        self.free.push(number);
        self.open[number].take()
    }
}
