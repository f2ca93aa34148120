//! Places of daemons on an emulated network, and missing links: pairs of daemons between which nothing
//! arrives, for some time or always.

use std::net::Ipv4Addr;
use std::ops::Range;
use std::time::Duration;

/// Index of a daemon on the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeatId(pub(super) usize);

/// A daemon's place on an emulated network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Index of the daemon.
    pub id: SeatId,
    /// The address to which the daemon must bind all its UDP and TCP sockets.
    pub inner: Ipv4Addr,
    /// The address that other daemons see.
    pub public: Ipv4Addr,
}

/// One missing link.
#[derive(Clone, Debug)]
struct Cut {
    between: [SeatId; 2],
    /// From when and until when, counted from the start of the network.
    during: Range<Duration>,
}

/// All missing links.
#[derive(Clone, Debug, Default)]
pub(super) struct Cuts(Vec<Cut>);

impl Cuts {
    /// Nothing arrives between `a` and `b`, in both directions, during this time.
    pub(super) fn add(&mut self, a: SeatId, b: SeatId, during: Range<Duration>) {
        let between = [a, b];
        self.0.push(Cut { between, during });
    }

    /// True while nothing arrives between two daemons.
    pub(super) fn parts(&self, a: SeatId, b: SeatId, now: Duration) -> bool {
        let of_both = |cut: &&Cut| cut.between == [a, b] || cut.between == [b, a];
        let mut cuts = self.0.iter().filter(of_both);
        cuts.any(|cut| cut.during.contains(&now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_parts_its_two_daemons_during_its_time() {
        let [a, b, c] = [0, 1, 2].map(SeatId);
        let s = Duration::from_secs;
        let mut cuts = Cuts::default();
        cuts.add(b, c, s(5)..s(15));
        assert!(!cuts.parts(b, c, s(4)) && !cuts.parts(b, c, s(15)));
        assert!(cuts.parts(b, c, s(5)) && cuts.parts(c, b, s(14)));
        assert!(!cuts.parts(a, b, s(10)) && !cuts.parts(c, a, s(10)));
        cuts.add(a, b, Duration::ZERO..Duration::MAX);
        assert!(cuts.parts(b, a, Duration::ZERO) && cuts.parts(a, b, s(1 << 40)));
    }
}
