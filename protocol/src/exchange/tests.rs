//! One peer of an exchange, for tests that give it inputs by hand.

use crate::core::context::Context;
use crate::id::tests::peer;
use crate::{
    AgreementPlan, BytesBound, Contribution, DeadlinePlan, Digest, ExchangeKind, FragmentPlan,
    LayoutHash, OverlapPlan, Partners, PeerConfig, Plan, Round, RunId, Schedule, StepBudget,
    Synchronization, Topology,
};
use core::time::Duration;

/// Every peer with all others.
pub(super) struct Complete;

impl Topology for Complete {
    fn partners(&self, _round: Round, rank: usize, count: usize) -> Partners {
        let others = (0..count).filter(|other| *other != rank);
        Partners {
            send: others.clone().map(|o| (o, 1.0 / count as f64)).collect(),
            receive: others.collect(),
        }
    }
}

/// Of peer 1 in a run with one fragment of ten parameters.
pub(super) fn alone(exchange: ExchangeKind, contribution: Contribution) -> Context {
    let bound = BytesBound {
        fixed: 8,
        per_1024: 4096,
    };
    let plan = Plan {
        run: RunId::from_bytes([1; 32]),
        layout: LayoutHash::from_bytes([2; 32]),
        recipe: Digest::from_bytes([3; 32]),
        exchange,
        schedule: Schedule::Butterfly,
        contribution,
        budget: StepBudget::Steps(1),
        synchronization: Synchronization::default(),
        rounds: 0,
        fragments: vec![FragmentPlan {
            len: 10,
            contribution: bound,
            aggregate: bound,
        }],
        deadlines: DeadlinePlan::default(),
        overlap: OverlapPlan::NONE,
        state_bytes: 1000,
        agreement: AgreementPlan::default(),
    };
    let config = PeerConfig {
        me: peer(1),
        seed: 1,
        start_with: 1,
        companions: 0,
        start_wait: Duration::from_secs(1),
        join: false,
        save_every: None,
        evaluate_every: 0,
        evaluate_percent: 0,
        leave_when_finished: false,
        pool: None,
        masked: None,
    };
    Context::new(config, plan)
}

/// Of peer 1 in a round of an exchange of parameters, linked with these.
pub(super) fn linked(exchange: ExchangeKind, round: u64, others: &[u8]) -> Context {
    let mut cx = alone(exchange, Contribution::Parameters);
    cx.round = Round(round);
    for id in others {
        let remote = cx.view.entry(peer(*id)).expect("room");
        (remote.linked, remote.greeted, remote.ready) = (true, true, true);
    }
    cx
}
