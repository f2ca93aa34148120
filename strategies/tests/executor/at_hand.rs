//! A trainer at hand and one whose parameters are copied: the same orders give the same bits.

use crate::common::store::{Still, Store};
use crate::common::{Draw, forward_trainer, orders};
use murmurate_protocol::{
    Digest, Done, Ending, FragmentId, Order, Part, Round, Settlement, SliceId, StepBudget, StoreId,
    TrainingRules,
};
use murmurate_strategies::executor::{Executor, Parts};
use murmurate_strategies::grid::Strategy;
use murmurate_strategies::slices::SliceStore;
use murmurate_strategies::state::MemoryState;
use murmurate_strategies::toy::ToyTask;
use murmurate_strategies::{Layout, StepControl, TrainError, TrainReport, Trainer, Visit};

const DIM: usize = 57;
const CUT: usize = 20;

const STRATEGIES: [&str; 4] = [
    "preset = \"local-sgd\"",
    "preset = \"diloco\"\n[compression]\ncodec = \"top-k\"\ndensity = 0.1",
    "preset = \"diloco\"\n[compression]\ncodec = \"int8\"\nerror_feedback = true",
    "preset = \"local-sgd\"\n[architecture]\nexchange = \"gathered\"",
];

/// A trainer that is not at hand.
struct Far(Box<dyn Trainer>);

impl Trainer for Far {
    fn layout(&self) -> &Layout {
        self.0.layout()
    }

    fn steps(&mut self, control: &mut dyn StepControl) -> Result<TrainReport, TrainError> {
        self.0.steps(control)
    }

    forward_trainer!(0);

    fn gradients(&mut self, on_ready: Visit<'_>) -> Result<TrainReport, TrainError> {
        self.0.gradients(on_ready)
    }
}

/// An Executor of two fragments.
fn executor(text: &str, far: bool) -> Executor {
    let strategy: Strategy = text.parse().unwrap();
    let trainer = ToyTask::quadratic(DIM).build(0, 2, 3);
    let plan = strategy
        .plan(
            murmurate_protocol::RunId::from_bytes([1; 32]),
            trainer.layout(),
            0,
        )
        .unwrap();
    let mut parts = Parts::new(&strategy, &plan, DIM);
    parts.fragments = vec![0..CUT, CUT..DIM];
    let trainer: Box<dyn Trainer> = match far {
        true => Box::new(Far(trainer)),
        false => trainer,
    };
    Executor::new(trainer, parts, Box::new(Still))
}

/// One side of the comparison, with everything that it has shown.
struct Side {
    executor: Executor,
    store: Store,
    shown: Vec<(String, Digest)>,
}

impl Side {
    fn new(text: &str, far: bool) -> Self {
        Self {
            executor: executor(text, far),
            store: Store::default(),
            shown: Vec::new(),
        }
    }

    fn perform(&mut self, order: &Order) {
        let done = self.executor.perform(order, &self.store);
        let failed = matches!(done, Some(Done::Failed(_)));
        assert!(!failed, "{order:?}: {done:?}");
        if let Order::Encode { slice, .. } = order {
            let bytes = self.store.get(slice).unwrap();
            self.shown.push((format!("{slice:?}"), Digest::of(&bytes)));
        }
        let text = format!("{done:?}");
        self.shown.push((text, Digest::of(&[])));
    }

    fn saved(&mut self) -> MemoryState {
        orders::saved(&mut self.executor)
    }

    fn restart(&mut self, text: &str, far: bool) {
        self.executor = orders::restarted(&mut self.executor, executor(text, far));
    }
}

fn slice(round: u64, fragment: u16, part: Part) -> SliceId {
    orders::slice(Round(round), FragmentId(fragment), part)
}

/// The orders that reduce a fragment's only contribution and apply it.
fn reduced((round, fragment): (Round, FragmentId), own: SliceId, keep_local: bool) -> [Order; 3] {
    let reduced = slice(round.0, fragment.0, Part::Aggregate);
    [
        orders::reduce(fragment, vec![(own, 8.0)]),
        orders::encode(StoreId::Shard(0), reduced),
        Order::Apply {
            round,
            fragment,
            ending: Ending::Apply(vec![reduced]),
            keep_local,
            rules: TrainingRules::default(),
        },
    ]
}

/// A round of a peer alone, with chances drawn: the orders, as they may come.
fn orders(round: u64, gathers: bool, draw: &mut Draw) -> Vec<Order> {
    let mut orders = vec![orders::train(Round(round), StepBudget::Steps(3))];
    for fragment in 0..2 {
        let own = slice(round, fragment, Part::Contribution);
        orders.push(orders::encode(StoreId::Local, own));
    }
    // A straggler applies several rounds on top of what it trained.
    let applied = 1 + u64::from(draw.below(4) == 0);
    let keep_local = applied > 1 || draw.below(3) == 0;
    for fragment in 0..2 {
        if draw.below(4) == 0 {
            orders.push(orders::void(Round(round), FragmentId(fragment)));
            continue;
        }
        let own = slice(round, fragment, Part::Contribution);
        for later in 0..applied {
            let end = Round(round + later);
            let fragment = FragmentId(fragment);
            if gathers {
                orders.push(Order::Apply {
                    round: end,
                    fragment,
                    ending: Ending::Gather(vec![(own, 8.0)]),
                    keep_local,
                    rules: TrainingRules::default(),
                });
                continue;
            }
            orders.extend(reduced((end, fragment), own, keep_local));
        }
        if keep_local {
            let outcome = Settlement::Lost;
            orders.push(Order::Settle {
                slice: own,
                outcome,
            });
        }
    }
    if draw.below(3) == 0 {
        let round = Round(round);
        orders.push(Order::Evaluate { round });
    }
    orders
}

#[test]
fn the_bits_are_those_of_a_trainer_whose_parameters_are_copied() {
    for text in STRATEGIES {
        let gathers = text.contains("gathered");
        for seed in 1..40 {
            let mut sides = [Side::new(text, false), Side::new(text, true)];
            assert!(!sides[0].executor.copies_what_is_trained(), "{text}");
            assert!(sides[1].executor.copies_what_is_trained(), "{text}");
            let mut draw = Draw(seed);
            for round in 0..12 {
                for order in orders(3 * round, gathers, &mut draw) {
                    sides.iter_mut().for_each(|side| side.perform(&order));
                    // A save at any time changes nothing.
                    if draw.below(6) == 0 {
                        let [one, other] = &mut sides;
                        assert_eq!(one.saved(), other.saved(), "{text}, seed {seed}");
                    }
                }
                if draw.below(8) == 0 {
                    sides[0].restart(text, false);
                    sides[1].restart(text, true);
                }
                assert_eq!(sides[0].shown, sides[1].shown, "{text}, seed {seed}");
            }
        }
    }
}
