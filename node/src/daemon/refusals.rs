//! Refusals between this daemon and others: which settings differ, and how often the operator hears of it.
//!
//! Another run on the same network finds this daemon again and again, so lines are limited. Where two
//! daemons of one run do not fit, each tells the other its settings, and the line names those that differ.

use crate::daemon::RefusedBy;
use murmurate_protocol::PeerId;
use murmurate_protocol::wire::Setting;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Time between two lines about one peer.
const AGAIN: Duration = Duration::from_secs(3600);

/// Peers of whom lines speak within that time. A stranger can have any number of identities.
const PEERS_MAX: usize = 16;

/// How long a peer may take to say its settings.
const SETTINGS_WAIT: Duration = Duration::from_secs(2);

/// A refusal that waits for the other end's settings.
#[derive(Debug)]
pub(super) struct Held {
    /// The refusal.
    pub(super) refused: RefusedBy,
    /// Whether the link is to end.
    pub(super) ends: bool,
    until: Instant,
}

/// The peers that the operator has been told about, and when; and refusals whose reason is being found.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    told: BTreeMap<PeerId, Instant>,
    held: BTreeMap<PeerId, Held>,
    settings: Vec<Setting>,
}

impl Refusals {
    /// No refusals yet, of a daemon with these settings.
    pub(super) fn new(settings: Vec<Setting>) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    /// This daemon's settings.
    pub(super) fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// Whether a line about this peer is due.
    pub(super) fn tell(&mut self, peer: PeerId, now: Instant) -> bool {
        self.told
            .retain(|_, told| now.duration_since(*told) < AGAIN);
        if self.told.len() >= PEERS_MAX || self.told.contains_key(&peer) {
            return false;
        }
        self.told.insert(peer, now);
        true
    }

    /// Holds a refusal until the other end has said its settings. False if one is held already, or too
    /// many are.
    pub(super) fn waits_for(&mut self, refused: RefusedBy, now: Instant) -> bool {
        let peer = refused.peer;
        if self.held.len() >= PEERS_MAX || self.held.contains_key(&peer) {
            return false;
        }
        let held = Held {
            refused,
            ends: false,
            until: now + SETTINGS_WAIT,
        };
        self.held.insert(peer, held);
        true
    }

    /// The link to a peer is to end. True if that waits for its settings.
    pub(super) fn ends_later(&mut self, peer: PeerId) -> bool {
        let held = self.held.get_mut(&peer);
        held.map(|held| held.ends = true).is_some()
    }

    /// A peer has said its settings. Returns what waited for that, with the keys that differ: those of
    /// whole sections first, because others follow from them.
    pub(super) fn compared(&mut self, peer: PeerId, theirs: &[Setting]) -> Option<Held> {
        let mut held = self.held.remove(&peer)?;
        let mut keys = Setting::differing(&self.settings, theirs);
        keys.sort_by_key(|key| key.matches('.').count());
        held.refused.keys = keys.into_iter().map(str::to_owned).collect();
        Some(held)
    }

    /// Refusals that wait no longer: of a peer that has gone, and those whose time is up.
    pub(super) fn overdue(&mut self, gone: Option<PeerId>, now: Instant) -> Vec<Held> {
        let over = |peer: &PeerId, held: &mut Held| gone == Some(*peer) || held.until <= now;
        let over = self.held.extract_if(.., over);
        over.map(|(_, held)| held).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_protocol::wire::Reason;

    fn peer(id: u8) -> PeerId {
        PeerId::from_bytes([id; 32])
    }

    #[test]
    fn one_line_a_peer_and_hour_and_few_in_all() {
        let mut refusals = Refusals::default();
        let now = Instant::now();
        assert!(refusals.tell(peer(0), now));
        assert!(!refusals.tell(peer(0), now + Duration::from_secs(3599)));
        assert!(refusals.tell(peer(0), now + AGAIN));
        let told = (1..=255).filter(|id| refusals.tell(peer(*id), now + AGAIN));
        assert_eq!(told.count(), PEERS_MAX - 1);
    }

    #[test]
    fn a_refusal_waits_for_the_settings_of_the_other_end() {
        let setting = |key, value| Setting::new(key, value).unwrap();
        let mut refusals = Refusals::new(vec![
            setting("run.seed", "1"),
            setting("strategy.outer.lr", "0.7"),
            setting("strategy.preset", "diloco"),
        ]);
        let now = Instant::now();
        let refused = |id| RefusedBy::new(peer(id), Reason::OtherPlan);
        assert!(!refusals.ends_later(peer(1)), "nothing is held");
        assert!(refusals.waits_for(refused(1), now));
        assert!(!refusals.waits_for(refused(1), now), "one at a time");
        assert!(refusals.ends_later(peer(1)));
        let theirs = [
            setting("run.seed", "1"),
            setting("strategy.outer.lr", "0.5"),
            setting("strategy.preset", "slowmo"),
        ];
        assert!(refusals.compared(peer(2), &theirs).is_none());
        let held = refusals.compared(peer(1), &theirs).unwrap();
        assert!(held.ends);
        assert_eq!(held.refused.keys, ["strategy.preset", "strategy.outer.lr"]);
        // One goes, and another one says nothing.
        assert!(refusals.waits_for(refused(1), now));
        assert!(refusals.waits_for(refused(2), now));
        assert_eq!(refusals.overdue(Some(peer(1)), now).len(), 1);
        assert_eq!(refusals.overdue(None, now + SETTINGS_WAIT).len(), 1);
        // Any number of identities may come.
        let held = (0..=255).filter(|id| refusals.waits_for(refused(*id), now));
        assert_eq!(held.count(), PEERS_MAX);
    }
}
