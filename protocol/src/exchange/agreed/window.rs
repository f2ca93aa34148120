//! Which fragments are open: a window that moves over the model, so that memory and traffic in
//! flight follow the window's size and not the model's.

use super::Agreed;
use super::fragment::FragmentRound;
use super::group::Group;
use crate::core::context::Context;
use crate::limits::{WINDOW_BYTES, WINDOW_FRAGMENTS_MAX};
use crate::{FragmentId, Layers, Plan, Round};

/// Fragments that may be open at a time: as many as make [`WINDOW_BYTES`]; all of them by priority.
pub(super) fn window(plan: &Plan) -> usize {
    if plan.overlap.layers.overtake() {
        return plan.fragments.len();
    }
    let largest = plan
        .fragments
        .iter()
        .map(|f| f.contribution.of(f.len))
        .max();
    let many = WINDOW_BYTES / largest.unwrap_or(0).max(1);
    usize::try_from(many).map_or(WINDOW_FRAGMENTS_MAX, |many| {
        many.clamp(2, WINDOW_FRAGMENTS_MAX)
    })
}

impl Agreed {
    /// Opens the next fragments while the window has room.
    pub(super) fn open(&mut self, cx: &mut Context) {
        let Some(group) = self.group.clone() else {
            return;
        };
        let window = window(&cx.plan);
        loop {
            let open = self.fragment_rounds.iter().filter(|b| b.ending.is_none());
            if open.count() >= window {
                return;
            }
            let Some(next) = self.next_to_open(cx) else {
                return;
            };
            self.open_one(cx, next, group.clone());
        }
    }

    /// The next fragment, if it has left the training. All peers open fragments in the same order,
    /// or all at once by priority. Otherwise two peers could each wait for a fragment that the
    /// other has not opened.
    fn next_to_open(&self, cx: &Context) -> Option<FragmentId> {
        let opened = self.fragment_rounds.len();
        let next = || cx.plan.fragments_of(cx.round).nth(opened);
        match cx.plan.overlap.layers {
            Layers::Together => next(),
            Layers::AsReady => next().filter(|fragment| self.cut.contains(fragment)),
            Layers::ByPriority | Layers::IntoForward | Layers::Decoupled => {
                self.cut.get(opened).copied()
            }
        }
    }

    /// Opens one fragment and delivers the slices and messages that came early.
    fn open_one(&mut self, cx: &mut Context, fragment: FragmentId, group: Group) {
        let program = self.programs.of(&cx.plan, &group, cx.round);
        let mut fragment_round = FragmentRound::new(cx, fragment, group, program, self.lost);
        if self.has_joined(cx) {
            fragment_round.may_sign();
        }
        fragment_round.advance(cx);
        let place = self.place(fragment).unwrap_or_else(|place| place);
        self.fragment_rounds.insert(place, fragment_round);
        let round = cx.round;
        let belongs = |r: Round, f: FragmentId| r == round && f == fragment;
        let slices = self.early.take_slices(belongs);
        for (from, slice, meta, digest) in slices {
            if let Err(error) = self.arrived(cx, from, slice, meta, digest) {
                cx.accuse(from, error.to_string());
            }
        }
        let messages = self.early.take_messages(belongs);
        for (from, message) in messages {
            if let Err(error) = self.deliver(cx, from, &message) {
                cx.accuse(from, error.to_string());
            }
        }
    }
}
