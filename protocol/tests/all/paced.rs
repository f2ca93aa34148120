//! Rounds whose inner steps follow from the loss that the members agree on: all take the same number,
//! whatever one of them claims.

use crate::common::club::Club;
use crate::common::one::One;
use crate::common::{peer, plan};
use core::time::Duration;
use murmurate_protocol::wire::{ExchangeMessage, FormingMessage, Message, Said};
use murmurate_protocol::{
    BytesBound, Digest, Event, ExchangeKind, Grouping, Input, Ladder, Loss, Order, Pace, PeerId,
    Plan, PlanError, PushOutcome, Round, Rung, ServerPlan, StepBudget,
};
use std::collections::{BTreeMap, BTreeSet};

const START: u32 = 16;
const EVERY: u64 = 2;

fn paced(exchange: ExchangeKind) -> Plan {
    let mut plan = plan(exchange, 1);
    plan.budget = StepBudget::Steps(START);
    plan.synchronization.pace = Pace::Loss {
        every: EVERY,
        factor: 500,
    };
    plan
}

/// The loss of an honest member: 4 / (1 + round)^2, and a little that differs from member to member.
fn honest(who: PeerId, round: Round) -> f64 {
    let fallen = 4.0 / ((1 + round.0) as f64).powi(2);
    fallen * (1.0 + 0.001 * f64::from(who.as_bytes()[0]))
}

fn club(exchange: ExchangeKind, count: u8) -> Club {
    let mut club = Club::of(count, &paced(exchange), |_| Digest::of(b"anchor"));
    club.loss = Box::new(honest);
    club
}

/// What the members trained in each round; that of all must be the same.
fn steps(club: &Club) -> BTreeMap<u64, u32> {
    let mut steps = BTreeMap::new();
    for (who, round, budget) in &club.budgets {
        let StepBudget::Steps(count) = *budget else {
            panic!("a count stays a count");
        };
        let first = *steps.entry(round.0).or_insert(count);
        assert_eq!(first, count, "{who:?} in round {round}");
    }
    steps
}

/// The equations of the paper with these losses, in f64: what rounds take that begin with these inner
/// steps.
fn by_the_paper(losses: impl Fn(u64) -> f64, rounds: u64) -> Vec<u32> {
    let (start, mut now) = (f64::from(START), f64::from(START));
    let mut all = Vec::new();
    for round in 0..rounds {
        if round > 0 && round % EVERY == 0 {
            let wanted = (start * (losses(round - 1) / losses(0)).sqrt()).ceil();
            now = match wanted < now {
                true => wanted.max(1.0),
                false => (0.5 * now).floor().max(1.0),
            };
        }
        all.push(now as u32);
    }
    all
}

#[test]
fn all_members_train_what_the_paper_says_of_their_median_loss() {
    let server = ExchangeKind::Server(ServerPlan { owners: 2 });
    for exchange in [ExchangeKind::AllReduce, ExchangeKind::Gathered, server] {
        let mut club = club(exchange, 5);
        club.run_to(12);
        let found = steps(&club);
        let found: Vec<u32> = (0..12).map(|round| found[&round]).collect();
        // Weights are 9 to 13 samples, so the median is the third one.
        let expected = by_the_paper(|round| honest(peer(3), Round(round)), 12);
        assert_eq!(found, expected, "{exchange:?}");
        assert_eq!(expected[..6], [16, 16, 8, 8, 4, 4]);
        let agreed: BTreeSet<u64> = club
            .members
            .values()
            .map(|m| m.peer.losses().unwrap().last().unwrap().value().to_bits())
            .collect();
        assert_eq!(agreed.len(), 1, "{exchange:?}");
        club.assert_rules();
    }
}

#[test]
fn what_one_member_claims_changes_no_number_of_inner_steps() {
    let alike = |_: PeerId, round: Round| honest(peer(0), round);
    let mut without = club(ExchangeKind::AllReduce, 5);
    without.loss = Box::new(alike);
    without.run_to(10);
    let honest = steps(&without);
    for lie in [f64::NAN, f64::INFINITY, 1e300, 1e20, 0.0, -5.0] {
        let mut club = club(ExchangeKind::AllReduce, 5);
        club.loss = Box::new(move |who, round| match who == peer(5) {
            true => lie,
            false => alike(who, round),
        });
        club.run_to(10);
        assert_eq!(steps(&club), honest, "{lie}");
        club.assert_rules();
    }
}

#[test]
fn a_round_that_is_void_keeps_the_loss_of_the_last_one() {
    let mut club = club(ExchangeKind::AllReduce, 4);
    // No slice of round 3 arrives.
    club.fate = Box::new(|_, _, slice| match slice.round.0 == 3 {
        true => Some(PushOutcome::Lost),
        false => Some(PushOutcome::Delivered),
    });
    let voided = |club: &Club| {
        let voids = |e: &Event| matches!(e, Event::Voided { round, .. } if round.0 == 3);
        club.members.values().all(|m| m.events.iter().any(voids))
    };
    club.run_until(600, voided);
    assert!(voided(&club), "round 3 is void at all members");
    club.run_to(8);
    let found = steps(&club);
    // Round 4 begins with the loss of round 2.
    let known = |round: u64| honest(peer(2), Round(if round == 3 { 2 } else { round }));
    let found: Vec<u32> = (0..8).map(|round| found[&round]).collect();
    assert_eq!(found, by_the_paper(known, 8));
}

/// A `Ready` of peer 1 with this loss.
fn ready(one: &One, loss: Option<Loss>) -> Message {
    FormingMessage::Ready {
        round: Round(0),
        said: Said {
            weight: 8.0,
            taken: None,
            loss,
        },
        anchor: one.peer.digest(),
        proposes: true,
    }
    .into()
}

#[test]
fn a_loss_is_refused_where_the_pace_does_not_follow_it() {
    for follows in [true, false] {
        let mut one = match follows {
            true => One::of(paced(ExchangeKind::AllReduce)),
            false => One::new(ExchangeKind::AllReduce),
        };
        one.meet(peer(1));
        for (loss, fits) in [(None, true), (Some(Loss::of(2.0)), follows)] {
            let (from, message) = (peer(1), ready(&one, loss));
            let heard = one.peer.handle(one.now, Input::Received { from, message });
            assert_eq!(heard.is_ok(), fits, "{loss:?} {follows} {heard:?}");
        }
    }
}

#[test]
fn who_does_not_follow_losses_says_none() {
    for (pace, says) in [
        (Pace::Steady, false),
        (Pace::Decay { every: 2 }, false),
        (Pace::Balanced, false),
        (paced(ExchangeKind::AllReduce).synchronization.pace, true),
    ] {
        let mut plan = paced(ExchangeKind::AllReduce);
        plan.synchronization.pace = pace;
        let mut club = Club::of(3, &plan, |_| Digest::of(b"anchor"));
        club.loss = Box::new(honest);
        club.hears = Box::new(move |_, _, message| {
            if let Message::Exchange(ExchangeMessage::Agreed(agreed)) = message
                && let murmurate_protocol::wire::AgreedMessage::Forming(FormingMessage::Ready {
                    said,
                    ..
                }) = agreed
            {
                assert_eq!(said.loss.is_some(), says, "{pace:?}");
            }
            true
        });
        club.run_to(4);
    }
}

#[test]
fn the_inner_steps_of_a_round_are_in_its_order_too() {
    let mut one = One::of(paced(ExchangeKind::AllReduce));
    one.meet(peer(1));
    let rules = one.orders().find_map(|order| match order {
        Order::Train { rules, budget, .. } => Some((rules.inner_steps, *budget)),
        _ => None,
    });
    assert_eq!(rules, Some((Some(START), StepBudget::Steps(START))));
}

#[test]
fn only_one_group_that_agrees_and_tells_no_lies_follows_losses() {
    let with = |change: fn(&mut Plan)| {
        let mut plan = paced(ExchangeKind::AllReduce);
        change(&mut plan);
        plan.validate()
    };
    assert_eq!(with(|_| {}), Ok(()));
    assert_eq!(with(|p| p.agreement.liars = 1), Err(PlanError::Loss));
    let grid = |p: &mut Plan| p.agreement.grouping = Grouping::Grid { row: 2 };
    assert_eq!(with(grid), Err(PlanError::Loss));
    assert_eq!(paced(ExchangeKind::Gossip).validate(), Err(PlanError::Loss));
    let none = |p: &mut Plan| {
        p.synchronization.pace = Pace::Loss {
            every: 0,
            factor: 500,
        };
    };
    assert_eq!(with(none), Err(PlanError::Pace));
}

/// Rounds whose members choose between a codec of 32 bits and one of 8.
fn choosing(exchange: ExchangeKind) -> Plan {
    let mut plan = plan(exchange, 1);
    plan.budget = StepBudget::Steps(START);
    let bound = plan.fragments[0];
    let rung = |tag, per_1024| Rung {
        tag,
        per_1024,
        contribution: BytesBound {
            per_1024: bound.contribution.per_1024.min(per_1024),
            ..bound.contribution
        },
        aggregate: BytesBound {
            per_1024: bound.aggregate.per_1024.min(per_1024),
            ..bound.aggregate
        },
        ..Rung::default()
    };
    plan.agreement.ladder = Ladder::new(EVERY, 900, &[rung(1, 8192), rung(2, 2048)]);
    plan
}

#[test]
fn members_that_choose_the_codec_say_their_waits_and_begin_with_the_first() {
    let mut one = One::of(choosing(ExchangeKind::AllReduce));
    one.meet(peer(1));
    let (from, message) = (peer(1), ready(&one, Some(Loss::of(2.0))));
    let heard = one.peer.handle(one.now, Input::Received { from, message });
    assert!(heard.is_ok(), "{heard:?}");
    assert_eq!(one.peer.chosen_codec().map(|rung| rung.tag), Some(1));
    assert_eq!(one.peer.losses(), None, "no pace follows them");
    assert_eq!(One::new(ExchangeKind::AllReduce).peer.chosen_codec(), None);
}

#[test]
fn only_one_group_that_trains_between_exchanges_chooses_the_codec() {
    let with = |change: fn(&mut Plan)| {
        let mut plan = choosing(ExchangeKind::AllReduce);
        change(&mut plan);
        plan.validate()
    };
    let measured = |p: &mut Plan| {
        p.synchronization.pace = Pace::Measured {
            every: 4,
            share: 900,
            least: 1,
            most: 64,
        };
    };
    assert_eq!(with(|_| {}), Ok(()));
    assert_eq!(with(measured), Ok(()));
    let refused = Err(PlanError::Ladder);
    assert_eq!(with(|p| p.agreement.liars = 1), refused);
    assert_eq!(
        with(|p| p.budget = StepBudget::Time(Duration::from_secs(1))),
        refused
    );
    assert_eq!(with(|p| p.overlap.late_steps = 1), refused);
    let by_loss = |p: &mut Plan| p.synchronization.pace = paced(p.exchange).synchronization.pace;
    assert_eq!(with(by_loss), refused);
    let one_codec = |p: &mut Plan| {
        let ladder = p.agreement.ladder.expect("it has one");
        p.agreement.ladder = Ladder::new(EVERY, 900, &ladder.codecs()[..1]);
    };
    assert_eq!(with(one_codec), refused);
    assert_eq!(choosing(ExchangeKind::Gossip).validate(), refused);
    // Without a ladder the plan has the hash that it had before there were any.
    let mut none = choosing(ExchangeKind::AllReduce);
    none.agreement.ladder = None;
    assert_eq!(none.hash(), {
        let mut usual = plan(ExchangeKind::AllReduce, 1);
        usual.budget = StepBudget::Steps(START);
        usual.hash()
    });
    assert_ne!(none.hash(), choosing(ExchangeKind::AllReduce).hash());
}
