//! Which exchange a plan asks for, and the one of a plan that asks for none: every peer trains alone, and
//! `utilization` compares the other exchanges with it.

use super::neighbours;
use crate::core::context::Context;
use crate::exchange::{
    Agreed, CellsExchange, Center, Exchange, GridExchange, Outcome, Signal, broke,
};
use crate::{Checked, Ending, FragmentId, Plan, Topology, TrainSummary};

/// Makes the exchange that a plan asks for.
///
/// # Panics
/// When a plan that needs a topology comes without one: the driver passes both.
pub(crate) fn build(cx: &Context, topology: Option<Box<dyn Topology>>) -> Box<dyn Exchange> {
    let facts = cx.plan.exchange.facts();
    if cx.plan.agreement.grouping.is_grid() {
        return Box::new(GridExchange::default());
    }
    if facts.deals_cells {
        return Box::new(CellsExchange::default());
    }
    if facts.agrees {
        return Box::new(Agreed::default());
    }
    if facts.has_neighbours {
        let topology = topology.expect("an exchange between neighbours comes with a topology");
        return neighbours::build(&cx.plan, topology).expect("it is one between neighbours");
    }
    match Center::new(&cx.plan) {
        Some(center) => Box::new(center),
        None => Box::new(NoExchange::new(&cx.plan)),
    }
}

/// Ends every round at once with what training left.
pub(crate) struct NoExchange {
    fragments: Vec<FragmentId>,
    ended: bool,
}

impl NoExchange {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            fragments: plan.fragment_ids().collect(),
            ended: false,
        }
    }
}

impl Exchange for NoExchange {
    fn begin(&mut self, _cx: &mut Context, _summary: &TrainSummary) {
        self.ended = true;
    }

    fn signal(&mut self, cx: &mut Context, signal: Signal<'_>) -> Checked {
        let what = match signal {
            Signal::Arrived(arrived) => {
                let slice = arrived.slice;
                cx.release(slice);
                "a slice"
            }
            Signal::Message { .. } => "an exchange's message",
            _ => return Ok(()),
        };
        broke(&format!("{what} in a run that exchanges nothing"))
    }

    fn ended(&mut self, _cx: &Context) -> Vec<(FragmentId, Ending)> {
        let all = self.fragments.iter().filter(|_| self.ended);
        all.map(|f| (*f, Ending::Apply(Vec::new()))).collect()
    }

    fn outcome(&mut self) -> Option<Outcome> {
        std::mem::take(&mut self.ended).then_some(Outcome::Ended)
    }

    fn finish(&mut self, _cx: &mut Context) {
        self.ended = false;
    }
}
