//! From the contributions of a row to its mean in the column.

use super::GridMessage;
use super::part::{GridPart, Task};
use super::row::Sum;
use crate::core::context::Context;
use crate::{Order, Wait};

impl GridPart {
    /// Sums what is here of the row.
    pub(super) fn sum_up(&mut self, cx: &mut Context) {
        cx.waited_in(self.fragment, Wait::Group, false);
        if self.row.here.is_empty() || self.column_over() {
            self.pass(cx);
            return;
        }
        self.row.sum = Sum::Summing;
        self.row.summed = self.row.here.keys().copied().collect();
        let shard = self.mine();
        let of = self.seating.columns();
        let here = self.row.here.iter();
        let inputs = here.map(|(peer, weight)| (self.share(*peer, shard), *weight));
        let order = Order::SumRow {
            fragment: self.fragment,
            shard,
            of,
            inputs: inputs.collect(),
        };
        self.tasks.insert(cx.order(order), Task::Sum);
    }

    /// Brings the mean of the row to the column, once this peer's own contributions have left: other rows
    /// wait for those, and would wait longer if they shared the link with the parts of the mean. A member
    /// that takes nothing holds it up only as long as the row waits.
    pub(super) fn feed(&mut self, cx: &mut Context) {
        if !self.row.sending.is_empty() && cx.now < self.row.deadline {
            return;
        }
        let tally = self.row.tally(&self.seating.roll);
        if let (Some(weight), Some(column)) = (self.row.held.take(), &mut self.column) {
            column.feed(cx, weight, tally);
        }
    }

    /// This peer came back in this round. Its row began without it: shares went where it was not yet, and
    /// the column's result may be handed down before it has it. It does only what is its own, and others
    /// need not wait for it.
    pub(super) fn come_back(&mut self, cx: &mut Context) {
        let (round, fragment) = (self.seating.round, self.fragment);
        for peer in self.others() {
            if cx.view.takes_part(peer) {
                cx.send(peer, GridMessage::Returned { round, fragment });
            }
        }
        self.pass(cx);
    }

    /// The row brings nothing to this round.
    pub(super) fn pass(&mut self, cx: &mut Context) {
        cx.waited_in(self.fragment, Wait::Group, false);
        self.row.sum = Sum::Over;
        self.row.awaited.clear();
        if let Some(column) = &mut self.column
            && !column.over()
        {
            column.pass(cx);
        }
    }
}
