//! Networks built for a job.
//!
//! - [`RailOnly`] (Wang et al. 2023, arXiv 2307.12169): GPUs of the same place in their machines
//!   share a switch, and no spine joins the switches.
//! - [`Rings`] (TopoOpt, Wang et al. 2022, arXiv 2202.00433, TotientPerms): optical links wire d
//!   rings of different strides, so that all-reduce has d links and other traffic few hops.

use std::collections::VecDeque;

/// Machines of `domain` GPUs on a fast network each, and a network for each rail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RailOnly {
    /// GPUs of one machine.
    pub domain: usize,
    /// Machines.
    pub machines: usize,
    /// Rate inside a machine, bytes per second and GPU, one way.
    pub inside: f64,
    /// Rate of a rail, bytes per second and GPU, one way.
    pub rail: f64,
}

impl RailOnly {
    /// The pairs (machine, place) that a hierarchical all-reduce joins between machines: each GPU
    /// with the one of the next machine at the same place.
    pub fn all_reduce_pairs(&self) -> Vec<((usize, usize), (usize, usize))> {
        let places = (0..self.machines).flat_map(|m| (0..self.domain).map(move |place| (m, place)));
        let next = |(m, place)| ((m, place), ((m + 1) % self.machines, place));
        match self.machines {
            0 | 1 => Vec::new(),
            _ => places.map(next).collect(),
        }
    }

    /// Seconds of an all-to-all in which each GPU sends `bytes` in all, over a network that joins
    /// all GPUs at the rail's rate.
    pub fn all_to_all_with_spine(&self, bytes: f64) -> f64 {
        self.outside() * bytes / self.rail
    }

    /// The same without a spine: what goes to another place first moves inside its machine to the
    /// GPU on the right rail, which a share (K - 1) / K of it must.
    pub fn all_to_all(&self, bytes: f64) -> f64 {
        let k = self.domain as f64;
        let moved = self.outside() * bytes * (k - 1.0) / k;
        moved / self.inside + self.all_to_all_with_spine(bytes)
    }

    /// The share of an all-to-all that leaves its machine.
    fn outside(&self) -> f64 {
        (self.machines as f64 - 1.0) / self.machines as f64
    }
}

/// Rings over the same hosts with strides that are coprime to their number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rings {
    hosts: usize,
    strides: Vec<usize>,
}

impl Rings {
    /// At most `degree` rings among `hosts`. The strides are those coprime ones that are nearest to
    /// a geometric row from 1 to n / 2 (TopoOpt's SelectPermutations): distances shrink by the same
    /// factor with each ring.
    ///
    /// Special cases: fewer than two hosts have no ring. A number with few coprime strides has
    /// fewer rings than `degree`; n = 6 has only the strides 1 and 5, which are one ring run both
    /// ways.
    pub fn new(hosts: usize, degree: usize) -> Self {
        let mut coprime: Vec<usize> = (1..=hosts / 2).filter(|p| gcd(*p, hosts) == 1).collect();
        let mut strides = Vec::new();
        let ratio = (hosts as f64 / 2.0).powf(1.0 / degree.max(1) as f64);
        for ring in 0..degree {
            let wanted = ratio.powi(ring as i32);
            let far = |p: &usize| (*p as f64 / wanted).ln().abs();
            let nearest =
                (0..coprime.len()).min_by(|a, b| far(&coprime[*a]).total_cmp(&far(&coprime[*b])));
            let Some(index) = nearest else { break };
            strides.push(coprime.remove(index));
        }
        Self { hosts, strides }
    }

    /// Their strides.
    pub fn strides(&self) -> &[usize] {
        &self.strides
    }

    /// Seconds of an all-reduce of `bytes` when each ring's link has this rate: each ring carries
    /// an equal part.
    pub fn all_reduce(&self, bytes: f64, rate: f64) -> f64 {
        let n = self.hosts as f64;
        2.0 * (n - 1.0) / n * bytes / (self.strides.len() as f64 * rate)
    }

    /// Links between a host and another, on average over all others, when links carry both ways.
    pub fn mean_hops(&self) -> f64 {
        let mut hops = vec![usize::MAX; self.hosts];
        let mut queue = VecDeque::from([0]);
        hops[0] = 0;
        while let Some(at) = queue.pop_front() {
            for stride in &self.strides {
                for to in [
                    (at + stride) % self.hosts,
                    (at + self.hosts - stride) % self.hosts,
                ] {
                    if hops[to] == usize::MAX {
                        hops[to] = hops[at] + 1;
                        queue.push_back(to);
                    }
                }
            }
        }
        hops.iter().sum::<usize>() as f64 / (self.hosts as f64 - 1.0)
    }
}

fn gcd(a: usize, b: usize) -> usize {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stride_is_a_ring_over_all_hosts() {
        for hosts in 2..60 {
            for degree in 1..6 {
                let rings = Rings::new(hosts, degree);
                assert!(!rings.strides().is_empty());
                for stride in rings.strides() {
                    let mut seen = vec![false; hosts];
                    let mut at = 0;
                    while !std::mem::replace(&mut seen[at], true) {
                        at = (at + stride) % hosts;
                    }
                    assert!(seen.into_iter().all(|seen| seen), "{hosts}: {stride}");
                }
            }
        }
    }

    #[test]
    fn more_rings_carry_more_and_bring_hosts_closer() {
        let hops = |degree| Rings::new(128, degree).mean_hops();
        // One ring among n hosts: n^2 / 4 hops to the n - 1 others.
        assert!((hops(1) - 128.0 * 128.0 / 4.0 / 127.0).abs() < 1e-9);
        assert!(
            hops(2) < 0.5 * hops(1) && hops(4) < hops(2),
            "{} {}",
            hops(2),
            hops(4)
        );
        // d rings of rate B equal one switch of rate d B: 2 (n - 1) / n * m / (d B).
        let four = Rings::new(128, 4);
        let switch = 2.0 * 127.0 / 128.0 * 1e9 / (4.0 * 12.5e9);
        assert!((four.all_reduce(1e9, 12.5e9) / switch - 1.0).abs() < 1e-12);
    }

    #[test]
    fn all_reduce_needs_no_spine_and_all_to_all_pays_inside_the_machine() {
        let rails = RailOnly {
            domain: 8,
            machines: 16,
            inside: 300e9,
            rail: 25e9,
        };
        let pairs = rails.all_reduce_pairs();
        assert_eq!(pairs.len(), 128);
        assert!(pairs.iter().all(|((_, a), (_, b))| a == b));
        let slower = rails.all_to_all(1e9) / rails.all_to_all_with_spine(1e9) - 1.0;
        assert!((slower - 7.0 / 8.0 * 25.0 / 300.0).abs() < 1e-12);
        // A machine of one GPU has a rail to everyone.
        let single = RailOnly { domain: 1, ..rails };
        assert_eq!(single.all_to_all(1e9), single.all_to_all_with_spine(1e9));
    }
}
