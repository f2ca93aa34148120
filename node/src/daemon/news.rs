//! Converts network events to inputs of the peer, and shows the others to the operator.

use super::driver::Driver;
use crate::api::Clock;
use crate::bulk::{BulkEvent, BulkFault};
use crate::net::{self, GateError, ListenFailure, NetEvent};
use libp2p::Multiaddr;
use murmurate_protocol::limits::ACTIVE_LINKS_MAX;
use murmurate_protocol::wire::{MembershipMessage, Message, PeerRecord, WireError, decode_within};
use murmurate_protocol::{
    FetchId, Input, Part, PeerId, Phase, PushOutcome, Site, SliceId, SortedMap,
};
use murmurate_trust::{Overused, Refusal, Role};
use std::time::{Duration, Instant};

impl Driver {
    pub(super) fn on_net(&mut self, event: NetEvent) {
        let role = event.link();
        let role = role.and_then(|peer| Some(self.contacts.bystanders.get(&peer)?.0));
        if let NetEvent::LinkDown(peer) = &event
            && self.contacts.bystanders.remove(peer).is_some()
        {
            self.contacts.records.forget(*peer);
        }
        if role == Some(Role::Relay) {
            return self.on_relay(&event);
        }
        match event {
            NetEvent::Bystander { peer, role } => {
                let bystander = (role, SortedMap::new());
                self.contacts.bystanders.insert(peer, bystander);
            }
            NetEvent::Listening(address) => {
                self.contacts.acquaintances.listening(&address);
                self.console.listening(address.to_string());
            }
            NetEvent::ListenFailed(failure) => self.note(&listen_failed(&failure)),
            NetEvent::NotListening(address) => self.console.not_listening(&address.to_string()),
            NetEvent::Path {
                peer,
                path,
                reason,
                in_vain,
            } => self.on_path(peer, path, reason, in_vain),
            NetEvent::Nat(report) => self.console.status.with(|o| o.set_nat(&report)),
            NetEvent::Notice(text) => self.note(&text),
            NetEvent::LinkUp(peer) => {
                self.feed(Input::LinkUp(peer));
                self.measure_site();
                if role == Some(Role::Observe) {
                    self.feed(Input::Observes(peer));
                }
            }
            NetEvent::LinkDown(peer) => self.link_down(peer),
            NetEvent::Frame { from, bytes } => self.on_frame(from, &bytes),
            NetEvent::Malformed { from, error } => self.malformed(from, error),
            NetEvent::Measured { peer, rtt, rate } => {
                self.console.status.with(|o| o.measured(peer, rtt));
                self.feed(Input::Measured { peer, rtt, rate });
                self.contacts.site.measured(peer, rtt);
                self.look_for_site();
            }
            NetEvent::Bulk(event) => self.on_bulk(event),
            NetEvent::Record(record) => self.own_record(record),
            NetEvent::Register => {
                self.contacts.roll.changed();
                self.forget_dismissed();
                self.tell_directives();
            }
            NetEvent::Overused(overused) => self.overused(&overused),
            NetEvent::Banned { peer, what } => self.banned(peer, &what),
            NetEvent::Dismissed(peer, why) => self.dismissed(peer, why),
            NetEvent::TurnedAway {
                peer,
                error,
                address,
                retry_in,
            } => self.turned_away(peer, error, address.as_ref(), retry_in),
            NetEvent::BootstrapFailed {
                address,
                reason,
                retry_in,
            } => self.bootstrap_failed(&address.to_string(), &reason, retry_in),
        }
    }

    /// A daemon that only relays is a link of the network, and no peer of this one. It sends records, which are dialled
    /// while this daemon has few links: each peer knows of all others.
    fn on_relay(&mut self, event: &NetEvent) {
        let NetEvent::Frame { from, bytes } = event else {
            return;
        };
        let message = decode_within(bytes, self.net.wire());
        let Ok(Message::Membership(MembershipMessage::Records(records))) = message else {
            return;
        };
        let checks = &mut self.contacts.records;
        let checked = checks.check(*from, self.clock.now(), records, net::verify);
        let (view, run) = (self.peer.view(), self.peer.plan().run);
        let room = ACTIVE_LINKS_MAX.saturating_sub(view.greeted().count());
        let strange = |peer| view.get(peer).is_none_or(|r| !r.linked && !r.banned);
        let wanted = |record: &PeerRecord| record.run == run && strange(record.peer);
        for record in checked.good.into_iter().filter(wanted).take(room) {
            let _ = self.net.dial_in_turn(record);
        }
    }

    fn own_record(&mut self, record: PeerRecord) {
        // The public address of this daemon may have become known.
        if let Some(network) = net::public_network(&record) {
            self.contacts.site.owns(Site::measured(&network));
        }
        self.feed(Input::Record(record));
    }

    fn link_down(&mut self, peer: PeerId) {
        self.contacts.site.lost(peer);
        // Its settings do not come any more.
        self.release_refusals(Some(peer));
        self.feed(Input::LinkDown(peer));
    }

    fn banned(&self, peer: PeerId, what: &str) {
        self.console.status.with(|o| o.dismissed(peer));
        let text = if peer == self.contacts.roll.me() {
            format!("this daemon is banned from this run: {what}")
        } else {
            format!(
                "daemon {peer} is banned from this run: {what}; an honest daemon never does that"
            )
        };
        self.note(&text);
    }

    /// More machines used an invite than may: one line for each invite and hour.
    fn overused(&mut self, overused: &Overused) {
        if self.ending.told.tell(overused.invite, Instant::now()) {
            self.note(&overused.to_string());
        }
    }

    /// Those that were thrown out while they were away are not missed.
    pub(super) fn forget_dismissed(&self) {
        let roll = &self.contacts.roll;
        self.console.status.with(|observer| {
            for peer in observer.missed() {
                if !roll.is_member(&peer) {
                    observer.dismissed(peer);
                }
            }
        });
    }

    fn dismissed(&self, peer: PeerId, why: Refusal) {
        self.console.status.with(|o| o.dismissed(peer));
        // Of a banned one was said why.
        if why != Refusal::Banned {
            self.note(&no_longer_a_member(peer, why));
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
            self.malformed(from, WireError::Undecodable(what.to_string()));
        }
    }

    fn malformed(&mut self, from: PeerId, error: WireError) {
        self.feed(Input::Malformed { from, error });
    }

    fn on_frame(&mut self, from: PeerId, bytes: &[u8]) {
        match decode_within(bytes, self.net.wire()) {
            Ok(Message::Membership(MembershipMessage::Records(records))) => {
                self.on_records(from, records);
            }
            Ok(Message::Membership(MembershipMessage::Settings(settings))) => {
                self.settings_of(from, &settings);
            }
            Ok(message) => {
                if !self.vouched(from, &message) {
                    return;
                }
                if let Some(message) = self.lanes.check(from, message) {
                    self.feed(Input::Received { from, message });
                }
            }
            Err(error) => self.malformed(from, error),
        }
    }

    /// Handles a peer that this daemon dialled and that is no member, or that refused this daemon.
    fn turned_away(
        &mut self,
        peer: PeerId,
        error: GateError,
        address: Option<&Multiaddr>,
        retry_in: Option<Duration>,
    ) {
        match address {
            Some(address) => self.note(&format!("{address}: {error}; {}", again(retry_in))),
            // Said once to a daemon that is alone, because it may be looking for this one.
            None if error == GateError::OtherRun && self.ending.is_new_stranger(peer) => {
                self.note(&format!("found the daemon {peer} near here: {error}"));
            }
            None if matches!(error, GateError::OtherVersion { .. }) => {
                if self.ending.told.tell(peer, Instant::now()) {
                    self.note(&format!("the daemon {peer}: {error}"));
                }
            }
            // A member that was thrown out, or whose certificate has ended, would go on alone.
            None if self.ending.is_new_refusal(error) => {
                self.note(&format!("the daemon {peer}: {error}"));
            }
            None => tracing::debug!(%peer, %error, "turned away"),
        }
        if let GateError::Refused(refusal) = error {
            let now = self.clock.now();
            self.console
                .status
                .with(|o| o.refused_by(now, peer, refusal));
        }
        let joins = self.peer.phase() == Phase::Join;
        self.ending.turned_away(peer, error, joins);
    }

    /// Set for the greeted peers. This one takes no records of others, so their signatures are not worth a check.
    fn takes_records_of(&self, sender: PeerId) -> bool {
        let sender = self.peer.view().get(sender);
        sender.is_some_and(|remote| remote.greeted && !remote.banned)
    }

    /// Checks the signatures of records before the peer sees them.
    fn on_records(&mut self, from: PeerId, records: Vec<PeerRecord>) {
        if !self.takes_records_of(from) {
            return;
        }
        let checks = &mut self.contacts.records;
        let checked = checks.check(from, self.clock.now(), records, net::verify);
        if checked.forged {
            self.malformed(from, WireError::Signature);
        } else if checked.floods {
            let what = "far more records than a peer has".to_owned();
            self.malformed(from, WireError::Undecodable(what));
        }
        let message = MembershipMessage::Records(checked.good).into();
        self.feed(Input::Received { from, message });
        self.look_for_site();
    }

    /// Set where all records in a message about a roll are signed by their peers. A message with others is
    /// dropped: a roll consists of all of its records or of none.
    fn vouched(&mut self, from: PeerId, message: &Message) -> bool {
        let records = message.records();
        let count = records.len();
        if count == 0 {
            return true;
        }
        if !self.takes_records_of(from) {
            return false;
        }
        let now = self.clock.now();
        let checked = self.contacts.rolls.check(from, now, records, net::verify);
        if checked.forged || checked.floods {
            self.malformed(from, WireError::Signature);
        }
        checked.good.len() == count
    }

    pub(super) fn on_checked(&mut self, from: PeerId, message: Option<Message>) {
        self.lanes.checked(from);
        match message {
            Some(message) => self.feed(Input::Received { from, message }),
            None => self.malformed(from, WireError::Signature),
        }
    }

    fn bootstrap_failed(&mut self, address: &str, reason: &str, retry_in: Option<Duration>) {
        let failed = format!("{address} ({reason})");
        self.note(&format!("no answer from {failed}; {}", again(retry_in)));
        self.ending.bootstrap = Some(failed);
    }

    /// Triggers an armed fault once another peer has received a slice of this one.
    fn strike_after(&mut self, part: Part, outcome: PushOutcome) {
        let served = outcome == PushOutcome::Delivered;
        let exchanging = self.peer.phase() == Phase::Exchange;
        let exchange = self.peer.plan().exchange;
        let pushes = exchange.facts().exchanges && !exchange.agrees();
        let serves = part.is_decided() || !exchanging || pushes;
        if served
            && serves
            && let Some(fault) = self.on_request.faults.take_armed()
        {
            self.strike(fault);
        }
    }

    /// Size of a slice before the codec in bytes: 4 for each of its values.
    pub(super) fn payload_of(&self, slice: SliceId, of: u16) -> u64 {
        let fragment = self.peer.plan().fragment(slice.fragment);
        4 * fragment.map_or(0, |fragment| fragment.len) / u64::from(of.max(1))
    }

    /// Set while this daemon looks for its site, by its public address and by round trips to others.
    ///
    /// A daemon of a grid does that until it has a place in its roll, which keeps what a peer's record said when it
    /// entered. Where the schedule of an all-reduce goes by sites it goes on, because each round's proposer reads
    /// the records again.
    fn looks_for_a_site(&self) -> bool {
        let plan = self.peer.plan();
        let in_a_grid = plan.agreement.grouping.is_grid() && !self.peer.has_place();
        in_a_grid || plan.schedule.goes_by_sites()
    }

    /// Measures the links that are up, and announces another site if that shows one.
    fn measure_site(&mut self) {
        if !self.looks_for_a_site() {
            return;
        }
        for (peer, link) in self.net.links() {
            if let Some(round_trip) = link.rtt {
                self.contacts.site.measured(peer, round_trip);
            }
        }
        self.look_for_site();
    }

    fn look_for_site(&mut self) {
        if !self.looks_for_a_site() {
            return;
        }
        let view = self.peer.view();
        let site_of = |peer| view.get(peer)?.record()?.locality.site.clone();
        let finder = &mut self.contacts.site;
        finder.look(site_of);
        let announced = view.mine().map(|record| &record.locality);
        let found = finder.locality();
        if announced.is_some_and(|announced| *announced != found) {
            tracing::debug!(site = ?found.site, "found");
            // A command that is refused is repeated with the next measurement.
            let _ = self.net.locate(found);
        }
    }
}

/// What to say of an address that is in use or does not exist.
pub(super) fn listen_failed(failure: &ListenFailure) -> String {
    format!("cannot listen on {failure}; the other addresses work")
}

/// What happens after a dial in vain.
fn again(retry_in: Option<Duration>) -> String {
    retry_in.map_or_else(
        || "given up".to_owned(),
        |wait| format!("trying again in {wait:.0?}"),
    )
}

pub(super) fn no_longer_a_member(peer: PeerId, why: Refusal) -> String {
    let why = match why {
        Refusal::Revoked => "it was revoked, or who let it in was",
        Refusal::Flaw(_) => "its certificate has ended",
        _ => "others used its invite before it",
    };
    format!("daemon {peer} is no longer a member: {why}; the link to it is closed")
}
