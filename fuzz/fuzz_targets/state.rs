//! States from donors, and values from checkpoints: an Executor takes them over whole, or keeps its
//! own bits.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use murmurate_protocol::{Digest, Done, Order, Round, RunId, SliceId, StateId};
use murmurate_strategies::executor::{Executor, Parts, StateBytes, StateStore, Stopwatch, WriteState, state_in_memory};
use murmurate_strategies::grid::Strategy;
use murmurate_strategies::slices::SliceStore;
use murmurate_strategies::state::{MemoryState, StateError, StateSource};
use murmurate_strategies::toy::ToyTask;
use std::cell::RefCell;
use std::io;
use std::time::Duration;

/// Presets whose states differ: optimizers, codecs with a common state, values still to come.
const PRESETS: [&str; 9] = [
    "diloco", "demo", "powersgd", "one-bit-adam", "eager-diloco", "streaming-diloco", "sparseloco", "scaffold",
    "acco",
];

/// One state, and no slices.
#[derive(Default)]
struct Store(RefCell<Option<(StateId, Bytes)>>);

impl SliceStore for Store {
    fn put(&self, _: SliceId, _: Bytes) {}

    fn get(&self, _: &SliceId) -> Option<Bytes> {
        None
    }

    fn remove(&self, _: &SliceId) {}
}

impl StateStore for Store {
    fn pin(&self, round: Round, write: WriteState<'_>) -> io::Result<StateId> {
        let (state, _, bytes) = state_in_memory(round, write)?;
        *self.0.borrow_mut() = Some((state, bytes));
        Ok(state)
    }

    fn unpin(&self, _: Round) {}

    fn take(&self, _: &StateId) -> Option<Box<dyn StateBytes>> {
        let (_, bytes) = self.0.borrow_mut().take()?;
        Some(Box::new(bytes))
    }
}

struct Still;

impl Stopwatch for Still {
    fn start(&mut self) {}

    fn elapsed(&mut self, _: u64) -> Duration {
        Duration::ZERO
    }
}

/// What was saved, with other bytes and one other value.
struct Damaged<'a> {
    saved: &'a MemoryState,
    bytes: &'a [u8],
}

impl StateSource for Damaged<'_> {
    fn tensor(&self, name: &str, into: &mut [f32]) -> Result<(), StateError> {
        self.saved.tensor(name, into)?;
        if let ([at, rest @ ..], false) = (self.bytes, into.is_empty())
            && let Some(value) = rest.first_chunk()
        {
            let at = usize::from(*at) % into.len();
            into[at] = f32::from_le_bytes(*value);
        }
        Ok(())
    }

    fn bytes(&self, name: &str) -> Result<Vec<u8>, StateError> {
        let mut bytes = self.saved.bytes(name)?;
        change(&mut bytes, self.bytes);
        Ok(bytes)
    }

    fn contains(&self, name: &str) -> bool {
        self.saved.contains(name)
    }
}

/// Changes bytes: the first two say where, the third how many are cut off at the end.
fn change(bytes: &mut Vec<u8>, by: &[u8]) {
    let [a, b, cut, by @ ..] = by else {
        return;
    };
    let at = usize::from(u16::from_le_bytes([*a, *b]));
    let len = bytes.len();
    if len > 0 {
        for (index, byte) in by.iter().enumerate() {
            bytes[(at + index) % len] ^= byte;
        }
    }
    bytes.truncate(len.saturating_sub(usize::from(*cut)));
}

fn executor(preset: &str) -> Executor {
    let task = ToyTask::quadratic(40);
    let trainer = task.build(0, 2, 7);
    let strategy = Strategy::preset(preset).expect("it is a preset");
    let run = RunId::from_bytes([1; 32]);
    let plan = strategy.plan(run, trainer.layout(), 0).expect("it fits the task");
    let parts = Parts::new(&strategy, &plan, trainer.layout().len());
    Executor::new(trainer, parts, Box::new(Still))
}

fuzz_target!(|input: (u8, bool, &[u8])| {
    let (which, donated, bytes) = input;
    let mut executor = executor(PRESETS[usize::from(which) % PRESETS.len()]);
    let before = executor.digests();
    let finite = |executor: &Executor| executor.anchor().iter().all(|v| v.is_finite());
    if !donated {
        let mut saved = MemoryState::default();
        executor.save(&mut saved).expect("memory takes everything");
        match executor.restore(&Damaged { saved: &saved, bytes }) {
            Ok(()) => assert!(finite(&executor)),
            Err(_) => assert_eq!(executor.digests(), before),
        }
        return;
    }
    let host = Store::default();
    executor.perform(&Order::Pin { round: Round(3), note: Vec::new() }, &host);
    let Some((_, state)) = host.0.borrow_mut().take() else {
        return;
    };
    let mut state = state.to_vec();
    change(&mut state, bytes);
    let id = StateId { round: Round(3), root: Digest::of(&state), bytes: state.len() as u64 };
    *host.0.borrow_mut() = Some((id, Bytes::from(state)));
    match executor.perform(&Order::Load { state: id }, &host) {
        Some(Done::Loaded { digests, .. }) => {
            assert_eq!(digests, executor.digests());
            assert!(finite(&executor));
        }
        _ => assert_eq!(executor.digests(), before),
    }
});
