//! A peer that no other exchanges with: it waits for the others, goes on alone, or takes over a state.

use super::CellsExchange;
use crate::core::context::Context;
use crate::core::timers::Timer;
use crate::exchange::Outcome;
use crate::limits::CELL_ALONE_ROUNDS;

/// Rounds that a peer may be ahead of most others before it waits for them.
const AHEAD: u64 = 1;

impl CellsExchange {
    /// Whether the peers of the cell may still come, because most peers are not in this round yet. One that went
    /// on then would be in no cell, and further ahead after each round: alone its rounds are shorter than those of
    /// the others.
    pub(super) fn is_ahead(&self, cx: &Context) -> bool {
        let mut mates = self.mates.iter().flatten();
        let comes = mates.any(|mate| {
            let remote = cx.view.get(*mate);
            cx.view.takes_part(*mate) && remote.is_some_and(|remote| remote.round <= cx.round)
        });
        comes && self.passed_by.is_none() && cx.round.since(cx.view.usual_round()) > AHEAD
    }

    /// Gives those that did not come another deadline.
    pub(super) fn wait_on(&mut self, cx: &mut Context) {
        if let Some(forming) = &mut self.forming {
            forming.wait_on(cx);
        }
    }

    /// No other peer exchanges with this one in this round: it goes on from its own parameters.
    pub(super) fn go_alone(&mut self, cx: &mut Context) {
        self.end_forming(cx, &[]);
        cx.timers.stop(Timer::Exchange);
        self.alone = true;
        self.alone_for += u32::from(self.passed_by.is_some());
        self.outcome = Some(match self.passed_by {
            Some(teller) if self.alone_for >= CELL_ALONE_ROUNDS => {
                self.alone_for = 0;
                self.alone = false;
                let resync = true;
                Outcome::Behind { teller, resync }
            }
            _ => Outcome::Ended,
        });
    }
}
