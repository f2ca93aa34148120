//! Orders to an Executor that is driven by hand: of a peer that is its own group, for fragments of one shard.

use super::peer;
use super::store::{Still, Store};
use murmurate_protocol::{
    Attempt, Combination, Done, Ending, FragmentId, Order, Part, Participants, Piece, Round, RunId,
    SliceId, Source, StepBudget, StoreId, TrainingRules,
};
use murmurate_strategies::Trainer;
use murmurate_strategies::executor::{Executor, Parts};
use murmurate_strategies::grid::Strategy;
use murmurate_strategies::state::MemoryState;

/// An Executor for a plan without an end.
pub fn executor(strategy: &Strategy, trainer: Box<dyn Trainer>) -> Executor {
    let layout = trainer.layout();
    let plan = strategy
        .plan(RunId::from_bytes([1; 32]), layout, 0)
        .unwrap();
    let parts = Parts::new(strategy, &plan, layout.len());
    Executor::new(trainer, parts, Box::new(Still))
}

pub fn slice(round: Round, fragment: FragmentId, part: Part) -> SliceId {
    SliceId {
        round,
        fragment,
        shard: 0,
        part,
        origin: peer(0),
        attempt: Attempt::FIRST,
    }
}

pub fn train(round: Round, budget: StepBudget) -> Order {
    Order::Train {
        round,
        budget,
        cut: true,
        peers: Participants::alone(peer(0)),
        blocks: None,
        rules: TrainingRules::default(),
    }
}

/// Training in a group of this many peers; without `cut` it goes on.
pub fn training(round: u64, steps: u32, cut: bool, peers: usize) -> Order {
    Order::Train {
        round: Round(round),
        budget: StepBudget::Steps(steps),
        cut,
        peers: Participants::new(peer(0), (1..peers).map(peer)),
        blocks: None,
        rules: TrainingRules::default(),
    }
}

pub fn encode(store: StoreId, slice: SliceId) -> Order {
    Order::Encode {
        slice,
        of: 1,
        from: Source::Store(store),
    }
}

pub fn reduce(fragment: FragmentId, inputs: Vec<(SliceId, f64)>) -> Order {
    Order::Combine {
        piece: Piece::whole(fragment),
        how: Combination::Reduce(inputs),
    }
}

pub fn apply(round: Round, fragment: FragmentId, aggregates: Vec<SliceId>) -> Order {
    Order::Apply {
        round,
        fragment,
        ending: Ending::Apply(aggregates),
        keep_local: false,
        rules: TrainingRules::default(),
    }
}

/// Makes the parameters of a peer that exchanges with none the mix of a round, and the anchor.
pub fn keeps_its_own(round: Round, fragment: FragmentId) -> [Order; 2] {
    let how = Combination::Mix {
        round,
        keep: 1.0,
        inputs: Vec::new(),
    };
    let piece = Piece::whole(fragment);
    [
        Order::Combine { piece, how },
        apply(round, fragment, Vec::new()),
    ]
}

/// What a peer that is its own group does once a fragment's contribution is encoded.
pub fn alone(round: Round, fragment: FragmentId, own: SliceId) -> [Order; 3] {
    let reduced = slice(round, fragment, Part::Aggregate);
    [
        reduce(fragment, vec![(own, 8.0)]),
        encode(StoreId::Shard(0), reduced),
        apply(round, fragment, vec![reduced]),
    ]
}

pub fn void(round: Round, fragment: FragmentId) -> Order {
    Order::Apply {
        round,
        fragment,
        ending: Ending::Void,
        keep_local: false,
        rules: TrainingRules::default(),
    }
}

/// Performs orders none of which may fail.
pub fn perform(executor: &mut Executor, store: &Store, orders: &[Order]) {
    for order in orders {
        if let Some(Done::Failed(error)) = executor.perform(order, store) {
            panic!("{order:?}: {error}");
        }
    }
}

/// What a checkpoint holds.
pub fn saved(executor: &mut Executor) -> MemoryState {
    let mut state = MemoryState::default();
    executor.save(&mut state).unwrap();
    state
}

/// Goes on in `fresh` with what a checkpoint of the first one holds, and checks that it holds the same.
pub fn restarted(first: &mut Executor, mut fresh: Executor) -> Executor {
    let state = saved(first);
    fresh.restore(&state).unwrap();
    assert!(saved(&mut fresh) == state, "a checkpoint brings all back");
    fresh
}
