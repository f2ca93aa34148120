//! What tests of swarms check alike: the same bits at all members, the optimum of those that are left, refusals.

use super::{Draw, Fatal, Fate, Swarm, peer};
use murmurate_protocol::{Digest, Output, Part, PeerId, Round, SliceId};
use murmurate_strategies::grid::{Strategy, StrategyError};
use murmurate_strategies::toy::Quadratic;
use std::collections::BTreeSet;

/// All that ended a round hold the same finite anchor after it.
pub fn same_bits(swarm: &Swarm, rounds: u64, what: &str) {
    for round in (0..rounds).map(Round) {
        let mut anchors = swarm.members.values().filter_map(|m| m.anchors.get(&round));
        let first = anchors.next().unwrap();
        assert!(first.iter().all(|v| v.is_finite()), "{what}: {round:?}");
        assert!(anchors.all(|anchor| anchor == first), "{what}: {round:?}");
    }
}

/// All members have ended this round, with the same digest.
pub fn ended_alike(swarm: &Swarm, round: u64, what: &str) {
    let members = swarm.members.values();
    let ended: BTreeSet<Digest> = members.map(|m| m.digests[&Round(round)]).collect();
    assert_eq!(ended.len(), 1, "{what}");
}

/// How far the worst member is from where the gradients of these objectives sum to zero.
pub fn off_optimum(swarm: &Swarm, of: &[Quadratic]) -> f64 {
    let mut worst = 0.0f64;
    for at in 0..swarm.initial.len() {
        let pulls = of.iter().map(|q| {
            let (curvature, center) = q.own();
            (f64::from(curvature[at]), f64::from(center[at]))
        });
        let (weight, moment) = pulls.fold((0.0, 0.0), |(w, m), (k, c)| (w + k, m + k * c));
        for member in swarm.members.values() {
            let found = f64::from(member.executor.anchor()[at]);
            worst = worst.max((found - moment / weight).abs());
        }
    }
    worst
}

/// The worst member's loss above the optimum of all.
pub fn worst_loss(swarm: &Swarm, of: &Quadratic) -> f64 {
    let members = swarm.members.values();
    let losses = members.map(|m| of.global_loss(m.executor.anchor()));
    losses.fold(0.0, f64::max)
}

/// A fifth member comes after five rounds: in round 16 all hold the same bits.
pub fn newcomer_takes_over(swarm: &mut Swarm, what: &str) {
    swarm.run(5);
    let newcomer = peer(4);
    swarm.add(4, true);
    swarm.run_until(|swarm| {
        let anchors = &swarm.members[&newcomer].anchors;
        anchors.len() >= 6 && anchors.contains_key(&Round(16))
    });
    same_bits(swarm, 16, what);
}

/// Of ten pushes `lost` are lost, one arrives unheard, and one vanishes.
pub fn losses(seed: u64, lost: usize) -> impl FnMut(&SliceId) -> Fate {
    let mut draw = Draw(seed);
    move |_| match draw.below(10).checked_sub(lost) {
        None => Fate::Lost,
        Some(0) => Fate::Unheard,
        Some(1) => Fate::Vanished,
        Some(_) => Fate::Delivered,
    }
}

/// Dies in round 2 with a push of this part, after `before` of them.
pub fn dies_at_a_push(victim: PeerId, part: Part, before: usize) -> Fatal {
    let mut seen = 0;
    Box::new(move |who, round, output| match output {
        Output::Push { slice, .. } if who == victim && round.0 == 2 && slice.part == part => {
            seen += 1;
            seen > before
        }
        _ => false,
    })
}

/// The key that a refusal names.
pub fn refused_key(text: &str) -> String {
    match text.parse::<Strategy>().unwrap_err() {
        StrategyError::Refused { key, .. } => key.to_owned(),
        StrategyError::DoesNotApply { key, .. } => key,
        other => panic!("{other}"),
    }
}

/// A configuration is refused, and the message says all of these words.
pub fn refused(text: &str, words: &[&str]) {
    let error = Strategy::parse(text, None).unwrap_err();
    let message = error.to_string();
    let all = words.iter().all(|word| message.contains(word));
    assert!(all, "{message} does not say {words:?} of\n{text}");
}
