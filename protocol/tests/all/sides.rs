//! A swarm that was split, and restarted as a whole before its sides met: who trained alone does not replace
//! the state of those who trained together.

use crate::common::one::{One, asked_for_a_state, trains};
use crate::common::{config, peer, plan, snapshot};
use murmurate_protocol::wire::{MembershipMessage, Message, Muster, Offer, TransferMessage};
use murmurate_protocol::{
    Base, Branch, Contribution, Digest, Done, Event, ExchangeKind, KeptSplit, Order, Plan, Round,
    Snapshot, StateId,
};

/// The round that opened with the last state that all four had.
const TOGETHER: u64 = 300;

/// Where three of them are.
const THREE: u64 = 377;

/// Where the fourth one is, which was alone and waited for no one.
const ALONE: u64 = 634;

fn base(round: u64, words: &str) -> Base {
    Base {
        round: Round(round),
        anchor: Digest::of(words.as_bytes()),
    }
}

fn three() -> Base {
    base(THREE, "of three")
}

fn alone() -> Base {
    base(ALONE, "of one")
}

fn branch(members: u16, weight: f64) -> Branch {
    let mut bases = Branch {
        bases: Default::default(),
        members,
        weight,
    };
    bases.bases[0] = Some(base(TOGETHER, "of all"));
    bases
}

/// Whether sides are merged.
fn of_plan(merges: bool) -> Plan {
    let mut plan = plan(ExchangeKind::AllReduce, 1);
    if !merges {
        plan.contribution = Contribution::Gradient;
    }
    assert_eq!(plan.merges(), merges);
    plan
}

/// Peer 0, which begins from a checkpoint that was written in a branch.
fn restarted(merges: bool, held: Base, branch: Branch, missing: &[u8]) -> One {
    let plan = of_plan(merges);
    let mut settings = config(peer(0));
    (settings.start_with, settings.companions) = (4, 3);
    let split = KeptSplit {
        branch,
        missing: missing.iter().map(|id| peer(*id)).collect(),
        heaviest: 10.0,
    };
    let mut snapshot = snapshot(&plan, held.round);
    snapshot.split = Some(Box::new(split));
    // As a daemon reads it from its file.
    let snapshot = Snapshot::from_bytes(&snapshot.to_bytes()).expect("a snapshot");
    One::again(settings, plan, (snapshot, held.anchor), Vec::new())
}

/// Another member that waits with a state, and what it says of its branch.
fn rests(one: &mut One, id: u8, state: Base, branch: Option<Branch>) {
    one.meet_as(peer(id), |hello| {
        (hello.round, hello.anchor) = (state.round, state.anchor);
        (hello.ready, hello.muster) = (false, Muster::Met);
        hello.branch = branch.map(Box::new);
    });
}

/// What it says of its branch in its greeting to another one.
fn told(one: &One, id: u8) -> Option<Branch> {
    let told = one.said().find_map(|(to, message)| match message {
        Message::Membership(MembershipMessage::Hello(hello)) if to == peer(id) => {
            Some(hello.branch.as_deref().copied())
        }
        _ => None,
    });
    told.expect("it greets everyone")
}

#[test]
fn those_who_trained_together_keep_their_state_until_the_sides_are_merged() {
    let mut one = restarted(true, three(), branch(3, 231.0), &[3]);
    rests(&mut one, 3, alone(), Some(branch(1, 334.0)));
    rests(&mut one, 1, three(), None);
    rests(&mut one, 2, three(), None);
    assert_eq!(asked_for_a_state(&one), []);
    assert_eq!(trains(&one), Some(Round(THREE)));
    let met = |event: &Event| matches!(event, Event::BranchesMet { .. });
    assert!(one.events().any(met), "it is said");
    assert_eq!(told(&one, 3), Some(branch(3, 231.0)));
    assert_eq!(
        told(&one, 1),
        None,
        "to its own side it is one that comes back"
    );
}

#[test]
fn who_trained_alone_begins_with_its_own_state_to_be_merged() {
    let mut one = restarted(true, alone(), branch(1, 334.0), &[1, 2, 3]);
    for id in 1..4 {
        rests(&mut one, id, three(), Some(branch(3, 231.0)));
    }
    assert_eq!(asked_for_a_state(&one), []);
    assert_eq!(trains(&one), Some(Round(ALONE)));
}

/// The checkpoints of one side have different ages, and none of its members misses another.
#[test]
fn on_one_side_the_newest_checkpoint_counts_as_ever() {
    let mut one = restarted(true, base(370, "older"), branch(3, 210.0), &[3]);
    rests(&mut one, 3, alone(), Some(branch(1, 334.0)));
    rests(&mut one, 1, three(), None);
    rests(&mut one, 2, three(), None);
    let asked = asked_for_a_state(&one);
    assert_eq!(asked, [1, 2].map(|id| (peer(id), Round(370))));
}

#[test]
fn where_sides_are_not_merged_the_lighter_one_takes_over_the_other_state_and_saves_its_own() {
    let mut one = restarted(false, alone(), branch(1, 200.0), &[1, 2, 3]);
    for id in 1..4 {
        rests(&mut one, id, three(), Some(branch(3, 231.0)));
    }
    let asked = asked_for_a_state(&one);
    assert_eq!(asked, [1, 2, 3].map(|id| (peer(id), Round(THREE))));
    let state = StateId {
        round: Round(THREE),
        root: three().anchor,
        bytes: 100,
    };
    for id in 1..4 {
        let anchor = three().anchor;
        let offer = TransferMessage::StateOffer(Offer { state, anchor });
        one.hear(peer(id), offer);
    }
    one.fetched(state);
    one.work(|order| {
        matches!(order, Order::Save { round, branch: true, .. } if round.0 == ALONE)
            .then_some(Done::Saved)
    });
    one.loads(three().anchor);
    let saved = |event: &Event| matches!(event, Event::BranchSaved { round, weight } if round.0 == ALONE && *weight == 200.0);
    assert!(one.events().any(saved), "{:?}", one.outputs);
    assert_eq!(trains(&one), Some(Round(THREE)));
}

#[test]
fn where_sides_are_not_merged_the_heavier_one_keeps_its_state_however_far_the_other_is() {
    let mut one = restarted(false, three(), branch(3, 231.0), &[3]);
    rests(&mut one, 3, alone(), Some(branch(1, 200.0)));
    // An older checkpoint of this side, which alone would be lighter.
    rests(&mut one, 1, base(340, "older"), Some(branch(3, 120.0)));
    rests(&mut one, 2, three(), Some(branch(3, 231.0)));
    assert_eq!(asked_for_a_state(&one), []);
    assert_eq!(trains(&one), Some(Round(THREE)));
}

/// A claim of more than its members can have done counts for nothing: then the newest state does.
#[test]
fn a_side_that_claims_too_much_is_not_believed() {
    let mut one = restarted(false, three(), branch(3, 231.0), &[3]);
    rests(&mut one, 3, base(360, "of one"), Some(branch(1, 1e15)));
    rests(&mut one, 1, three(), Some(branch(3, 231.0)));
    rests(&mut one, 2, three(), Some(branch(3, 231.0)));
    assert_eq!(asked_for_a_state(&one), []);
    assert_eq!(trains(&one), Some(Round(THREE)));
}
