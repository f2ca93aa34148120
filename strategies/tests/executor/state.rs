//! States on their way: a newcomer that loads one and a daemon that restores one go on bit for bit;
//! a damaged state is refused and changes nothing.

use crate::common::store::Store;
use crate::common::{orders, peer};
use bytes::Bytes;
use murmurate_protocol::{
    Digest, Done, Ending, FragmentId, Order, Part, Round, Settlement, SliceId, StateId, StepBudget,
    StoreId, TrainingRules, WorkError,
};
use murmurate_strategies::executor::Executor;
use murmurate_strategies::grid::Strategy;
use murmurate_strategies::slices::SliceStore;
use murmurate_strategies::state::{MemoryState, StateError, StateSink, StateSource};
use murmurate_strategies::toy::ToyTask;

const DIM: usize = 57;
const FRAGMENT: FragmentId = FragmentId(0);
const STRATEGIES: [&str; 5] = [
    "preset = \"diloco\"\n[compression]\ncodec = \"top-k\"\ndensity = 0.1",
    "preset = \"diloco\"\n[compression]\ncodec = \"int8\"\nerror_feedback = true",
    "preset = \"bsp\"",
    "preset = \"fedprox\"",
    "preset = \"diloco\"\n[outer]\nstate = \"bf16\"",
];

fn executor(text: &str, index: usize) -> Executor {
    let strategy: Strategy = text.parse().unwrap();
    orders::executor(&strategy, ToyTask::quadratic(DIM).build(index, 2, 3))
}

/// The orders of one round of a peer that is its own group; the anchor's digest at its end.
fn round(executor: &mut Executor, store: &Store, round: u64) -> Digest {
    let round = Round(round);

    let own = orders::slice(round, FRAGMENT, Part::Contribution);
    let train = orders::train(round, StepBudget::Steps(3));
    let encode = orders::encode(StoreId::Local, own);
    orders::perform(executor, store, &[train, encode]);
    orders::perform(executor, store, &orders::alone(round, FRAGMENT, own));
    let outcome = Settlement::Delivered;
    let settle = Order::Settle {
        slice: own,
        outcome,
    };
    orders::perform(executor, store, &[settle]);
    executor.digests()[0]
}

/// Runs some rounds from the first.
fn rounds(executor: &mut Executor, store: &Store, count: u64) {
    for at in 0..count {
        round(executor, store, at);
    }
}

fn pinned(executor: &mut Executor, store: &Store, round: u64) -> StateId {
    match executor.perform(
        &Order::Pin {
            round: Round(round),
            note: Vec::new(),
        },
        store,
    ) {
        Some(Done::Pinned(state)) => state,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_restored_executor_goes_on_to_the_bit() {
    for text in STRATEGIES {
        let (mut first, store) = (executor(text, 0), Store::default());
        rounds(&mut first, &store, 4);
        let mut again = orders::restarted(&mut first, executor(text, 0));
        for r in 4..9 {
            let (one, other) = (round(&mut first, &store, r), round(&mut again, &store, r));
            assert_eq!(one, other, "{text} round {r}");
        }
    }
}

/// What error feedback keeps.
fn residual(executor: &mut Executor) -> Vec<f32> {
    let mut residual = vec![0.0; DIM];
    let state = orders::saved(executor);
    state.tensor("residual", &mut residual).unwrap();
    residual
}

#[test]
fn a_round_that_is_void_before_it_encodes_leaves_the_residual_as_it_is() {
    for text in &STRATEGIES[..2] {
        let (mut executor, store) = (executor(text, 0), Store::default());
        rounds(&mut executor, &store, 1);
        let before = residual(&mut executor);
        assert!(before.iter().any(|e| *e != 0.0), "{text}");
        for order in [
            orders::train(Round(1), StepBudget::Steps(3)),
            // No `Encode`: the group has not formed.
            orders::void(Round(1), FRAGMENT),
        ] {
            executor.perform(&order, &store);
        }
        assert_eq!(residual(&mut executor), before, "{text}");
    }
}

#[test]
fn a_loaded_state_brings_anchor_optimizer_and_clock() {
    for text in STRATEGIES {
        let (mut donor, store) = (executor(text, 0), Store::default());
        rounds(&mut donor, &store, 4);
        let state = pinned(&mut donor, &store, 4);
        let mut newcomer = executor(text, 1);
        let load = Order::Load { state };
        let loaded = newcomer.perform(&load, &store);
        assert_eq!(
            loaded,
            Some(Done::Loaded {
                digests: donor.digests(),
                note: Vec::new(),
            })
        );
        // The same reduction moves both to the same bits: the optimizer's state came along.
        let digest = round(&mut donor, &store, 4);
        let reduced = orders::slice(Round(4), FRAGMENT, Part::Aggregate);
        let apply = orders::apply(Round(4), FRAGMENT, vec![reduced]);
        assert_eq!(
            newcomer.perform(&apply, &store),
            Some(Done::Applied {
                digest,
                note: Vec::new()
            })
        );
        assert_eq!(
            pinned(&mut donor, &store, 5),
            pinned(&mut newcomer, &store, 5),
            "{text}"
        );
    }
}

#[test]
fn a_delta_that_is_kept_lies_on_top_of_the_new_anchor() {
    let text = "preset = \"local-sgd\"";
    let (mut other, store) = (executor(text, 1), Store::default());
    round(&mut other, &store, 0);
    let mut late = executor(text, 0);
    let train = |executor: &mut Executor, round, steps| {
        let budget = StepBudget::Steps(steps);
        executor.perform(&orders::train(round, budget), &store);
    };
    train(&mut late, Round(0), 3);
    let encode = |name: u64| {
        let slice = SliceId {
            origin: peer(7),
            ..orders::slice(Round(name), FRAGMENT, Part::Contribution)
        };
        (orders::encode(StoreId::Local, slice), slice)
    };
    let values = |slice: &SliceId| crate::common::decode::decode(&store.get(slice).unwrap(), DIM);
    let (order, before) = encode(100);
    late.perform(&order, &store);
    let reduced = store
        .slices
        .borrow()
        .keys()
        .find(|s| s.part == Part::Aggregate)
        .copied();
    let apply = Order::Apply {
        round: Round(0),
        fragment: FRAGMENT,
        ending: Ending::Apply(vec![reduced.unwrap()]),
        keep_local: true,
        rules: TrainingRules::default(),
    };
    let digest = other.digests()[0];
    let note = Vec::new();
    let applied = Some(Done::Applied { digest, note });
    assert_eq!(late.perform(&apply, &store), applied);
    // No inner step: what is cut now is what was kept.
    train(&mut late, Round(1), 0);
    let (order, after) = encode(101);
    late.perform(&order, &store);
    assert!(values(&before).iter().any(|v| v.abs() > 0.01));
    for (b, a) in values(&before).iter().zip(values(&after)) {
        assert!((b - a).abs() < 1e-6, "{b} is not {a}");
    }
}

#[test]
fn a_damaged_state_is_refused_and_changes_nothing() {
    for text in STRATEGIES {
        let (mut donor, store) = (executor(text, 0), Store::default());
        rounds(&mut donor, &store, 2);
        let state = pinned(&mut donor, &store, 2);
        let good = store.taken(&state).unwrap();
        let mut damaged: Vec<Vec<u8>> = [0, 1, 55, 56, good.len() - 4, good.len() - 1]
            .map(|len| good[..len].to_vec())
            .into();
        damaged.push([&good[..], &[0]].concat());
        damaged.push([&good[..], &good[..]].concat());
        // Magic, plan and round.
        for at in [0, 7, 8, 39, 40, 47] {
            damaged.push(good.to_vec());
            damaged.last_mut().unwrap()[at] ^= 0x40;
        }
        for bad in [f32::NAN, f32::INFINITY] {
            for at in [56, good.len() - 4] {
                damaged.push(good.to_vec());
                damaged.last_mut().unwrap()[at..at + 4].copy_from_slice(&bad.to_le_bytes());
            }
        }
        let mut newcomer = executor(text, 1);
        round(&mut newcomer, &store, 0);
        let before = orders::saved(&mut newcomer);
        for bytes in damaged {
            store.states.borrow_mut().insert(state, Bytes::from(bytes));
            let load = Order::Load { state };
            let done = newcomer.perform(&load, &store);
            assert!(
                matches!(done, Some(Done::Failed(WorkError::BadState { .. }))),
                "{done:?}"
            );
            assert!(orders::saved(&mut newcomer) == before, "{text}");
        }
    }
}

/// A checkpoint with one thing in it missing, of another length, or not finite.
struct Damaged<'a> {
    whole: &'a MemoryState,
    name: &'a str,
    how: usize,
}

impl StateSource for Damaged<'_> {
    fn tensor(&self, name: &str, into: &mut [f32]) -> Result<(), StateError> {
        let name = name.to_owned();
        match self.how {
            _ if name != self.name => self.whole.tensor(&name, into),
            0 => Err(StateError::Missing { name }),
            1 => Err(StateError::Size {
                name,
                found: into.len() + 1,
                needed: into.len(),
            }),
            _ => {
                self.whole.tensor(&name, into)?;
                into[0] = f32::NAN;
                Ok(())
            }
        }
    }

    fn bytes(&self, name: &str) -> Result<Vec<u8>, StateError> {
        match self.how {
            _ if name != self.name => self.whole.bytes(name),
            0 => Err(StateError::Missing {
                name: name.to_owned(),
            }),
            1 => Ok(Vec::new()),
            _ => Ok(vec![9; 3]),
        }
    }

    fn contains(&self, name: &str) -> bool {
        self.whole.contains(name)
    }
}

#[test]
fn a_damaged_checkpoint_is_refused_and_changes_nothing() {
    /// Notes the names of what is saved.
    #[derive(Default)]
    struct Names(Vec<String>);
    impl StateSink for Names {
        fn tensor(&mut self, name: &str, _: &[f32]) -> Result<(), StateError> {
            self.bytes(name, &[])
        }
        fn bytes(&mut self, name: &str, _: &[u8]) -> Result<(), StateError> {
            self.0.push(name.to_owned());
            Ok(())
        }
    }
    for text in STRATEGIES {
        let (mut donor, store) = (executor(text, 0), Store::default());
        rounds(&mut donor, &store, 3);
        let whole = orders::saved(&mut donor);
        let mut names = Names::default();
        donor.save(&mut names).unwrap();
        let mut restored = executor(text, 0);
        round(&mut restored, &store, 0);
        let before = orders::saved(&mut restored);
        for name in &names.0 {
            for how in 0..3 {
                let damaged = Damaged {
                    whole: &whole,
                    name,
                    how,
                };
                let result = restored.restore(&damaged);
                let Err(error) = result else {
                    panic!("{text}: `{name}` damaged ({how}) was taken");
                };
                assert!(error.to_string().contains(name.as_str()), "{error}");
                assert!(
                    orders::saved(&mut restored) == before,
                    "{text}: {name} ({how})"
                );
            }
        }
        restored.restore(&whole).unwrap();
        assert!(orders::saved(&mut restored) == whole);
    }
}
