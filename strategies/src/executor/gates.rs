//! The gates of a forward pass that begins while fragments are still exchanged: the mix lane passes the
//! parameters of each fragment on once its round has ended, and the train lane waits for those that the next
//! layer needs.

use crate::trainer::Gate;
use murmurate_protocol::{FragmentId, Participants, Round};
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the mix lane sends to a forward pass.
#[derive(Debug)]
enum Passed {
    /// The parameters of a fragment.
    Fragment(FragmentId, Vec<f32>),
    /// No more comes: the pass is given up.
    Closed,
}

/// The mix lane's side.
#[derive(Debug)]
pub(super) struct GateKeeper {
    to_train: SyncSender<Passed>,
    /// Fragments whose round has ended since the last order with a cut.
    ended: Vec<bool>,
    /// The fragments that the open forward pass has; `None` where there is none.
    passed: Option<Vec<bool>>,
}

/// The train lane's side.
#[derive(Debug)]
pub(super) struct Forward {
    gates: Arc<Gates>,
    /// The round whose forward pass the trainer keeps, and who trained then.
    pub(super) begun: Option<(Round, Participants)>,
}

/// Both sides. The channel has room for one forward pass, so that no send waits.
pub(super) fn pair(fragments: &[Range<usize>]) -> (Forward, GateKeeper) {
    let count = fragments.len();
    let (to_train, from_mix) = sync_channel(count + 1);
    let gates = Gates {
        fragments: fragments.to_vec(),
        state: Mutex::new(State {
            from_mix,
            values: vec![None; count],
            open: false,
        }),
    };
    let forward = Forward {
        gates: Arc::new(gates),
        begun: None,
    };
    let keeper = GateKeeper {
        to_train,
        ended: vec![false; count],
        passed: None,
    };
    (forward, keeper)
}

impl GateKeeper {
    /// An order with a cut begins: no fragment of its round has ended.
    pub(super) fn round_begins(&mut self) {
        self.ended.fill(false);
    }

    /// The rounds of all fragments have ended.
    pub(super) fn all_ended(&self) -> bool {
        self.ended.iter().all(|ended| *ended)
    }

    /// A forward pass begins. Returns the fragments that it can have at once.
    pub(super) fn open(&mut self) -> Vec<FragmentId> {
        self.passed = Some(vec![false; self.ended.len()]);
        let ended = self.ended.iter().enumerate().filter(|(_, ended)| **ended);
        ended.map(|(at, _)| FragmentId(at as u16)).collect()
    }

    /// A fragment's round has ended. Returns whether a forward pass waits for it.
    pub(super) fn end(&mut self, fragment: FragmentId) -> bool {
        let at = usize::from(fragment.0);
        self.ended[at] = true;
        self.passed.as_ref().is_some_and(|passed| !passed[at])
    }

    /// Passes a fragment's parameters on. With the last one the pass has all that it waits for.
    pub(super) fn pass(&mut self, fragment: FragmentId, values: Vec<f32>) {
        if let Some(passed) = &mut self.passed {
            passed[usize::from(fragment.0)] = true;
            if passed.iter().all(|passed| *passed) {
                self.passed = None;
            }
            self.send(Passed::Fragment(fragment, values));
        }
    }

    /// A forward pass that still waits has to end without the fragments that it lacks.
    pub(super) fn close(&mut self) {
        if self.passed.take().is_some() {
            self.send(Passed::Closed);
        }
    }

    fn send(&self, passed: Passed) {
        // A train lane that has ended needs nothing any more.
        let _ = self.to_train.send(passed);
    }
}

impl Forward {
    /// The gates of the forward pass that begins now.
    pub(super) fn open(&mut self) -> Arc<dyn Gate> {
        self.begun = None;
        self.gates.state().open = true;
        Arc::<Gates>::clone(&self.gates)
    }

    /// Waits until the mix lane has passed everything on or has closed the gates. Returns whether
    /// everything has come, and the fragments that have, with their values.
    pub(super) fn drain(&self) -> (bool, Vec<(FragmentId, Vec<f32>)>) {
        let mut state = self.gates.state();
        while state.open && state.values.iter().any(Option::is_none) {
            state.receive();
        }
        state.open = false;
        let came = state.values.iter_mut().enumerate();
        let came = came.filter_map(|(at, values)| Some((FragmentId(at as u16), values.take()?)));
        let came: Vec<_> = came.collect();
        (came.len() == state.values.len(), came)
    }

    /// Where a fragment begins in the flat parameters.
    pub(super) fn start(&self, fragment: FragmentId) -> usize {
        self.gates.fragments[usize::from(fragment.0)].start
    }
}

/// What has come of the parameters of a forward pass. Only the train lane holds the lock.
#[derive(Debug)]
struct Gates {
    fragments: Vec<Range<usize>>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    from_mix: Receiver<Passed>,
    values: Vec<Option<Vec<f32>>>,
    /// Set while more may come.
    open: bool,
}

impl State {
    fn receive(&mut self) {
        match self.from_mix.recv() {
            Ok(Passed::Fragment(fragment, values)) => {
                self.values[usize::from(fragment.0)] = Some(values);
            }
            Ok(Passed::Closed) | Err(_) => self.open = false,
        }
    }
}

impl Gates {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gate for Gates {
    fn read(&self, range: Range<usize>, into: &mut [f32]) -> bool {
        let first = self.fragments.partition_point(|f| f.end <= range.start);
        let last = self.fragments.partition_point(|f| f.start < range.end);
        let mut state = self.state();
        for at in first..last {
            let fragment = &self.fragments[at];
            let (from, to) = (range.start.max(fragment.start), range.end.min(fragment.end));
            while state.open && state.values[at].is_none() {
                state.receive();
            }
            let Some(values) = &state.values[at] else {
                return false;
            };
            into[from - range.start..to - range.start]
                .copy_from_slice(&values[from - fragment.start..to - fragment.start]);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Range<usize>; 3] = [0..3, 3..4, 4..10];

    fn values(range: Range<usize>) -> Vec<f32> {
        range.map(|at| at as f32).collect()
    }

    fn pass(keeper: &mut GateKeeper, at: usize) {
        let fragment = FragmentId(at as u16);
        if keeper.end(fragment) {
            keeper.pass(fragment, values(ALL[at].clone()));
        }
    }

    #[test]
    fn a_layer_waits_for_its_own_fragments_only() {
        let (mut forward, mut keeper) = pair(&ALL);
        pass(&mut keeper, 1);
        let gate = forward.open();
        for fragment in keeper.open() {
            keeper.pass(fragment, values(3..4));
        }
        pass(&mut keeper, 0);
        let mut first = [0.0; 4];
        assert!(gate.read(0..4, &mut first));
        assert_eq!(first, [0.0, 1.0, 2.0, 3.0]);
        let rest = std::thread::spawn(move || {
            let mut rest = [0.0; 3];
            (gate.read(3..6, &mut rest), rest)
        });
        pass(&mut keeper, 2);
        assert_eq!(rest.join().unwrap(), (true, [3.0, 4.0, 5.0]));
        let (complete, came) = forward.drain();
        assert!(complete && keeper.all_ended());
        assert_eq!(came.len(), 3);
        // What ends again after that does not belong to this pass.
        pass(&mut keeper, 0);
        keeper.close();
        keeper.round_begins();
        assert!(!keeper.all_ended());
        let gate = forward.open();
        assert_eq!(keeper.open(), []);
        pass(&mut keeper, 2);
        keeper.close();
        let mut last = [0.0; 2];
        assert!(gate.read(4..6, &mut last) && !gate.read(0..2, &mut last));
        let (complete, came) = forward.drain();
        assert!(!complete);
        assert_eq!(came, [(FragmentId(2), values(4..10))]);
    }
}
