//! The location of machines: their sites, links and distances.

use super::flows::{Flows, LinkId, Path};
use crate::random::Random;
use crate::scenario::NetworkSpec;
use core::time::Duration;
use std::collections::BTreeMap;

/// Latency of a link, one way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Latency {
    pub(crate) fixed: Duration,
    /// Upper bound of the jitter, which is uniformly distributed.
    pub(crate) jitter: Duration,
}

impl Latency {
    /// Draws a latency. Without jitter this uses no randomness.
    pub(crate) fn draw(&self, random: &mut Random) -> Duration {
        if self.jitter.is_zero() {
            return self.fixed;
        }
        self.fixed + self.jitter.mul_f64(random.unit())
    }
}

/// A machine's links and its site.
#[derive(Clone, Copy, Debug)]
struct Place {
    up: LinkId,
    down: LinkId,
    site: Option<u32>,
}

/// A site's links to other sites; `None` if they have no limit.
#[derive(Clone, Copy, Debug)]
struct Gate {
    up: Option<LinkId>,
    down: Option<LinkId>,
    inside: Option<Latency>,
}

/// The locations of all machines.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    places: Vec<Place>,
    gates: Vec<Gate>,
    usual: Latency,
    between: BTreeMap<(u32, u32), Latency>,
    pairs: BTreeMap<(u32, u32), Latency>,
}

impl Places {
    /// The locations in a scenario's network. Adds its links to `flows`.
    pub(crate) fn new(spec: &NetworkSpec, machines: usize, flows: &mut Flows) -> Self {
        let site_of = |index: usize| spec.sites.iter().position(|s| s.peers.contains(&index));
        let usual = Latency {
            fixed: spec.latency,
            jitter: spec.jitter,
        };
        let far = |fixed| Latency { fixed, ..usual };
        let places = (0..machines).map(|index| {
            let site = site_of(index);
            let own = site.map(|site| &spec.sites[site]);
            let up = own.and_then(|site| site.uplink).or(spec.uplink);
            let down = own.and_then(|site| site.downlink).or(spec.downlink);
            Place {
                up: flows.add_link(up),
                down: flows.add_link(down),
                site: site.map(|site| site as u32),
            }
        });
        let places = places.collect();
        let gates = spec.sites.iter().map(|site| Gate {
            up: site.wan_uplink.map(|rate| flows.add_link(Some(rate))),
            down: site.wan_downlink.map(|rate| flows.add_link(Some(rate))),
            inside: site.latency.map(far),
        });
        let gates = gates.collect();
        let ordered = |a: usize, b: usize| (a.min(b) as u32, a.max(b) as u32);
        let between = spec.between.iter();
        let pairs = spec.pairs.iter();
        Self {
            places,
            gates,
            usual,
            between: between
                .map(|((a, b), l)| (ordered(*a, *b), far(*l)))
                .collect(),
            pairs: pairs
                .map(|((a, b), l)| (ordered(*a, *b), far(*l)))
                .collect(),
        }
    }

    pub(crate) fn latency(&self, a: usize, b: usize) -> Latency {
        if !self.pairs.is_empty() {
            let pair = (a.min(b) as u32, a.max(b) as u32);
            if let Some(latency) = self.pairs.get(&pair) {
                return *latency;
            }
        }
        match (self.places[a].site, self.places[b].site) {
            (Some(a), Some(b)) if a == b => self.gates[a as usize].inside.unwrap_or(self.usual),
            (Some(a), Some(b)) => {
                let between = self.between.get(&(a.min(b), a.max(b)));
                between.copied().unwrap_or(self.usual)
            }
            _ => self.usual,
        }
    }

    /// The links from one machine to another.
    pub(crate) fn path(&self, from: usize, to: usize) -> Path {
        let (a, b) = (self.places[from], self.places[to]);
        let gate = |site: Option<u32>| site.map(|site| self.gates[site as usize]);
        let (out, into) = if self.apart(from, to) {
            (
                gate(a.site).and_then(|gate| gate.up),
                gate(b.site).and_then(|gate| gate.down),
            )
        } else {
            (None, None)
        };
        Path::through([Some(a.up), out, into, Some(b.down)].into_iter().flatten())
    }

    /// Set for two machines whose bytes leave a site.
    pub(crate) fn apart(&self, a: usize, b: usize) -> bool {
        self.places[a].site != self.places[b].site
    }

    /// A machine's links, out and in.
    pub(crate) fn links(&self, of: usize) -> (LinkId, LinkId) {
        (self.places[of].up, self.places[of].down)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    #[test]
    fn sites_have_gates_and_distances() {
        let text = "seed = 1\npeers = 4\nrounds = 1\n[task]\nkind = \"quadratic\"\ndim = 2\n\
                    [network]\nlatency_ms = 9.0\nuplink_mbit = 8.0\n\
                    [[network.site]]\nname = \"a\"\nfirst = 0\nlast = 1\nlatency_ms = 1.0\n\
                    uplink_mbit = 80.0\nwan_uplink_mbit = 16.0\n\
                    [[network.site]]\nname = \"b\"\nfirst = 2\nlast = 2\n\
                    [[network.between]]\nsites = [\"a\", \"b\"]\nlatency_ms = 50.0\n\
                    [[network.pair]]\npeers = [3, 0]\nlatency_ms = 70.0\n";
        let scenario = Scenario::from_toml(text, "s.toml", "s").unwrap();
        let mut flows = Flows::default();
        let places = Places::new(&scenario.network, 4, &mut flows);
        let far = |a, b| places.latency(a, b).fixed.as_millis();
        assert_eq!((far(0, 1), far(0, 2), far(2, 1)), (1, 50, 50));
        assert_eq!((far(0, 3), far(3, 0), far(1, 3)), (70, 70, 9));
        let narrow = |a, b| flows.narrowest(&places.path(a, b));
        assert_eq!((narrow(0, 1), narrow(0, 2), narrow(3, 2)), (1e7, 2e6, 1e6));
        assert_eq!(narrow(2, 0), 1e6);
        assert!(places.apart(0, 2) && places.apart(0, 3) && !places.apart(0, 1));
    }
}
