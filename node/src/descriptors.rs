//! How many files and sockets this process may have open, and how many of these strangers may hold.
//!
//! A stranger that opens TCP connections and is silent costs one descriptor each. If strangers could take
//! all, a daemon could no longer write its checkpoints.

/// What a daemon opens itself: its sockets and logs, the files of its data set, a checkpoint, and links.
const OWN: u64 = 64;

/// The fewest with which a daemon starts.
const NEEDED: u64 = 96;

/// A process that may open so few files and sockets cannot be a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the system lets this process open {limit} files and sockets, and a daemon needs {NEEDED}: raise the limit \
     (`ulimit -n 1024`, or LimitNOFILE= of its service)"
)]
pub struct TooFew {
    limit: u64,
}

/// Places for connections that have not proven anything yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    limit: u64,
}

impl Places {
    /// Takes as many descriptors as the system gives.
    ///
    /// # Errors
    /// If these are too few.
    pub(crate) fn take() -> Result<Self, TooFew> {
        Self::within(system::raised())
    }

    fn within(limit: u64) -> Result<Self, TooFew> {
        if limit >= NEEDED {
            Ok(Self { limit })
        } else {
            Err(TooFew { limit })
        }
    }

    /// Places of one kind, of which there are `most` where the system does not limit them. Four kinds of
    /// places (handshakes over TCP, TLS over TCP, connections at the gate, and relayed ones) leave the daemon
    /// the descriptors that it opens itself.
    pub(crate) fn of(self, most: usize) -> usize {
        let share = self.limit.saturating_sub(OWN) / 4;
        usize::try_from(share).unwrap_or(most).min(most)
    }
}

#[cfg(unix)]
mod system {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    /// More would not be used, and some programs close all that they may have.
    const ENOUGH: u64 = 8192;

    /// The number of descriptors that this process may have, after it was raised as far as the system allows.
    pub(super) fn raised() -> u64 {
        let limits = getrlimit(Resource::Nofile);
        let most = limits.maximum.unwrap_or(ENOUGH).min(ENOUGH);
        let now = limits.current.unwrap_or(ENOUGH);
        if now >= most {
            return now;
        }
        let asked = Rlimit {
            current: Some(most),
            maximum: limits.maximum,
        };
        match setrlimit(Resource::Nofile, asked) {
            Ok(()) => most,
            Err(_) => now,
        }
    }
}

#[cfg(not(unix))]
mod system {
    /// No limit is known here.
    pub(super) fn raised() -> u64 {
        u64::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_leave_a_daemon_what_it_needs() {
        for limit in [NEEDED, 128, 256, 1024, 1 << 20] {
            let places = Places::within(limit).unwrap();
            let [tcp, gate, tls, relayed] = [128, 64, 256, 128].map(|most| places.of(most));
            let strangers = (tcp + gate + tls + relayed) as u64;
            assert!(limit - strangers >= OWN, "{limit}: {strangers}");
            assert!(gate >= 8, "{limit}: {gate}");
        }
        assert_eq!(Places::within(1024).unwrap().of(64), 64);
        let few = Places::within(64).unwrap_err();
        assert!(few.to_string().contains("ulimit -n 1024"), "{few}");
    }

    #[test]
    fn the_limit_is_raised_as_far_as_the_system_allows() {
        let places = Places::take().unwrap();
        assert_eq!(Places::take(), Ok(places));
    }
}
