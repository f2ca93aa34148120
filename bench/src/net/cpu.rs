//! CPU time of this process.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// User and system time of all threads of this process.
pub(super) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}
