//! [`Phase`]: the phases of the controller.

/// The phase of the controller (draft-ietf-ccwg-bbr, section 3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Searches for the bandwidth by exponential growth.
    Startup,
    /// Empties the queue that Startup made.
    Drain,
    /// Sends below the bandwidth until the queue of the last probe is empty.
    Down,
    /// Sends at the bandwidth.
    Cruise,
    /// Sends at the bandwidth for one round without the short-term bounds, before a probe.
    Refill,
    /// Sends above the bandwidth to find out whether there is more.
    Up,
    /// Sends little, so that the queue empties and the minimum round-trip time can be measured.
    ProbeRtt,
}
