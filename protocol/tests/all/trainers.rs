//! Trainers that fail, or have nothing to evaluate with.

use crate::common::one::{One, honest};
use crate::common::{config, peer, plan};
use murmurate_protocol::{
    Done, EVALUATE_NEVER, Event, ExchangeKind, Input, Order, Output, PeerConfig, Phase, WorkError,
};

/// A peer that trains alone and does what these settings say.
fn alone(settings: PeerConfig, rounds: u64) -> One {
    let mut plan = plan(ExchangeKind::None, 1);
    plan.rounds = rounds;
    One::with(settings, plan)
}

fn failed() -> Done {
    let reason = "the loss is NaN".to_owned();
    Done::Failed(WorkError::Training { reason })
}

/// Does what it is told until nothing is ordered, with these answers in place of the honest ones.
fn work(one: &mut One, answer: impl Fn(&Order) -> Option<Done>) {
    for _ in 0..20 {
        one.work(|order| match order {
            Order::Save { .. } => answer(order).or(Some(Done::Saved)),
            order => answer(order).or_else(|| honest(order)),
        });
    }
}

fn told(one: &One) -> bool {
    let failed = |output: &Output| match output {
        Output::Emit(Event::TrainerFailed { what }) => what.contains("NaN"),
        _ => false,
    };
    one.outputs.iter().any(failed)
}

#[test]
fn a_peer_whose_trainer_fails_leaves_and_says_why_also_where_nothing_is_left_to_save() {
    for save in [None, Some(core::time::Duration::ZERO)] {
        let mut settings = config(peer(0));
        (settings.save_every, settings.evaluate_every) = (save, 1);
        let mut one = alone(settings, 9);
        let evaluation = Done::Evaluated(murmurate_protocol::Evaluation::default());
        work(&mut one, |order| match order {
            Order::Train { round, .. } if round.0 == 2 => Some(failed()),
            Order::Evaluate { .. } => Some(evaluation.clone()),
            _ => None,
        });
        assert_eq!(one.peer.phase(), Phase::Left);
        assert!(told(&one), "{save:?}");
    }
}

#[test]
fn a_peer_that_leaves_does_not_wait_for_a_trainer_that_has_failed() {
    let mut one = alone(config(peer(0)), 9);
    one.feed(Input::Leave);
    assert_eq!(one.peer.phase(), Phase::Leaving);
    work(&mut one, |order| {
        matches!(order, Order::Train { .. }).then(failed)
    });
    assert_eq!(one.peer.phase(), Phase::Left);
}

#[test]
fn a_peer_that_leaves_before_it_has_joined_a_run_saves_nothing_from_which_it_would_found_one() {
    for join in [true, false] {
        let mut settings = config(peer(0));
        (settings.join, settings.start_with) = (join, 2);
        let mut one = One::with(settings, plan(ExchangeKind::Gathered, 1));
        assert_eq!(one.peer.phase(), Phase::Join);
        one.feed(Input::Leave);
        let saves = one.outputs.iter().any(|output| match output {
            Output::Order { order, .. } => matches!(order, Order::Save { .. }),
            _ => false,
        });
        assert_eq!(saves, !join);
        assert_eq!(one.peer.phase() == Phase::Left, join);
    }
}

#[test]
fn a_model_that_is_not_evaluated_is_trained_on_unless_its_trainer_is_gone() {
    let reason = || "evaluate() raised".to_owned();
    for (error, left) in [
        (WorkError::Evaluation { reason: reason() }, false),
        (WorkError::Training { reason: reason() }, true),
    ] {
        let mut settings = config(peer(0));
        settings.evaluate_every = 1;
        let mut one = alone(settings, 3);
        work(&mut one, |order| {
            matches!(order, Order::Evaluate { .. }).then(|| Done::Failed(error.clone()))
        });
        let phase = if left { Phase::Left } else { Phase::Finished };
        assert_eq!(one.peer.phase(), phase, "{error}");
    }
}

#[test]
fn a_peer_that_cannot_evaluate_does_not_try_after_the_last_round() {
    let mut settings = config(peer(0));
    settings.evaluate_every = EVALUATE_NEVER;
    let mut one = alone(settings, 2);
    work(&mut one, |order| {
        assert!(!matches!(order, Order::Evaluate { .. }), "{order:?}");
        None
    });
    assert_eq!(one.peer.phase(), Phase::Finished);
}
