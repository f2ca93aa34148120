//! Finds the site of this daemon: by its public address, and by round trips to others.
//!
//! A daemon of a grid does that until it has a place in its roll, which keeps what a peer's record said when it
//! entered. Where the schedule of an all-reduce goes by sites it goes on, because each round's proposer reads
//! the records again.

use crate::daemon::driver::Driver;
use crate::net;
use murmurate_protocol::Site;
use murmurate_protocol::wire::PeerRecord;

impl Driver {
    /// Takes note of this daemon's own record: its public address may have become known.
    pub(super) fn note_own_record(&mut self, record: &PeerRecord) {
        if let Some(network) = net::public_network(record) {
            self.contacts.site.owns(Site::measured(&network));
        }
    }

    /// Whether this daemon still looks for its site.
    fn looks_for_a_site(&self) -> bool {
        let plan = self.peer.plan();
        let in_a_grid = plan.agreement.grouping.is_grid() && !self.peer.has_place();
        in_a_grid || plan.schedule.goes_by_sites()
    }

    /// Measures the links that are up, and announces another site if that shows one.
    pub(super) fn measure_site(&mut self) {
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

    /// Looks whether the peers nearby show another site.
    pub(super) fn look_for_site(&mut self) {
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
