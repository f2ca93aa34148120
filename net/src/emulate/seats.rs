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

/// One direction of a missing link.
#[derive(Clone, Debug)]
struct Cut {
    from: SeatId,
    to: SeatId,
    /// From when and until when, counted from the start of the network.
    during: Range<Duration>,
}

/// All missing links.
#[derive(Clone, Debug, Default)]
pub(super) struct Cuts(Vec<Cut>);

impl Cuts {
    /// Nothing from `from` arrives at `to` during this time.
    pub(super) fn add(&mut self, from: SeatId, to: SeatId, during: Range<Duration>) {
        self.0.push(Cut { from, to, during });
    }

    /// True while nothing from `from` arrives at `to`.
    pub(super) fn parts(&self, from: SeatId, to: SeatId, now: Duration) -> bool {
        let mut cuts = self.0.iter();
        cuts.any(|cut| cut.from == from && cut.to == to && cut.during.contains(&now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_parts_one_daemon_from_another_during_its_time() {
        let [a, b, c] = [0, 1, 2].map(SeatId);
        let s = Duration::from_secs;
        let mut cuts = Cuts::default();
        cuts.add(b, c, s(5)..s(15));
        assert!(!cuts.parts(b, c, s(4)) && !cuts.parts(b, c, s(15)));
        assert!(cuts.parts(b, c, s(5)) && cuts.parts(b, c, s(14)) && !cuts.parts(c, b, s(14)));
        assert!(!cuts.parts(a, b, s(10)) && !cuts.parts(c, a, s(10)));
        cuts.add(a, b, Duration::ZERO..Duration::MAX);
        assert!(cuts.parts(a, b, Duration::ZERO) && cuts.parts(a, b, s(1 << 40)));
    }
}
