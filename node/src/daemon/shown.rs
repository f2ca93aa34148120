//! What the driver counts and shows: bytes before the codec, the network's counters, the links. None of it
//! drives anything.

use crate::api::{LinkStatus, Traffic};
use crate::daemon::driver::Driver;
use crate::daemon::recording::Recording;
use murmurate_protocol::{PeerId, Phase, PushOutcome, Round, SliceId};
use std::time::{Duration, Instant};

/// How often the links are looked at: each takes a lock of its connections.
const LINKS_EVERY: Duration = Duration::from_secs(1);

impl Driver {
    /// Bytes of a slice before the codec: 4 for each of its values.
    pub(super) fn payload(&self, slice: SliceId, of: u16) -> u64 {
        let len = self
            .peer
            .plan()
            .fragment(slice.fragment)
            .map_or(0, |f| f.len);
        4 * len / u64::from(of.max(1))
    }

    /// Counts a slice that came.
    pub(super) fn count_arrived(&mut self, from: PeerId, slice: SliceId, of: u16) {
        let payload = self.payload(slice, of);
        self.payload_received += payload;
        self.payload_peers.entry(from).or_default().1 += payload;
    }

    /// Counts a slice that was taken.
    pub(super) fn count_pushed(&mut self, to: PeerId, slice: SliceId, outcome: PushOutcome) {
        let payload = self.payload_pushed.remove(&(slice, to)).unwrap_or(0);
        if outcome == PushOutcome::Delivered {
            self.payload_sent += payload;
            self.payload_peers.entry(to).or_default().0 += payload;
        }
    }

    /// Shows the links. The payload of peers that are gone is forgotten.
    fn read_links(&mut self) {
        self.links_read = Instant::now();
        let links = self.net.links();
        self.payload_peers
            .retain(|peer, _| links.contains_key(peer));
        let payload = |peer| self.payload_peers.get(peer).copied().unwrap_or_default();
        let links = links.iter().map(|(peer, view)| {
            let (sent, received) = payload(peer);
            (*peer, LinkStatus::new(view, sent, received))
        });
        self.status.with(|observer| observer.set_links(links));
    }

    /// Reads the counters and shows how far the daemon is.
    pub(super) fn tick(&mut self) {
        if let Some(line) = self.recording.as_mut().and_then(Recording::trouble) {
            self.printer.note(&line);
        }
        self.acquaintances.look(&self.net, self.peer.view());
        self.read_traffic();
        self.show();
    }

    /// Shows the totals of bytes.
    pub(super) fn read_traffic(&mut self) {
        let counters = self.net.counters();
        let sent = Traffic {
            payload: self.payload_sent,
            encoded: counters.total.bulk_out,
            wire: counters.wire_out,
        };
        let received = Traffic {
            payload: self.payload_received,
            encoded: counters.total.bulk_in,
            wire: counters.wire_in,
        };
        self.status
            .with(|observer| observer.set_traffic(sent, received));
    }

    fn show(&mut self) {
        let (steps, samples) = (self.lanes.signals().steps(), self.lanes.signals().samples());
        let view: Vec<(PeerId, Round)> = self
            .peer
            .view()
            .greeted()
            .map(|(id, remote)| (id, remote.round))
            .collect();
        self.status.with(|observer| {
            observer.set_live_steps(steps, samples);
            observer.set_rounds(&view);
        });
        if self.links_read.elapsed() >= LINKS_EVERY {
            self.read_links();
        }
        if self.printer.wants_progress() || self.peer.phase() == Phase::Finished {
            let status = self.status.status();
            self.printer.progress(&status);
        }
    }
}
