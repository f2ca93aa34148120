//! Converts network events to inputs of the peer, and shows the others to the operator.

use crate::bulk::{BulkEvent, BulkFault};
use crate::daemon::driver::Driver;
use crate::net::{self, NetEvent};
use murmurate_protocol::wire::{self, MembershipMessage, Message};
use murmurate_protocol::{FetchId, Input, Part, PeerId, Phase, PushOutcome, SliceId};
use std::time::Duration;

impl Driver {
    /// Handles one network event.
    pub(super) fn on_net(&mut self, event: NetEvent) {
        match event {
            NetEvent::Listening(address) => self.console.listening(address.to_string()),
            NetEvent::ListenFailed(failure) => {
                let text = format!("cannot listen on {failure}; the other addresses work");
                self.console.printer.note(&text);
            }
            NetEvent::NotListening(address) => self.console.not_listening(&address.to_string()),
            NetEvent::Path { peer, path, reason } => {
                self.console.status.with(|o| o.set_path(peer, path, reason));
            }
            NetEvent::Nat(report) => self.console.status.with(|o| o.set_nat(&report)),
            NetEvent::Notice(text) => self.console.printer.note(&text),
            NetEvent::LinkUp(peer) => self.feed(Input::LinkUp(peer)),
            NetEvent::LinkDown(peer) => self.feed(Input::LinkDown(peer)),
            NetEvent::Frame { from, bytes } => self.on_frame(from, &bytes),
            NetEvent::Malformed { from, error } => self.feed(Input::Malformed { from, error }),
            NetEvent::Measured { peer, rtt, rate } => {
                self.console.status.with(|o| o.measured(peer, rtt));
                self.feed(Input::Measured { peer, rtt, rate });
            }
            NetEvent::Bulk(event) => self.on_bulk(event),
            NetEvent::Record(record) => self.feed(Input::Record(record)),
            NetEvent::BootstrapFailed {
                address,
                reason,
                retry_in,
            } => {
                self.bootstrap_failed(&address.to_string(), &reason, retry_in);
            }
        }
    }

    fn on_bulk(&mut self, event: BulkEvent) {
        match event {
            BulkEvent::Arrived {
                from,
                slice,
                meta,
                digest,
            } => {
                self.payload.arrived(from, self.payload_of(slice, meta.of));
                self.feed(Input::Arrived {
                    from,
                    slice,
                    meta,
                    digest,
                });
            }
            BulkEvent::Pushed { to, slice, outcome } => {
                self.payload.pushed(to, slice, outcome);
                self.feed(Input::Pushed { to, slice, outcome });
                self.strike_after(slice.part, outcome);
            }
            BulkEvent::Fetched { what, meta, digest } => {
                self.payload.fetched(match (what, meta) {
                    (FetchId::Slice(slice), Some(meta)) => self.payload_of(slice, meta.of),
                    (FetchId::State(state), _) => state.bytes,
                    (FetchId::Slice(_), None) => 0,
                });
                self.feed(Input::Fetched { what, meta, digest });
            }
            BulkEvent::FetchFailed { what } => self.feed(Input::FetchFailed { what }),
            BulkEvent::Malformed { from, what } => self.on_fault(from, &what),
        }
    }

    fn on_fault(&mut self, from: PeerId, what: &BulkFault) {
        tracing::debug!(peer = %from, %what, "a bulk stream violated the protocol or broke off");
        if what.is_misbehaviour() {
            let error = wire::WireError::Undecodable(what.to_string());
            self.feed(Input::Malformed { from, error });
        }
    }

    fn on_frame(&mut self, from: PeerId, bytes: &[u8]) {
        match wire::decode(bytes) {
            Ok(Message::Membership(MembershipMessage::Records(mut records))) => {
                let before = records.len();
                records.retain(net::verify);
                if records.len() < before {
                    let error = wire::WireError::Signature;
                    self.feed(Input::Malformed { from, error });
                }
                self.feed(Input::Received {
                    from,
                    message: MembershipMessage::Records(records).into(),
                });
            }
            Ok(message) => {
                if let Some(message) = self.lanes.check(from, message) {
                    self.feed(Input::Received { from, message });
                }
            }
            Err(error) => self.feed(Input::Malformed { from, error }),
        }
    }

    /// The signatures of a message have been checked.
    pub(super) fn on_checked(&mut self, from: PeerId, message: Option<Message>) {
        self.lanes.checked(from);
        match message {
            Some(message) => self.feed(Input::Received { from, message }),
            None => {
                let error = wire::WireError::Signature;
                self.feed(Input::Malformed { from, error });
            }
        }
    }

    fn bootstrap_failed(&mut self, address: &str, reason: &str, retry_in: Option<Duration>) {
        let text = match retry_in {
            Some(wait) => {
                format!("no answer from {address} ({reason}); trying again in {wait:.0?}")
            }
            None => format!("no answer from {address} ({reason}); given up"),
        };
        self.console.printer.note(&text);
        self.ending.bootstrap = Some(format!("{address} ({reason})"));
    }

    /// Triggers an armed fault once another peer has received a slice of this one.
    fn strike_after(&mut self, part: Part, outcome: PushOutcome) {
        let served = outcome == PushOutcome::Delivered;
        let exchanging = self.peer.phase() == Phase::Exchange;
        let serves = part == Part::Aggregate || !exchanging || self.serves_by_pushing();
        if served
            && serves
            && let Some(fault) = self.faults.take_armed()
        {
            self.strike(fault);
        }
    }

    fn serves_by_pushing(&self) -> bool {
        let exchange = self.peer.plan().exchange;
        exchange.facts().exchanges && !exchange.agrees()
    }

    /// Size of a slice before the codec in bytes: 4 for each of its values.
    pub(super) fn payload_of(&self, slice: SliceId, of: u16) -> u64 {
        let fragment = self.peer.plan().fragment(slice.fragment);
        4 * fragment.map_or(0, |fragment| fragment.len) / u64::from(of.max(1))
    }
}
