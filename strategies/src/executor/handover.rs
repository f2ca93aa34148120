//! What the mix lane gives to the train lane before an order: the buffer with the values to take
//! over.

use super::at_hand::{AtHand, stand_on};
use super::eager::Values;
use super::frame::{Frame, Handed, Install, Lent, Taken};
use super::gates::GateKeeper;
use super::held::Held;
use super::mix_core::MixCore;
use murmurate_protocol::{FragmentId, Order, Round};

impl MixCore {
    /// Sends the train lane what it needs to begin an order.
    pub(super) fn hand_over(&mut self, order: &Order) {
        match order {
            // A round begins whose predecessor's result is not known yet.
            Order::Train {
                round,
                cut: false,
                peers,
                ..
            } => {
                let ahead = self.begin_eagerly(*round, peers.count());
                self.local.frames.send(ahead.map(Lent::Values));
                if order.begins_forward() {
                    self.open_forward();
                }
            }
            Order::Evaluate { .. } if self.ahead.trains_ahead => {
                // The agreed anchor is evaluated, not the trainer's progress past it. The trainer gets
                // its parameters back afterwards; what it has to take over waits for the next round.
                let agreed = self.anchor.parameters().to_vec();
                let frame = Frame::new(agreed, Vec::new());
                self.local.frames.send(Some(Lent::Values(frame)));
            }
            _ => {
                if let (Order::Train { .. }, Some(keeper)) = (order, &mut self.keeper) {
                    keeper.close();
                    keeper.round_begins();
                }
                self.lend();
            }
        }
    }

    /// A forward pass begins: passes on what is decided, and the rest once it is.
    fn open_forward(&mut self) {
        let ready = self.keeper.as_mut().map(GateKeeper::open);
        for fragment in ready.unwrap_or_default() {
            self.pass_on(fragment);
        }
    }

    /// A fragment's round has ended: passes its parameters on to a forward pass that waits for them.
    pub(super) fn fragment_ended(&mut self, fragment: FragmentId) {
        if self
            .keeper
            .as_mut()
            .is_some_and(|keeper| keeper.end(fragment))
        {
            self.pass_on(fragment);
        }
    }

    /// Parameters that change again are taken over before the next order, as ever.
    fn pass_on(&mut self, fragment: FragmentId) {
        let Some(keeper) = &mut self.keeper else {
            return;
        };
        let values = self.anchor.values[self.places.of(fragment)].to_vec();
        keeper.pass(fragment, values);
        self.local.set(fragment, Held::Nothing);
    }

    /// Fragments may stay undecided: no forward pass waits for them any more.
    pub(super) fn close_forward(&mut self) {
        if let Some(keeper) = &mut self.keeper {
            keeper.close();
        }
    }

    /// Lends the train lane the buffer with what it has to take over, once a round.
    fn lend(&mut self) {
        self.local.drop_pieces();
        if self.lend_trainer() {
            return;
        }
        let nothing = |held: &Held| matches!(held, Held::Nothing | Held::Contribution);
        if self.local.here().is_none() && self.local.held.iter().all(nothing) {
            // The train lane has the buffer already, from an order before.
            self.local.frames.send(None);
            return;
        }
        let mut values = self.local.take_or_fresh();
        let mut install = Vec::new();
        for (range, held) in self.places.ranges().iter().zip(&self.local.held) {
            let piece = &mut values[range.clone()];
            let anchor = &self.anchor.values[range.clone()];
            let taken = match held {
                Held::TakeAnchor => {
                    piece.copy_from_slice(anchor);
                    Taken::Anchor
                }
                Held::KeepDelta => {
                    piece.iter_mut().zip(anchor).for_each(|(d, a)| *d += a);
                    Taken::WithDelta
                }
                Held::Shift => Taken::Shifted,
                Held::Blend => {
                    piece.copy_from_slice(anchor);
                    Taken::Blended(self.ahead.own_share())
                }
                Held::Nothing | Held::Contribution => continue,
            };
            let range = range.clone();
            install.push(Install { range, taken });
        }
        self.local.held.fill(Held::Nothing);
        let frame = Frame::new(values, install);
        self.local.frames.send(Some(Lent::Values(frame)));
    }

    /// Lends the trainer, which has taken over everything; false where it is not here.
    fn lend_trainer(&mut self) -> bool {
        self.local.wait_for_trainer();
        let (local, fragments) = (&mut self.local, self.places.ranges());
        let trainer = local.at_hand.as_mut().and_then(AtHand::take);
        let Some(mut trainer) = trainer else {
            return false;
        };
        stand_on(&mut *trainer, &self.anchor.values, fragments, &local.held);
        local.held.fill(Held::Nothing);
        local.frames.send(Some(Lent::Trainer(trainer)));
        true
    }

    /// Lends a trainer that is at hand, so that the train lane can write its state. It comes back if
    /// its parameters are still needed here.
    pub(super) fn lend_for_save(&mut self) {
        if self.local.at_hand.is_none() {
            return;
        }
        while let Some(handed) = self.local.receive() {
            match handed {
                Handed::Trained(trainer) => self.come_home(trainer, true),
                Handed::Back(trainer) => self.come_home(trainer, false),
                _ => unreachable!("no other buffer travels"),
            }
        }
        let needed = |held: &Held| matches!(held, Held::Contribution | Held::KeepDelta);
        let local = &mut self.local;
        let needed = local.held.iter().any(needed);
        let at_hand = local.at_hand.as_mut();
        let at_hand = at_hand.filter(|at_hand| needed || at_hand.brought_a_cut());
        match at_hand.and_then(AtHand::borrow) {
            Some(trainer) => local.frames.send(Some(Lent::Borrowed(trainer))),
            None if self.lend_trainer() => {}
            None => self.local.frames.send(None),
        }
    }

    /// The cut is here and the next round's training begins: the values that the trainer starts
    /// from in the fragments that the cut's round exchanges. `None` where it continues as it is.
    fn begin_eagerly(&mut self, next: Round, peers: u16) -> Option<Frame> {
        let late = self.ahead.eagerly()?;
        let cut = Round(next.0.saturating_sub(1));
        let share = 1.0 / f32::from(peers);
        let ours = |index: &usize| {
            let fragment = FragmentId(*index as u16);
            let whole = self.local.of(fragment) == Held::Contribution;
            whole && self.holds_delta(fragment) && late.overlap.exchanges(cut, fragment)
        };
        let ours: Vec<usize> = (0..self.places.count()).filter(ours).collect();
        let (eager, delta) = (self.ahead.eager.as_mut()?, self.local.here()?);
        let mut values = eager.take_room().unwrap_or_else(|| vec![0.0; delta.len()]);
        let mut install = Vec::new();
        for index in ours {
            let range = self.places.ranges()[index].clone();
            let of = Values {
                delta: &delta[range.clone()],
                anchor: &self.anchor.values[range.clone()],
                start: &mut values[range.clone()],
            };
            eager.begin(index, range.clone(), share, of);
            let taken = Taken::WithDelta;
            install.push(Install { range, taken });
        }
        Some(Frame::new(values, install))
    }
}
