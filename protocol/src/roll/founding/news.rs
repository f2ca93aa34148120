//! What changes while a run is being founded.

use super::Founding;
use crate::PeerId;
use crate::wire::PeerRecord;

impl Founding {
    /// This peer's record says something else now.
    pub(crate) fn renew(&mut self, me: &PeerRecord) {
        self.me = me.clone();
        self.register.enter(std::slice::from_ref(me));
    }

    /// A registrar cannot be reached: others take its part.
    pub(crate) fn lost(&mut self, peer: PeerId) {
        self.register.lose(peer);
    }
}

#[cfg(test)]
mod tests {
    use crate::limits::FOUNDING_QUIET_TICKS;
    use crate::roll::founding::tests::Swarm;
    use crate::roll::tests::record;
    use crate::wire::PeerRecord;
    use crate::{FoundingMessage, PeerId, Site};

    /// A newer record of a peer, at a site.
    fn moved(id: u16, site: &str, sequence: u64) -> PeerRecord {
        let mut record = record(id);
        record.sequence = sequence;
        record.locality.site = Some(Site::new(site).unwrap());
        record
    }

    /// The peers of the roll that all hold, and their sites.
    fn placed(swarm: &Swarm) -> Vec<(PeerId, Option<Site>)> {
        let rolls = swarm
            .peers
            .values()
            .map(|peer| peer.roll().expect("a roll"));
        let mut rolls: Vec<_> = rolls.collect();
        rolls.dedup_by_key(|roll| roll.digest());
        assert_eq!(rolls.len(), 1, "all hold one roll");
        let places = (0..rolls[0].len()).filter_map(|place| rolls[0].place(place));
        let places = places.map(|p| (p.record.peer, p.record.locality.site.clone()));
        places.collect()
    }

    #[test]
    fn a_founding_waits_for_sites_and_places_by_them() {
        let mut swarm = Swarm::new(0..8, 8);
        // Each finds its site while the founding is under way, the last one late.
        swarm.ticks(FOUNDING_QUIET_TICKS - 2, |_| true);
        for id in 0..8u16 {
            let site = ["x", "y"][usize::from(id % 2)];
            let peer = swarm.peers.get_mut(&record(id).peer).expect("it is there");
            peer.renew(&moved(id, site, 2));
            swarm.ticks(1, |_| true);
        }
        let undecided = swarm.peers.values().all(|peer| peer.roll().is_none());
        assert!(undecided, "sites still change");
        swarm.ticks(4 * FOUNDING_QUIET_TICKS, |_| true);
        let placed = placed(&swarm);
        // One column at this size, whose places are in the order of sites all the same.
        let sites: Vec<&str> = placed
            .iter()
            .filter_map(|(_, site)| Some(site.as_ref()?.as_str()))
            .collect();
        assert_eq!(sites.len(), 8);
        let changes = sites.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert_eq!(changes, 1, "{sites:?}");
    }

    #[test]
    fn a_peer_that_claims_two_sites_has_the_one_of_its_newest_record() {
        let mut swarm = Swarm::new(0..4, 4);
        let founder = swarm.founder();
        let liar = (0..4).find(|id| record(*id).peer != founder).unwrap();
        for said in [
            moved(liar, "x", 4),
            moved(liar, "y", 7),
            moved(liar, "z", 6),
        ] {
            let founder = swarm.peers.get_mut(&founder).expect("it is there");
            founder.said(&said, &FoundingMessage::Here(vec![said.clone()]));
        }
        swarm.ticks(6 * FOUNDING_QUIET_TICKS, |_| true);
        let placed = placed(&swarm);
        let claims = placed.iter().filter(|(peer, _)| *peer == record(liar).peer);
        let claims: Vec<&str> = claims
            .filter_map(|(_, s)| Some(s.as_ref()?.as_str()))
            .collect();
        assert_eq!(claims, ["y"]);
    }
}
