//! Values that the driver shows periodically: counters, links, progress. No decision depends on
//! them.

use crate::api::{
    Clock, ControlStatus, LinkStatus, SAME_DATA_ACTION, Traffic, TransferStatus, trains_the_same,
};
use crate::daemon::driver::Driver;
use crate::daemon::recording::Recording;
use crate::daemon::start::other_data_note;
use crate::events::Kind;
use crate::metrics::Metrics;
use crate::telemetry::Telemetry;
use murmurate_protocol::{PeerId, Phase, Round};
use murmurate_strategies::DataReport;
use std::time::{Duration, Instant};

/// Time between two reads of the links. A read locks their connections.
const LINKS_EVERY: Duration = Duration::from_secs(1);

impl Driver {
    /// Updates the links in the status.
    pub(super) fn read_links(&mut self) {
        self.console.links_read = Instant::now();
        let links = self.net.links();
        self.payload.keep(|peer| links.contains_key(peer));
        let links = links.iter().map(|(peer, view)| {
            let (sent, received) = self.payload.of(peer);
            (*peer, LinkStatus::new(view, sent, received))
        });
        let now = self.clock.now();
        let vitals = self.net.vitals();
        let (seen, (sent, received)) = (vitals.seen(), vitals.traffic());
        let named = self.console.status.with(|observer| {
            observer.set_links(links);
            observer.set_claims(now, &seen, sent, received)
        });
        let round = self.peer.round().0;
        for (peer, name) in named {
            self.console.log.add(now, round, Kind::Named { peer, name });
        }
        let alike = self.console.status.with(|o| o.look_for_equals(&seen));
        for (peer, rounds) in alike {
            let [first, second] = rounds;
            let same = format!("{}. {SAME_DATA_ACTION}", trains_the_same(&peer, rounds));
            self.console.printer.note(&same);
            let rounds = vec![first, second];
            self.console
                .log
                .add(now, round, Kind::SameData { peer, rounds });
        }
        self.look_elsewhere();
    }

    /// Updates the counters and prints progress.
    pub(super) fn tick(&mut self) {
        if let Some(line) = self.recording.as_mut().and_then(Recording::trouble) {
            self.console.printer.note(&line);
        }
        if let Some(line) = self.metrics.as_mut().and_then(Metrics::trouble) {
            self.console.printer.note(&line);
        }
        if let Some(line) = self.console.telemetry.as_ref().and_then(Telemetry::news) {
            self.console.printer.note(&line);
        }
        self.release_refusals(None);
        self.forget_dismissed();
        self.sound_alarms();
        let addresses = self.console.addresses();
        self.contacts.look(&self.net, self.peer.view(), addresses);
        self.read_traffic();
        let _round = self.trace.enter(self.peer.round());
        let status = &self.console.status;
        let branch = self.peer.branch();
        let met = self.peer.meets_another_branch();
        let control = ControlStatus::of(&self.peer);
        let rounds = self.peer.plan().rounds;
        status.with(|observer| {
            observer.set_branch(branch, met);
            observer.set_control(control, rounds);
        });
        self.trace.story.tell(|| status.status());
        let waits = self.peer.waiting();
        let now = self.clock.now();
        self.console
            .status
            .with(|observer| observer.set_waiting(now, &waits));
        let round = self.peer.round().0;
        self.console.log.waits(now, round, &waits);
        self.show();
        self.say_vitals(&waits);
    }

    /// Prints what is wrong with the swarm, and when it is over.
    fn sound_alarms(&mut self) {
        let now = Instant::now();
        if !self.console.alarms.are_due(now) {
            return;
        }
        let troubles = self.console.status.status().troubles;
        for line in self.console.alarms.lines(now, &troubles) {
            self.console.printer.note(&line);
        }
    }

    /// Updates the totals of bytes in the status.
    pub(super) fn read_traffic(&mut self) {
        let counters = self.net.counters();
        let (payload_sent, payload_received) = self.payload.total();
        let sent = Traffic {
            payload: payload_sent,
            encoded: counters.total.bulk_out,
            wire: counters.wire_out,
        };
        let received = Traffic {
            payload: payload_received,
            encoded: counters.total.bulk_in,
            wire: counters.wire_in,
        };
        self.console
            .status
            .with(|observer| observer.set_traffic(sent, received));
    }

    fn show(&mut self) {
        let signals = self.lanes.signals();
        let (steps, samples) = (signals.steps(), signals.samples());
        for text in signals.data().flat_map(DataReport::take_untold) {
            self.console.printer.note(&text);
        }
        let others = self.peer.with_other_data();
        if others
            .iter()
            .any(|peer| !self.console.other_data.contains(peer))
        {
            self.console.printer.note(&other_data_note(&others));
            self.console.other_data = others;
        }
        let skipped = signals.data().map(DataReport::skipped).sum();
        let view: Vec<(PeerId, Round)> = self
            .peer
            .view()
            .greeted()
            .map(|(id, remote)| (id, remote.round))
            .collect();
        let transfer = self.depot.transfer().map(|transfer| TransferStatus {
            round: transfer.round.0,
            bytes: transfer.bytes,
            of_bytes: transfer.of,
        });
        let now = self.clock.now();
        self.console.status.with(|observer| {
            observer.set_live_steps(now, steps, samples);
            observer.set_skipped(skipped);
            observer.set_rounds(&view, transfer);
        });
        if self.console.links_read.elapsed() >= LINKS_EVERY {
            self.read_links();
        }
        if self.console.printer.wants_progress() || self.peer.phase() == Phase::Finished {
            let status = self.console.status.status();
            self.console.printer.progress(&status);
        }
    }
}
