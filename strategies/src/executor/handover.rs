//! What the mix lane gives to the train lane before an order: the buffer with the values to take
//! over.

use super::eager::Values;
use super::frame::{Frame, Install, Taken};
use super::local::Held;
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
                self.local.frames.send(ahead);
            }
            Order::Evaluate { .. } if self.ahead.trains_ahead => {
                // The agreed anchor is evaluated, not the trainer's progress past it. The trainer gets
                // its parameters back afterwards; what it has to take over waits for the next round.
                let agreed = self.anchor.parameters().to_vec();
                let frame = Frame::new(agreed, Vec::new());
                self.local.frames.send(Some(frame));
            }
            _ => self.lend(),
        }
    }

    /// Lends the train lane the buffer with what it has to take over, once a round.
    fn lend(&mut self) {
        self.local.drop_pieces();
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
        self.local.frames.send(Some(frame));
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
