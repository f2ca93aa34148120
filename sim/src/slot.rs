//! A machine of the swarm, up or down.

use crate::drift::Drift;
use crate::fault::{Forger, Lying};
use crate::host::{Checkpoint, Host};
use core::time::Duration;
use murmurate_protocol::{Base, Directives, PeerId, Round, SealMemory, Time};

/// A machine: what survives its crashes, and the host while it is up.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) id: PeerId,
    pub(crate) host: Option<Box<Host>>,
    /// Increases with every crash. Orders of an earlier life are void.
    pub(crate) life: u32,
    pub(crate) checkpoint: Option<Checkpoint>,
    /// Factor on the time of its inner steps.
    pub(crate) slowness: f64,
    /// Drift of its speed.
    pub(crate) drift: Drift,
    /// Offset of its clock.
    pub(crate) ahead: Duration,
    /// What it sends instead of its slices while it lies.
    pub(crate) lying: Option<Lying>,
    /// The last round in which it signed something.
    pub(crate) signed: Option<Round>,
    /// The same of earlier lives.
    pub(crate) forgotten: Option<Round>,
    /// With which parameters it began its rounds, in all its lives.
    pub(crate) opened: Vec<Base>,
    /// The owner's directives that it knows, in all its lives.
    pub(crate) directives: Directives,
    /// Signatures that it made and checked.
    pub(crate) memory: SealMemory,
    /// What it knows that helps it to lie.
    pub(crate) forger: Forger,
    /// Records that it made in this life.
    pub(crate) records: u64,
    /// The earliest scheduled wake-up.
    pub(crate) wake_at: Option<Time>,
    /// It stands still until then.
    pub(crate) paused_until: Time,
    pub(crate) finished: bool,
    /// Faults that wait for a phase of this machine.
    pub(crate) waiting_faults: Vec<u32>,
}
