//! What a daemon keeps about other daemons: the peers that it met, the members of the run, and the
//! records that it has checked.

use crate::config::{Config, NetworkConfig};
use crate::daemon::acquaintances::Acquaintances;
use crate::daemon::records::RecordChecks;
use crate::membership::Roll;
use crate::net::{Membership, Net};
use murmurate_protocol::{PeerId, Site, SiteFinder, View};
use murmurate_trust::Role;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a daemon keeps about others.
#[derive(Debug)]
pub(super) struct Contacts {
    /// Peers to dial after a restart.
    pub(super) acquaintances: Acquaintances,
    /// The register of members.
    pub(super) roll: Roll,
    /// Which records were checked.
    pub(super) records: RecordChecks,
    /// The same for messages about the places of a grid.
    pub(super) rolls: RecordChecks,
    /// Linked peers that take no part in rounds, by their certificates.
    pub(super) bystanders: BTreeMap<PeerId, Role>,
    /// Measures the site of this daemon.
    pub(super) site: SiteFinder,
}

/// Finds the site of a daemon that the configuration describes.
pub(super) fn finder(me: PeerId, config: &NetworkConfig) -> SiteFinder {
    let own = Site::measured(me.as_bytes());
    let finder = SiteFinder::new(own).fixed(config.site.clone());
    finder.sending(config.max_rate.daemon)
}

impl Contacts {
    /// The contacts of the daemon with this configuration.
    pub(super) fn new(
        config: &Config,
        membership: Arc<Membership>,
        acquaintances: Acquaintances,
    ) -> Self {
        let dir = config.daemon.dir.clone();
        Self {
            site: finder(membership.me(), &config.network),
            acquaintances,
            roll: Roll::new(dir, membership),
            records: RecordChecks::default(),
            rolls: RecordChecks::of_rolls(),
            bystanders: BTreeMap::new(),
        }
    }

    /// Dials, passes orders on and writes what has changed. May be called at any rate.
    pub(super) fn look(&mut self, net: &Net, view: &View, addresses: &[String]) {
        self.acquaintances.look(net, view);
        self.roll.look(net, addresses);
    }

    /// Writes what has changed since. May wait for the disk.
    pub(super) async fn finish(self, view: &View) {
        self.acquaintances.finish(view).await;
        self.roll.finish().await;
    }
}
