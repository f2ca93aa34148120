//! No exchange: every peer trains alone. `utilization` compares the other exchanges with this one.

use crate::core::context::Context;
use crate::exchange::{Ending, Exchange, Outcome, Signal};
use crate::{FragmentId, Order, PeerError, Plan, TrainSummary};

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

    fn signal(&mut self, cx: &mut Context, signal: Signal<'_>) -> Result<(), PeerError> {
        let what = match signal {
            Signal::Arrived(arrived) => {
                let slice = arrived.slice;
                cx.order(Order::Release { slice });
                "a slice"
            }
            Signal::Message { .. } => "an exchange's message",
            _ => return Ok(()),
        };
        Err(PeerError::Unexpected {
            what: format!("{what} in a run that exchanges nothing"),
        })
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
