//! Fragments that leave during the backward pass: the exchange begins with the first of them, while
//! the training order that makes the others is still under way.

use crate::core::Phase;
use crate::peer::Peer;
use crate::{FragmentId, Layers, OrderId, TrainSummary};

impl Peer {
    /// The backward pass has completed a fragment.
    pub(super) fn cut(&mut self, order: OrderId, fragment: FragmentId, samples: u64) {
        if self.life.train != Some(order) || self.cx.plan.overlap.layers == Layers::Together {
            return;
        }
        if self.phase == Phase::Train {
            self.enter(Phase::Exchange);
            let seconds = self.cx.now.since(self.life.started).as_secs_f64();
            self.exchange(TrainSummary {
                steps: 1,
                samples,
                loss: 0.0,
                seconds,
                blocks: 0,
            });
        }
        if self.phase == Phase::Exchange {
            self.exchange.cut(&mut self.cx, fragment);
            self.check_outcome();
        }
    }

    /// A trainer may hand out its whole gradient at the end: the fragments that have not left leave
    /// now.
    pub(super) fn cut_the_rest(&mut self) {
        if self.cx.plan.overlap.layers == Layers::Together {
            return;
        }
        for fragment in self.cx.plan.fragments_of(self.cx.round) {
            if self.phase == Phase::Exchange {
                self.exchange.cut(&mut self.cx, fragment);
                self.check_outcome();
            }
        }
    }

    /// The training ended after its fragments began to leave: the round may be over.
    pub(super) fn trained_under_the_exchange(&mut self) {
        if self.phase == Phase::Exchange {
            self.cut_the_rest();
        }
        self.begin_forward();
        self.go_on_after_training();
    }
}
