//! Where in the network a peer is: its site, and how fast it sends.
//!
//! Peers of one site reach each other over a local network. A roll places them in rows together, so
//! that only columns cross the links between sites. Both facts are in a peer's record, and the roll
//! names them as they were when the peer entered: all peers place alike, whatever is measured later.

use crate::limits::{RATE_CLASS_MAX, SITE_BYTES_MAX, SITE_LOOKS, SITE_PEERS_MAX, SITE_ROUND_TRIP};
use crate::sorted::SortedMap;
use crate::wire::WireError;
use crate::wire::check::ok;
use crate::{Digest, PeerId};
use core::fmt;
use core::time::Duration;
use serde::{Deserialize, Serialize};

/// The first character of a label that was measured and not configured. It is greater than all others,
/// so that of two labels a configured one is the smaller.
const MEASURED: char = '~';

/// The bytes per second of the lowest rate class.
const LOWEST_RATE: u64 = 1024;

/// The label of a site.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Site(String);

impl Site {
    /// A label of a configuration: letters, digits, `.`, `_` and `-`.
    ///
    /// # Errors
    /// [`WireError::OutOfRange`] for one that is empty, too long, or has other characters.
    pub fn new(label: &str) -> Result<Self, WireError> {
        let site = Self(label.to_owned());
        ok(!site.is_measured(), "record.site")?;
        site.check().map(|()| site)
    }

    /// The label of the peers that have something in common, such as a public address.
    pub fn measured(common: &[u8]) -> Self {
        let digest = Digest::of(&crate::wire::canonical(&("murmurate site", common)));
        let name = digest.as_bytes().iter().take(6);
        let name: String = name.map(|byte| format!("{byte:02x}")).collect();
        Self(format!("{MEASURED}{name}"))
    }

    /// Returns `true` if the label was measured.
    pub fn is_measured(&self) -> bool {
        self.0.starts_with(MEASURED)
    }

    /// The label.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn check(&self) -> Result<(), WireError> {
        let label = self.0.strip_prefix(MEASURED).unwrap_or(&self.0);
        let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let fits = !label.is_empty() && self.0.len() <= SITE_BYTES_MAX;
        ok(fits && label.chars().all(known), "record.site")
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How fast a peer sends, in octaves: each class is twice as fast as the one below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RateClass(u8);

impl RateClass {
    /// The class of a rate in bytes per second. The lowest begins at 1 KiB/s.
    pub fn of(bytes_per_second: u64) -> Self {
        let octave = (bytes_per_second / LOWEST_RATE).max(1).ilog2() as u8;
        Self(octave.min(RATE_CLASS_MAX))
    }

    /// The number of the class.
    pub const fn number(self) -> u8 {
        self.0
    }

    pub(crate) fn check(self) -> Result<(), WireError> {
        ok(self.0 <= RATE_CLASS_MAX, "record.rate")
    }
}

/// What a peer's record says of its place in the network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Locality {
    /// Its site; a peer without one is a site of its own.
    pub site: Option<Site>,
    /// How fast it sends, if that is known.
    pub rate: Option<RateClass>,
}

impl Locality {
    pub(crate) fn wire_bytes(&self) -> usize {
        const LENGTH: usize = 8;
        let site = self.site.as_ref().map(|site| LENGTH + site.0.len());
        2 + site.unwrap_or(0) + usize::from(self.rate.is_some())
    }

    pub(crate) fn check(&self) -> Result<(), WireError> {
        self.site.as_ref().map_or(Ok(()), Site::check)?;
        self.rate.map_or(Ok(()), RateClass::check)
    }
}

/// A member this many octaves below the fastest is slow.
const SLOW_OCTAVES: u8 = 2;

/// At least one member in this many owns parts: each of few owners sends results to all.
const OWNERS_AT_LEAST: usize = 4;

/// Which of some members own parts. An owner of one of o parts among c members sends c/o times what a
/// member does that owns none, so a member is left out only if it is slow beside others that are enough.
/// A member whose rate is not known is not slow.
pub(crate) fn fast_enough(rates: &[Option<RateClass>]) -> Vec<bool> {
    let best = rates.iter().flatten().max();
    let mut bar = best.map_or(0, |best| best.number().saturating_sub(SLOW_OCTAVES - 1));
    let least = rates.len().div_ceil(OWNERS_AT_LEAST);
    loop {
        let is_fast = |rate: &Option<RateClass>| rate.is_none_or(|rate| rate.number() >= bar);
        let fast: Vec<bool> = rates.iter().map(is_fast).collect();
        if bar == 0 || fast.iter().filter(|fast| **fast).count() >= least {
            return fast;
        }
        bar -= 1;
    }
}

/// Finds a peer's site by measuring.
///
/// Peers that are a short round trip apart share a site. Each has a label of its own (a hash of its
/// public address, or of its id), and all take the smallest label among their own and those of the
/// peers nearby: so the smallest spreads over the whole site. Configured labels are smaller than
/// measured ones.
///
/// A label does not flap. A smaller one is taken at once, because no number of such steps leads back. A
/// greater one is taken after [`SITE_LOOKS`] looks in a row that ask for it. In the same way, one short
/// round trip shows that a peer is near, because none is shorter than the distance; that it is far shows
/// in several long ones in a row, of twice the length.
#[derive(Clone, Debug)]
pub struct SiteFinder {
    /// The label that this peer has by itself.
    own: Site,
    /// A configured label, which no measurement changes.
    fixed: Option<Site>,
    rate: Option<RateClass>,
    /// Peers nearby, with the number of long round trips in a row.
    near: SortedMap<PeerId, u8>,
    site: Site,
    /// Looks in a row that asked for a greater label.
    looks: u8,
}

impl SiteFinder {
    /// For a peer with a label of its own: of a public address, or else of its id.
    pub fn new(own: Site) -> Self {
        Self {
            site: own.clone(),
            own,
            fixed: None,
            rate: None,
            near: SortedMap::new(),
            looks: 0,
        }
    }

    /// A peer whose site is configured.
    #[must_use]
    pub fn fixed(mut self, site: Option<Site>) -> Self {
        self.fixed = site;
        self
    }

    /// How fast the peer may send, in bytes per second.
    #[must_use]
    pub fn sending(mut self, rate: Option<u64>) -> Self {
        self.rate = rate.map(RateClass::of);
        self
    }

    /// Another label of its own, because its public address became known.
    pub fn owns(&mut self, own: Site) {
        if self.site == self.own {
            self.site = own.clone();
        }
        self.own = own;
    }

    /// What its record is to say.
    pub fn locality(&self) -> Locality {
        Locality {
            site: Some(self.fixed.as_ref().unwrap_or(&self.site).clone()),
            rate: self.rate,
        }
    }

    /// The round trip to a peer was measured.
    pub fn measured(&mut self, peer: PeerId, round_trip: Duration) {
        let room = self.near.len() < SITE_PEERS_MAX;
        match self.near.get_mut(&peer) {
            None if round_trip <= SITE_ROUND_TRIP && room => {
                self.near.insert(peer, 0);
            }
            None => {}
            Some(long) if round_trip > 2 * SITE_ROUND_TRIP => {
                *long += 1;
                if *long >= SITE_LOOKS {
                    self.near.remove(&peer);
                }
            }
            Some(long) => *long = 0,
        }
    }

    /// A peer's link is gone.
    pub fn lost(&mut self, peer: PeerId) {
        self.near.remove(&peer);
    }

    /// Looks at the labels of the peers nearby; true if this peer takes another one.
    pub fn look(&mut self, label_of: impl Fn(PeerId) -> Option<Site>) -> bool {
        let labels = self.near.keys().filter_map(|peer| label_of(*peer));
        let smallest = labels.chain([self.own.clone()]).min();
        let Some(found) = smallest.filter(|found| *found != self.site) else {
            self.looks = 0;
            return false;
        };
        self.looks += 1;
        if found > self.site && self.looks < SITE_LOOKS {
            return false;
        }
        self.looks = 0;
        self.site = found;
        self.fixed.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_short_words() {
        assert_eq!(Site::new("berlin-2").unwrap().as_str(), "berlin-2");
        let longest = "x".repeat(SITE_BYTES_MAX);
        assert!(Site::new(&longest).is_ok());
        for label in ["", "~", "~ab", "a b", "a\n", "ü", &format!("{longest}x")] {
            let field = "record.site".to_owned();
            assert_eq!(
                Site::new(label),
                Err(WireError::OutOfRange { field }),
                "{label}"
            );
        }
        let measured = Site::measured(&[192, 0, 2, 1]);
        assert!(measured.is_measured() && measured.check().is_ok());
        assert_ne!(measured, Site::measured(&[192, 0, 2, 2]));
        assert!(Site::new("zürich").is_err() && Site::new("zz").unwrap() < measured);
    }

    #[test]
    fn a_class_is_twice_as_fast_as_the_one_below() {
        let class = |rate| RateClass::of(rate).number();
        assert_eq!([0, 1, 1024, 2047, 2048].map(class), [0, 0, 0, 0, 1]);
        assert_eq!(class(125_000_000), 16);
        assert_eq!(class(u64::MAX), RATE_CLASS_MAX);
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        let rate = |number| Locality {
            site: None,
            rate: Some(RateClass(number)),
        };
        assert!(rate(RATE_CLASS_MAX).check().is_ok());
        let field = "record.rate".to_owned();
        assert_eq!(
            rate(RATE_CLASS_MAX + 1).check(),
            Err(WireError::OutOfRange { field })
        );
    }

    #[test]
    fn it_knows_its_bytes() {
        let site = Some(Site::measured(b"x"));
        let rate = Some(RateClass::of(1_000_000));
        for locality in [Locality::default(), Locality { site, rate }] {
            let bytes = crate::wire::encode_value(&locality);
            assert_eq!(locality.wire_bytes(), bytes.len());
        }
    }
}

#[cfg(test)]
mod owners_tests {
    use super::*;

    fn fast(rates: &[Option<u32>]) -> Vec<bool> {
        let rates: Vec<Option<RateClass>> = rates
            .iter()
            .map(|rate| rate.map(|octave| RateClass::of(1024 << octave)))
            .collect();
        fast_enough(&rates)
    }

    #[test]
    fn the_slow_own_nothing_and_the_unknown_are_not_slow() {
        assert_eq!(
            fast(&[Some(9), Some(8), Some(7), None]),
            [true, true, false, true]
        );
        assert_eq!(fast(&[None, None]), [true, true]);
        assert_eq!(fast(&[Some(0), Some(1)]), [true, true]);
        assert!(fast(&[]).is_empty());
    }

    #[test]
    fn a_quarter_owns_parts_however_slow() {
        let one_fast = [
            Some(20),
            Some(3),
            Some(3),
            Some(5),
            Some(2),
            Some(2),
            Some(2),
        ];
        assert_eq!(
            fast(&one_fast),
            [true, false, false, true, false, false, false]
        );
        // Members of one class are alike.
        let one_fast = [Some(20), Some(3), Some(3), Some(3), Some(3)];
        assert_eq!(fast(&one_fast), [true; 5]);
        assert_eq!(
            fast(&[Some(20), Some(3), Some(3), Some(3)]),
            [true, false, false, false]
        );
    }
}

#[cfg(test)]
mod finder_tests {
    use super::*;
    use crate::id::tests::peer;

    const SHORT: Duration = Duration::from_millis(1);
    const LONG: Duration = Duration::from_millis(40);

    fn own(id: u8) -> Site {
        Site::measured(&[id])
    }

    fn site(finder: &SiteFinder) -> Site {
        finder.locality().site.expect("a finder has a label")
    }

    /// Finders that all know each other's labels.
    struct Swarm(Vec<SiteFinder>);

    impl Swarm {
        fn new(peers: u8) -> Self {
            Self((0..peers).map(|id| SiteFinder::new(own(id))).collect())
        }

        fn measure(&mut self, a: u8, b: u8, round_trip: Duration) {
            self.0[usize::from(a)].measured(peer(b), round_trip);
            self.0[usize::from(b)].measured(peer(a), round_trip);
        }

        /// All look; how many took another label.
        fn look(&mut self) -> usize {
            let labels: Vec<Site> = self.0.iter().map(site).collect();
            let label = |id: PeerId| labels.get(usize::from(id.as_bytes()[0])).cloned();
            let all = self.0.iter_mut();
            all.map(|finder| usize::from(finder.look(label))).sum()
        }

        fn sites(&self) -> Vec<Site> {
            self.0.iter().map(site).collect()
        }
    }

    #[test]
    fn the_smallest_label_spreads_over_a_site_and_no_further() {
        // A chain of five that are near to the next one, and two far away.
        let mut swarm = Swarm::new(7);
        for a in 0..4 {
            swarm.measure(a, a + 1, SHORT);
        }
        swarm.measure(4, 5, LONG);
        swarm.measure(5, 6, SHORT);
        for _ in 0..5 {
            swarm.look();
        }
        assert_eq!(swarm.look(), 0, "it settles");
        let sites = swarm.sites();
        let smallest = (0..5).map(own).min().unwrap();
        assert!(sites[..5].iter().all(|site| *site == smallest));
        let smallest = own(5).min(own(6));
        assert!(sites[5..].iter().all(|site| *site == smallest));
    }

    #[test]
    fn a_peer_that_knows_no_other_has_a_site_of_its_own() {
        let mut one = SiteFinder::new(own(1));
        one.measured(peer(2), SHORT);
        assert!(
            !one.look(|_| None),
            "a peer without a label changes nothing"
        );
        assert_eq!(site(&one), own(1));
    }

    #[test]
    fn a_configured_label_stays_and_is_taken_by_others() {
        let berlin = Site::new("berlin").unwrap();
        let mut swarm = Swarm::new(3);
        swarm.0[1] = SiteFinder::new(own(1)).fixed(Some(berlin.clone()));
        swarm.measure(0, 1, SHORT);
        swarm.measure(0, 2, SHORT);
        for _ in 0..3 {
            swarm.look();
        }
        assert!(swarm.sites().iter().all(|site| *site == berlin));
    }

    #[test]
    fn one_long_round_trip_changes_nothing_and_many_do() {
        let (small, great) = (own(1).min(own(2)), own(1).max(own(2)));
        let mut one = SiteFinder::new(great.clone());
        let label = |_| Some(small.clone());
        one.measured(peer(2), SHORT);
        assert!(one.look(label));
        for _ in 0..20 {
            for round_trip in [LONG, LONG, SHORT] {
                one.measured(peer(2), round_trip);
                assert!(!one.look(label), "a line that is busy now and then");
            }
        }
        // It moved away.
        let mut changes = Vec::new();
        for _ in 0..6 {
            one.measured(peer(2), LONG);
            changes.push(one.look(label));
        }
        let wait = usize::from(2 * SITE_LOOKS - 2);
        assert_eq!(changes.iter().position(|changed| *changed), Some(wait));
        assert_eq!(site(&one), great);
    }

    #[test]
    fn a_site_keeps_its_label_when_the_peer_that_brought_it_leaves() {
        let mut swarm = Swarm::new(3);
        let smallest = (0..3).min_by_key(|id| own(*id)).unwrap();
        for (a, b) in [(0, 1), (1, 2), (0, 2)] {
            swarm.measure(a, b, SHORT);
        }
        swarm.look();
        let label = own(smallest);
        for id in (0..3).filter(|id| *id != smallest) {
            let finder = &mut swarm.0[usize::from(id)];
            finder.lost(peer(smallest));
            for _ in 0..10 {
                finder.look(|_| Some(label.clone()));
            }
            assert_eq!(site(finder), label);
        }
    }

    #[test]
    fn few_peers_are_remembered() {
        let mut one = SiteFinder::new(own(1));
        for id in 0..2 * SITE_PEERS_MAX {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&(id as u64).to_le_bytes());
            one.measured(PeerId::from_bytes(bytes), SHORT);
        }
        assert_eq!(one.near.len(), SITE_PEERS_MAX);
    }

    #[test]
    fn an_address_that_becomes_known_changes_its_own_label_only() {
        let mut one = SiteFinder::new(own(1));
        one.owns(own(2));
        assert_eq!(site(&one), own(2));
        let berlin = Site::new("berlin").unwrap();
        one.measured(peer(2), SHORT);
        assert!(one.look(|_| Some(berlin.clone())));
        one.owns(own(3));
        assert_eq!(site(&one), berlin);
        let rate = SiteFinder::new(own(1)).sending(Some(4096)).locality().rate;
        assert_eq!(rate, Some(RateClass::of(4096)));
    }
}
