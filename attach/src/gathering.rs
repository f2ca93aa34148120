//! Which ranks of an island are attached. A single trainer is an island of one.

use crate::limits::RANK_WAIT;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The ranks of an island that are attached.
#[derive(Debug, Default)]
pub(crate) struct Gathering(Mutex<Gathered>);

#[derive(Debug, Default)]
struct Gathered {
    here: u32,
    /// When a rank attached last.
    last: Option<Instant>,
}

/// A rank that is attached, until this is dropped.
#[derive(Debug)]
pub(crate) struct Here(Arc<Gathering>);

impl Gathering {
    /// A rank has attached.
    pub(crate) fn arrive(this: &Arc<Self>) -> Here {
        this.with(|gathered| {
            gathered.here += 1;
            gathered.last = Some(Instant::now());
        });
        Here(Arc::clone(this))
    }

    /// The island waits for a rank that is not there: for any while there is none, and for all
    /// that may still come a moment after one came.
    pub(crate) fn waits(&self, may_come: bool) -> bool {
        self.with(|gathered| {
            let lately = gathered.last.is_some_and(|last| last.elapsed() < RANK_WAIT);
            gathered.here == 0 || (may_come && lately)
        })
    }

    fn with<T>(&self, f: impl FnOnce(&mut Gathered) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        self.0.with(|gathered| gathered.here -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_waited_for_and_the_others_for_a_moment() {
        let gathering = Arc::new(Gathering::default());
        assert!(gathering.waits(true) && gathering.waits(false));
        let here = Gathering::arrive(&gathering);
        assert!(gathering.waits(true) && !gathering.waits(false));
        gathering
            .with(|gathered| gathered.last = gathered.last.and_then(|t| t.checked_sub(RANK_WAIT)));
        assert!(!gathering.waits(true));
        drop(here);
        assert!(gathering.waits(false));
    }
}
