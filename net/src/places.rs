//! A bounded number of places for connections that have not proven anything yet.
//!
//! Anyone can open connections and say nothing on them. If a full table refused newcomers, a stranger
//! could keep everyone out for as long as a handshake may take, again and again. So one more
//! connection ends the oldest of the network that holds most places: a peer that speaks at once has
//! its place for long enough, and strangers of one network push out only each other.

use futures::future::{AbortHandle, AbortRegistration, Abortable};
use std::collections::BTreeMap;
use std::future::Future;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The network of an address: 24 bits of IPv4, 56 of IPv6, and the version.
pub type Network = (u8, [u8; 7]);

/// The network of an address.
#[must_use]
pub fn network_of(ip: IpAddr) -> Network {
    match ip.to_canonical() {
        IpAddr::V4(ip) => {
            let [a, b, c, _] = ip.octets();
            (4, [a, b, c, 0, 0, 0, 0])
        }
        IpAddr::V6(ip) => {
            let [a, b, c, d, e, f, g, ..] = ip.octets();
            (6, [a, b, c, d, e, f, g])
        }
    }
}

/// The place of the network that holds most of them which was taken first. `places` come in the
/// order in which they were taken.
pub fn oldest_of_the_most<I, N: Ord + Copy>(
    places: impl Iterator<Item = (I, N)> + Clone,
) -> Option<I> {
    let mut counts: BTreeMap<N, usize> = BTreeMap::new();
    for (_, network) in places.clone() {
        *counts.entry(network).or_default() += 1;
    }
    let (most, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    let mut places = places;
    places
        .find(|(_, network)| *network == most)
        .map(|(id, _)| id)
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    /// In the order in which they were taken. `None` is a network that is not known.
    all: BTreeMap<u64, (Option<Network>, AbortHandle)>,
}

/// The places. A clone of the `Arc` shares them.
#[derive(Debug)]
pub struct Places {
    max: usize,
    taken: Mutex<Taken>,
}

/// One place. Dropping it frees it.
#[derive(Debug)]
pub struct Place {
    free: Free,
    registration: AbortRegistration,
}

impl Places {
    /// `max` places, at least one.
    #[must_use]
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max: max.max(1),
            taken: Mutex::default(),
        })
    }

    /// How many are taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.lock().all.len()
    }

    /// Takes a place for a connection from this network. If there is none, another one ends.
    #[must_use]
    pub fn take(self: &Arc<Self>, from: Option<Network>) -> Place {
        let (handle, registration) = AbortHandle::new_pair();
        let mut taken = self.lock();
        if taken.all.len() >= self.max {
            let all = taken.all.iter().map(|(number, (from, _))| (*number, *from));
            let out = oldest_of_the_most(all);
            if let Some((_, handle)) = out.and_then(|number| taken.all.remove(&number)) {
                handle.abort();
            }
        }
        let number = taken.next;
        taken.next += 1;
        taken.all.insert(number, (from, handle));
        drop(taken);
        let places = Arc::clone(self);
        Place {
            free: Free { places, number },
            registration,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        // Each change is complete before the lock is released.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Runs `work` in this place. Returns `None` if it had to make room for another one.
    pub async fn hold<F: Future>(self, work: F) -> Option<F::Output> {
        let Self { free, registration } = self;
        let output = Abortable::new(work, registration).await.ok();
        drop(free);
        output
    }
}

/// Frees a place when it is dropped.
#[derive(Debug)]
struct Free {
    places: Arc<Places>,
    number: u64,
}

impl Drop for Free {
    fn drop(&mut self) {
        self.places.lock().all.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use futures::future::pending;

    fn network(third: u8) -> Option<Network> {
        Some(network_of(IpAddr::from([10, 0, third, 1])))
    }

    #[test]
    fn one_more_ends_the_oldest_of_the_network_with_most() {
        let places = Places::new(4);
        let mut friend = Box::pin(places.take(network(1)).hold(pending::<()>()));
        let hold = || Box::pin(places.take(network(2)).hold(pending::<()>()));
        let mut strangers = vec![hold(), hold(), hold()];
        for at in 0..10 {
            assert!(strangers[at].as_mut().now_or_never().is_none());
            let next = hold();
            assert_eq!(strangers[at].as_mut().now_or_never(), Some(None), "{at}");
            strangers.push(next);
        }
        assert_eq!(friend.as_mut().now_or_never(), None, "another network");
        assert_eq!(places.taken(), 4);
    }

    #[test]
    fn a_place_is_free_when_its_work_ends_or_is_dropped() {
        let places = Places::new(2);
        let done = places.take(None).hold(async { 7 }).now_or_never();
        assert_eq!((done, places.taken()), (Some(Some(7)), 0));
        let mut held = Box::pin(places.take(None).hold(pending::<()>()));
        assert!(held.as_mut().now_or_never().is_none());
        assert_eq!(places.taken(), 1);
        drop(held);
        assert_eq!(places.taken(), 0);
    }

    #[test]
    fn a_home_is_one_network() {
        let of = |text: &str| network_of(text.parse().unwrap());
        assert_eq!(of("10.1.1.1"), of("10.1.1.250"));
        assert_eq!(of("10.1.1.1"), of("::ffff:10.1.1.9"));
        assert_ne!(of("10.1.1.1"), of("10.1.2.1"));
        assert_eq!(of("fd00:1:2:3400::1"), of("fd00:1:2:34ff::2"));
        assert_ne!(of("fd00:1:2:3400::1"), of("fd00:1:2:3500::1"));
    }
}
