//! The events on the calendar of a run. `swarm.rs` handles each event at its time.

use murmurate_protocol::wire::Message;
use murmurate_protocol::{Directive, Lane};
use std::rc::Rc;

/// A control message in flight.
#[derive(Debug)]
pub(crate) enum Letter {
    /// Encoded as on the wire; the receiver decodes it.
    Frame(Box<[u8]>),
    /// The sender's message and its encoded size. Runs without tensors skip the decoding.
    Message(Rc<Message>, u32),
}

/// An event that is due at some time.
#[derive(Debug)]
pub(crate) enum Due {
    /// A machine starts.
    Start { host: usize },
    /// A machine's timer fires.
    Timeout { host: usize, life: u32 },
    /// A control message arrives.
    Message {
        from: usize,
        to: usize,
        connection: u32,
        letter: Letter,
    },
    /// A machine hears of directives of the owner.
    Directives {
        host: usize,
        directives: Vec<Directive>,
    },
    /// A dialled link comes up at one end.
    Up {
        host: usize,
        life: u32,
        other: usize,
        other_life: u32,
        answer: bool,
    },
    /// A machine notices that a link is dead.
    Down {
        host: usize,
        other: usize,
        connection: u32,
    },
    /// A lane has completed an order.
    Work {
        host: usize,
        life: u32,
        lane: Lane,
        serial: u64,
    },
    /// A flow may have ended.
    Flow { flow: u32, serial: u32 },
    /// A push's deadline passes.
    PushLate { transfer: usize, serial: u32 },
    /// A pushed slice is complete at its receiver.
    SliceArrives { transfer: usize },
    /// The sender learns how a push ended.
    PushEnds { transfer: usize },
    /// A fetch's request arrives at the donor.
    FetchAsked { fetch: usize, serial: u32 },
    /// A fetch's deadline passes.
    FetchLate { fetch: usize, serial: u32 },
    /// A fetch ends.
    FetchEnds { fetch: usize, serial: u32 },
    /// The capacity of a machine's links changes.
    Capacity { change: usize },
    /// A scheduled fault strikes.
    Fault { fault: usize },
    /// The next random crash is due.
    RandomCrash { process: usize },
    /// A straggler recovers.
    SpeedUp { host: usize, factor: f64 },
    /// A partition ends.
    Heal { peers: Vec<usize>, side: u32 },
}
