//! The swarm with what its daemons say of themselves.

use super::*;
use crate::api::{About, Claims};
use crate::net::SeenVitals;
use murmurate_protocol::vitals::{DaemonName, Vitals, WaitingFor};
use murmurate_protocol::{PeerId, Phase, Wait};
use std::time::Duration;

const ME: PeerId = PeerId::from_bytes([0xaa; 32]);
const BOB: PeerId = PeerId::from_bytes([0xb0; 32]);
const CAROL: PeerId = PeerId::from_bytes([0xca; 32]);
const DAVE: PeerId = PeerId::from_bytes([0xda; 32]);

fn seen(peer: PeerId, age_s: u64, steps_per_s: Option<f32>) -> SeenVitals {
    SeenVitals {
        vitals: Vitals {
            name: DaemonName::new("gpu").ok(),
            waiting: Some(WaitingFor {
                wait: Wait::Group,
                peers: vec![ME],
            }),
            steps_per_s,
            accuracy: Some(0.5),
            ..crate::tests::vitals(peer, 7, Phase::Exchange)
        },
        age: Duration::from_secs(age_s),
    }
}

/// This daemon trains and is linked with Bob; Carol's link is gone; Dave was never met.
fn swarm(now: f64, seen: &[SeenVitals], goal: Target) -> Swarm {
    let mut status = Status {
        peer: ME.to_hex(),
        phase: "train".to_owned(),
        inner_steps_per_s: 2.0,
        round: 9,
        ..Status::default()
    };
    for (peer, presence) in [(BOB, Presence::Linked), (CAROL, Presence::Left)] {
        let known = PeerStatus {
            presence,
            round: Some(8),
            ..PeerStatus::default()
        };
        status.peers.insert(peer.to_hex(), known);
    }
    let mut claims = Claims::default();
    claims.set(100.0, seen);
    let (insight, about) = (Insight::new(&ME.to_hex()), About::default());
    let facts = Facts {
        status: &status,
        insight: &insight,
        claims: &claims,
        about: &about,
        now,
    };
    Swarm::new(&facts, goal)
}

#[test]
fn claims_are_beside_what_is_known_and_turn_stale() {
    let all = [
        seen(BOB, 1, Some(3.0)),
        seen(CAROL, 2, Some(4.0)),
        seen(DAVE, 3, Some(5.0)),
    ];
    let fresh = swarm(101.0, &all, Target::default());
    let [bob, carol, dave] = fresh.peers.as_slice() else {
        panic!("{:?}", fresh.peers);
    };
    let says = bob.says.as_ref().unwrap();
    assert_eq!((says.age_s, says.stale), (2.0, false));
    assert_eq!(says.claim.name.as_deref(), Some("gpu"));
    assert_eq!(
        (bob.round, says.claim.round),
        (Some(8), 7),
        "measured and claimed"
    );
    assert_eq!(says.claim.waiting.as_ref().unwrap().what, "group");
    assert!(!bob.heard_of && !carol.heard_of && dave.heard_of);
    assert_eq!((dave.round, dave.lag, dave.share), (None, None, None));
    let known = (carol.round, carol.lag, carol.left);
    assert_eq!(
        known,
        (Some(8), None, true),
        "no older round than was known"
    );
    // Carol is gone whatever she said; Dave is there because others heard of him.
    let totals = Totals {
        daemons: 3,
        counted: 3,
        inner_steps_per_s: Some(10.0),
        accuracy: Spread::of(&[(0.5, &bob.peer), (0.5, &dave.peer)]),
    };
    assert_eq!(fresh.totals, totals);
    let later = swarm(114.5, &all, Target::default());
    let stale = |at: usize| later.peers[at].says.as_ref().unwrap().stale;
    assert!(stale(0) && stale(1) && stale(2));
    let only_here = Totals {
        daemons: 2,
        counted: 1,
        inner_steps_per_s: Some(2.0),
        accuracy: None,
    };
    assert_eq!(later.totals, only_here, "a stale claim is in no sum");
}

#[test]
fn accuracies_of_sites_have_a_best_and_a_worst() {
    let of = |figures: &[(f64, &str)]| Spread::of(figures);
    assert_eq!(of(&[]), None);
    assert_eq!(of(&[(0.5, "a")]), None, "one is no spread");
    let spread = of(&[(0.9, "a"), (0.6, "b"), (0.6, "c")]).unwrap();
    let (best, worst) = (&*spread.best_peer, &*spread.worst_peer);
    assert_eq!((spread.daemons, best, worst), (3, "a", "b"));
    assert_eq!((spread.best, spread.worst), (0.9, 0.6));
    assert!(
        (spread.mean - 0.7).abs() < 1e-12 && (spread.deviation - 0.02_f64.sqrt()).abs() < 1e-12
    );
}

#[test]
fn what_is_not_said_is_null_and_never_zero() {
    let now = swarm(101.0, &[seen(BOB, 1, None)], Target::default());
    assert_eq!(now.totals.counted, 1);
    let json = serde_json::to_value(&now).unwrap();
    let says = &json["peers"][0]["says"];
    for key in [
        "inner_steps_per_s",
        "loss",
        "train_s",
        "rss_bytes",
        "saved_round",
    ] {
        assert!(says[key].is_null(), "{key}: {says}");
    }
    assert_eq!(says["accuracy"], 0.5);
    assert!(json["peers"][1]["says"].is_null());
    assert!(json["goal"].is_null());
    let goal = Target {
        accuracy: Some(0.9),
        loss: None,
    };
    let asked = swarm(101.0, &[], goal).goal.unwrap();
    assert_eq!(
        (asked.accuracy, asked.reached, asked.eta_s),
        (Some(0.9), false, None)
    );
}
