//! A daemon whose certificate has the role `relay`: it has the links of a member, relays for peers that
//! cannot be dialled, and tells newcomers where the others are. It has no model, no part in rounds and
//! no HTTP server.

use super::DaemonError;
use super::clock::SteadyClock;
use super::contacts::{Acquaintances, Contacts};
use super::ending::{Ending, SHUTDOWN_WAIT};
use super::news::{listen_failed, no_longer_a_member};
use super::setup::network_config;
use super::start::ending;
use crate::api::Clock;
use crate::bulk::{BulkLimits, NoStore};
use crate::config::Config;
use crate::membership::Entered;
use crate::net::{self, Net, NetEvent};
use crate::progress::{LogMode, Printer};
use crate::report::NodeReport;
use crate::store::Store;
use murmurate_protocol::limits::{ACTIVE_LINKS_MAX, VIEW_PEERS_MAX};
use murmurate_protocol::wire::{MembershipMessage, Message, PeerRecord, decode_within};
use murmurate_protocol::{PeerId, RunId, SortedMap, View};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Time between two looks at the operator's orders.
const TICK: Duration = Duration::from_secs(1);

struct Relay {
    peer: String,
    printer: Printer,
    contacts: Contacts,
    ending: Ending,
    addresses: Vec<String>,
    run: RunId,
    clock: SteadyClock,
    /// Linked peers, with what each says of itself.
    linked: SortedMap<PeerId, Option<PeerRecord>>,
    /// How many are linked, as the operator was told.
    told: usize,
}

/// Relays until the operator ends it. Returns a report without rounds.
///
/// # Errors
/// If it cannot listen, or all peers to join refuse it.
pub(super) async fn serve(
    config: &Config,
    log: LogMode,
    (store, entered): (Store, Entered),
    mut interrupts: mpsc::Receiver<()>,
) -> Result<NodeReport, DaemonError> {
    let peer = store.identity().peer();
    let (known, warning) = Acquaintances::load(store.dir().to_owned(), config.run.id, peer);
    let mut settings = network_config(config, &store, &entered, &known);
    settings.relay = true;
    let (net, mut events) = net::start(settings, Arc::new(NoStore), BulkLimits::default())?;
    let mut relay = Relay {
        peer: peer.to_hex(),
        printer: Printer::new(log),
        contacts: Contacts::new(config, entered.membership, known),
        ending: ending(config),
        addresses: Vec::new(),
        run: config.run.id,
        clock: SteadyClock::new(),
        linked: SortedMap::new(),
        told: 0,
    };
    let what = "this daemon relays for the others and trains nothing".to_owned();
    for note in [entered.note, warning, Some(what)].iter().flatten() {
        relay.printer.note(note);
    }
    let no_one = View::default();
    let mut tick = tokio::time::interval(TICK);
    while !relay.ending.left {
        tokio::select! {
            Some(()) = interrupts.recv() => break,
            event = events.recv() => match event {
                Some(event) => relay.on_net(&net, event),
                None => relay.ending.fail(DaemonError::NetworkEnded),
            },
            _ = tick.tick() => relay.look(&net, &no_one),
        }
    }
    relay.finish(net, &no_one).await
}

impl Relay {
    fn look(&mut self, net: &Net, no_one: &View) {
        self.contacts.look(net, no_one, &self.addresses);
        let linked = self.linked.len();
        if std::mem::replace(&mut self.told, linked) != linked {
            self.printer.note(&format!("daemons linked: {linked}"));
        }
    }

    fn on_net(&mut self, net: &Net, event: NetEvent) {
        match event {
            NetEvent::Listening(address) => {
                self.contacts.acquaintances.listening(&address);
                self.addresses.push(address.to_string());
                // Only a certificate makes a relay, and an open run has none.
                self.printer
                    .listening(&self.peer, &self.addresses, None, None);
            }
            NetEvent::NotListening(address) => {
                let gone = address.to_string();
                self.addresses.retain(|address| *address != gone);
            }
            NetEvent::ListenFailed(failure) => self.printer.note(&listen_failed(&failure)),
            NetEvent::Notice(text) => self.printer.note(&text),
            NetEvent::LinkUp(peer) => {
                self.ending.met_anyone = true;
                self.linked.insert(peer, None);
            }
            NetEvent::LinkDown(peer) => {
                self.linked.remove(&peer);
                self.contacts.rolls.forget(peer);
            }
            NetEvent::Frame { from, bytes } => {
                let message = decode_within(&bytes, net.wire());
                if let Ok(Message::Membership(MembershipMessage::Records(records))) = message {
                    self.on_records(net, from, records);
                }
            }
            NetEvent::Register => self.contacts.roll.changed(),
            NetEvent::Overused(overused)
                if self.ending.told.tell(overused.invite, Instant::now()) =>
            {
                self.printer.note(&overused.to_string());
            }
            NetEvent::Dismissed(peer, why) => {
                self.printer.note(&no_longer_a_member(peer, why));
            }
            NetEvent::TurnedAway {
                peer,
                error,
                address,
                ..
            } => {
                if let Some(address) = address {
                    self.printer.note(&format!("{address}: {error}"));
                }
                self.ending.turned_away(peer, error, true);
            }
            NetEvent::BootstrapFailed {
                address, reason, ..
            } => {
                let text = format!("no answer from {address} ({reason})");
                self.printer.note(&text);
            }
            // Slices of members are for peers that take part.
            _ => {}
        }
    }

    /// A peer says where it is, and where those are that it knows: this daemon keeps links to all. Who is not told
    /// or dialled now, because a queue is full, is so when the peer renews its record.
    fn on_records(&mut self, net: &Net, from: PeerId, records: Vec<PeerRecord>) {
        let now = self.clock.now();
        // It may know as many as a roll has.
        let checked = self.contacts.rolls.check(from, now, records, net::verify);
        if checked.forged || checked.floods {
            tracing::warn!(peer = %from, "disconnected: its records are not signed, or far too many");
            let _ = net.disconnect(from);
        }
        for record in checked.good {
            if record.run != self.run || record.expires <= now {
                continue;
            }
            if record.peer == from {
                self.introduce(net, record);
            } else if !self.linked.contains_key(&record.peer) && self.linked.len() < VIEW_PEERS_MAX
            {
                let _ = net.dial(record);
            }
        }
    }

    /// Tells a peer of some that are linked, and those of it. They tell each other of the rest.
    fn introduce(&mut self, net: &Net, record: PeerRecord) {
        let peer = record.peer;
        let after = self.linked.range((Excluded(peer), Unbounded));
        let others = after.chain(self.linked.range(..peer));
        let others = others.filter_map(|(other, said)| Some((*other, said.as_ref()?)));
        for (other, said) in others.take(ACTIVE_LINKS_MAX) {
            for (to, of) in [(peer, said), (other, &record)] {
                let message = MembershipMessage::Records(vec![of.clone()]);
                let _ = net.say(to, &message.into());
            }
        }
        self.linked.insert(peer, Some(record));
    }

    async fn finish(self, net: Net, no_one: &View) -> Result<NodeReport, DaemonError> {
        self.contacts.finish(no_one).await;
        let counters = net.counters();
        net.shutdown(Instant::now() + SHUTDOWN_WAIT).await;
        if let Some(error) = self.ending.error {
            return Err(error);
        }
        let mut report = NodeReport {
            peer: self.peer,
            ..NodeReport::default()
        };
        report.bytes_sent.wire = counters.wire_out;
        report.bytes_received.wire = counters.wire_in;
        self.printer.report(&report);
        Ok(report)
    }
}
