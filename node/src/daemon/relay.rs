//! A daemon whose certificate has the role `relay`: it has the links of a member, relays for peers that
//! cannot be dialled, and tells newcomers where the others are. It has no model, no part in rounds and
//! no HTTP server.

use super::DaemonError;
use super::contacts::{Acquaintances, Contacts};
use super::ending::{Ending, SHUTDOWN_WAIT};
use super::news::{listen_failed, no_longer_a_member};
use super::setup::network_config;
use super::start::ending;
use crate::bulk::{BulkLimits, NoStore};
use crate::config::Config;
use crate::membership::Entered;
use crate::net::{self, Net, NetEvent};
use crate::progress::{LogMode, Printer};
use crate::report::NodeReport;
use crate::store::Store;
use murmurate_protocol::View;
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
                Some(event) => relay.on_net(event),
                None => relay.ending.fail(DaemonError::NetworkEnded),
            },
            _ = tick.tick() => relay.contacts.look(&net, &no_one, &relay.addresses),
        }
    }
    relay.finish(net, &no_one).await
}

impl Relay {
    fn on_net(&mut self, event: NetEvent) {
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
            NetEvent::LinkUp(_) => self.ending.met_anyone = true,
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
            // Messages and slices of members are for peers that take part.
            _ => {}
        }
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
