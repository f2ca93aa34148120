//! Hands slices to the network: in the order of the schedule, where it says one.

use super::fragment::FragmentRound;
use crate::core::context::Context;
use crate::core::sends::{SendTurn, Waiting};
use crate::{Layers, Part, PeerId, SliceId, SliceMeta};

impl FragmentRound {
    /// Pushes a slice to a member.
    pub(super) fn push(&mut self, cx: &mut Context, to: PeerId, slice: SliceId, meta: SliceMeta) {
        self.transfers.metas.insert(slice, meta);
        let down = slice.part == Part::Aggregate;
        let needed = u8::try_from(slice.fragment.0).map_or(u8::MAX / 2, |at| at.min(u8::MAX / 2));
        // Aggregates overtake contributions, because they end an exchange. With priorities, the
        // fragment that is needed first overtakes both. Decoupled, contributions leave as they come,
        // and only aggregates have an order.
        let first_needed = match cx.plan.overlap.layers {
            Layers::ByPriority | Layers::IntoForward => needed,
            Layers::Decoupled if down => needed,
            Layers::Together | Layers::AsReady | Layers::Decoupled => 0,
        };
        let priority = match cx.plan.overlap.layers {
            Layers::Decoupled => first_needed + u8::from(down),
            _ => 2 * first_needed + u8::from(!down),
        };
        let open = self.pipeline.as_ref().filter(|pipeline| pipeline.open);
        let turns = open.and_then(|pipeline| pipeline.program.turns());
        let (Some(turns), Some(index)) = (turns, self.scope.group.index(to)) else {
            cx.push(to, slice, meta, priority);
            return;
        };
        let turn = SendTurn {
            round: slice.round,
            needed: first_needed,
            fragment: slice.fragment,
            place: turns.place(slice.shard, index, down),
        };
        let window = turns.window;
        let send = Waiting {
            meta,
            priority,
            window,
        };
        cx.push_in_turn(turn, to, slice, send);
    }
}
