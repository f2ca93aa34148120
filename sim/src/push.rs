//! A pushed slice on its way.

use crate::net::Fate;
use bytes::Bytes;
use core::time::Duration;
use murmurate_protocol::{PushOutcome, SliceId, SliceMeta, Time};

/// A pushed slice in flight.
#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    pub(crate) from: u32,
    pub(crate) from_life: u32,
    pub(crate) to: u32,
    pub(crate) connection: u32,
    pub(crate) slice: SliceId,
    pub(crate) meta: SliceMeta,
    pub(crate) bytes: Bytes,
    pub(crate) deadline: Time,
    /// Whether its deadline is on the calendar.
    pub(crate) may_be_late: bool,
    /// Distinguishes different uses of the same number.
    pub(crate) serial: u32,
    /// The flow that carries it, while its bytes flow.
    pub(crate) flow: Option<u32>,
    /// Time that slow start adds after the flow.
    pub(crate) extra: Duration,
    pub(crate) fate: Fate,
    pub(crate) outcome: PushOutcome,
    /// Whether the sender still waits for the outcome.
    pub(crate) open: bool,
    /// Push-sum mass in flight.
    pub(crate) flying: f64,
}
