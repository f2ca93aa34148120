//! The thread that delivers datagrams when they are due.

use super::fabric::{Arrival, Load};
use super::outer::Outer;
use super::shared::{Shared, State};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Shortest time between two deliveries. Datagrams that become due in between are sent together in
/// few calls.
const QUANTUM: Duration = Duration::from_micros(200);

/// Delivers until the relay is dropped.
///
/// It has its own thread because tokio's timers have a granularity of a millisecond, the time of 86
/// full datagrams at 1 Gbit/s. A datagram is delivered at most [`QUANTUM`] and the system's timer
/// slack (50 us on Linux) late, plus the delay of the scheduler on a busy machine. The links' own
/// times are always exact.
pub(super) fn run(shared: &Shared) {
    let mut arrivals = Vec::new();
    let mut scratch = Vec::new();
    loop {
        let Some(state) = wait(shared) else {
            return;
        };
        let began = shared.now();
        hand_over(state, began, &mut arrivals, &mut scratch, shared);
        let took = shared.now().saturating_sub(began);
        std::thread::sleep(QUANTUM.saturating_sub(took));
    }
}

/// Waits until a datagram is due; `None` if the relay was dropped.
fn wait(shared: &Shared) -> Option<std::sync::MutexGuard<'_, State>> {
    let mut state = shared.lock();
    loop {
        if state.stop {
            return None;
        }
        let now = shared.now();
        let left = state.fabric.next_at().map(|at| at.saturating_sub(now));
        state = match left {
            Some(Duration::ZERO) => {
                // While this thread is awake, readers need not wake it.
                state.wake = Duration::ZERO;
                return Some(state);
            }
            Some(left) => {
                state.wake = now + left;
                let woken = shared.due.wait_timeout(state, left);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
            None => {
                state.wake = Duration::MAX;
                let woken = shared.due.wait(state);
                woken.unwrap_or_else(PoisonError::into_inner)
            }
        };
    }
}

fn hand_over(
    mut state: std::sync::MutexGuard<'_, State>,
    now: Duration,
    arrivals: &mut Vec<Arrival>,
    scratch: &mut Vec<u8>,
    shared: &Shared,
) {
    state.fabric.advance(now, arrivals);
    by_way(arrivals);
    let mut ways: Vec<(Arc<Outer>, usize, usize)> = Vec::new();
    let mut at = 0;
    for way in arrivals.chunk_by(|a, b| (a.from, a.to) == (b.from, b.to)) {
        if let Load::Chunk(..) = way[0].load {
            for arrival in way {
                if let Load::Chunk(pipe, bytes) = &arrival.load {
                    state.pipes.hand_over(*pipe, bytes.clone());
                }
            }
        } else if let Some(outer) = state.ports.get(&way[0].from) {
            ways.push((Arc::clone(outer), at, at + way.len()));
        } else {
            // The router closed the port while the datagrams were in transit.
            way.iter()
                .for_each(|arrival| state.unsent.add(len(arrival)));
        }
        at += way.len();
    }
    drop(state);
    for (outer, from, to) in ways {
        let mut rest = &arrivals[from..to];
        while !rest.is_empty() {
            let (run, after) = rest.split_at(outer.run_length(rest));
            if let Err(error) = outer.send(run, scratch) {
                tracing::debug!(%error, "datagrams could not be handed over");
                let mut state = shared.lock();
                run.iter()
                    .for_each(|arrival| state.unsent.add(len(arrival)));
            }
            rest = after;
        }
    }
    arrivals.clear();
}

fn len(arrival: &Arrival) -> usize {
    match &arrival.load {
        Load::Datagram(bytes, _) | Load::Chunk(_, bytes) => bytes.len(),
    }
}

/// Groups datagrams with the same source and destination, in the order in which they are due.
fn by_way(arrivals: &mut [Arrival]) {
    arrivals.sort_by_key(|arrival| (arrival.from, arrival.to));
}
