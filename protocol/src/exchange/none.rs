//! No exchange: every peer trains alone. The yardstick of `utilization`.

use crate::exchange::{Ending, Exchange, Outcome, Signal};
use crate::peer::context::Context;
use crate::{Order, PeerError, Plan, TrainSummary};

/// Ends every round at once with what training left.
pub(crate) struct NoExchange {
    fragments: usize,
    ended: bool,
}

impl NoExchange {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            fragments: plan.fragments.len(),
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
            Signal::Arrived { slice, .. } => {
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

    fn outcome(&mut self) -> Option<Outcome> {
        let ended = std::mem::take(&mut self.ended);
        ended.then(|| Outcome::Ended(vec![Ending::Apply(Vec::new()); self.fragments]))
    }

    fn finish(&mut self, _cx: &mut Context) {
        self.ended = false;
    }
}
