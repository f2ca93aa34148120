//! The part that all mixers share: anchor, local buffer, codecs and this peer's encoded contributions.

use super::anchor::{Anchor, Ema};
use super::codecs::Codecs;
use super::contributions::{Contributions, must_be_sane};
use super::frame::{Frame, Handed, Held, Lent};
use super::gates::GateKeeper;
use super::host::{Host, WorkResult};
use super::late::{Ahead, Start};
use super::local::{AtHand, LocalBuffer, stand_on};
use super::masks::Masks;
use super::places::Places;
use crate::aggregate::{Noised, RANGE};
use crate::trainer::Trainer;
use murmurate_protocol::{Digest, FragmentId, Order, PeerId, Round, SliceId, TrainingRules};

/// The core of the mix lane. A mixer borrows it for each order.
pub(super) struct MixCore {
    pub(super) places: Places,
    pub(super) anchor: Anchor,
    pub(super) local: LocalBuffer,
    pub(super) codecs: Codecs,
    pub(super) contributions: Contributions,
    /// Fragments whose mix of this round with neighbours' parameters is in the anchor.
    pub(super) mixed: Vec<bool>,
    pub(super) ahead: Ahead,
    pub(super) ema: Option<Ema>,
    /// Where the next forward pass begins while fragments are still exchanged.
    pub(super) keeper: Option<GateKeeper>,
    /// Set where a contribution is the difference between parameters and anchor.
    pub(super) sends_deltas: bool,
    /// Makes the round's delta private, where the run promises that.
    pub(super) noised: Option<Noised>,
    /// Masks contributions, where others may read their sums alone.
    pub(super) masks: Option<Masks>,
    /// The note in the bytes that were applied last.
    pub(super) note: Vec<u8>,
}

impl MixCore {
    /// Processes what the train lane has sent. Returns whether that was a whole cut.
    pub(super) fn take_in(&mut self, handed: Handed) -> bool {
        match handed {
            Handed::Cut(frame) => {
                self.take_cut(frame);
                return true;
            }
            Handed::Empty(frame) => {
                self.local.put(frame.values);
                self.local.held.fill(Held::Nothing);
                self.contributions.begin_round();
            }
            Handed::Piece(fragment, values) => self.local.pieces.push((fragment, values)),
            Handed::Trainer { trainer, cut } => self.come_home(trainer, cut),
        }
        self.take_cut_at_hand()
    }

    fn come_home(&mut self, trainer: Box<dyn Trainer>, cut: bool) {
        let at_hand = self.local.at_hand.as_mut();
        let at_hand = at_hand.expect("a trainer travels only where it is at hand");
        at_hand.put(trainer, cut);
    }

    /// The round's cut has come with the trainer. Returns whether it had.
    pub(super) fn take_cut_at_hand(&mut self) -> bool {
        let cut = self.local.at_hand.as_mut().is_some_and(AtHand::take_cut);
        if cut {
            self.local.held.fill(Held::Contribution);
            self.contributions.begin_round();
        }
        cut
    }

    /// Makes the contribution of this round's cut.
    fn take_cut(&mut self, frame: Frame) {
        let mut values = frame.values;
        if let Some(eager) = &mut self.ahead.eager {
            eager.room = frame.room.or(eager.room.take());
        }
        if self.sends_deltas {
            let anchor = self.anchor.values.iter();
            values.iter_mut().zip(anchor).for_each(|(v, a)| *v -= a);
        }
        if let Some(noised) = &mut self.noised {
            noised.apply(&mut values);
            if self.masks.is_some() {
                // What follows from noised values alone is as private, and one beyond the range would leave the
                // whole group without a result.
                values
                    .iter_mut()
                    .for_each(|value| *value = value.clamp(-RANGE, RANGE));
            }
        }
        self.local.put(values);
        self.local.held.fill(Held::Contribution);
        self.contributions.begin_round();
        self.mixed.fill(false);
    }

    /// Makes a fragment's contribution of the piece that arrived during the backward pass, if one did.
    fn take_piece(&mut self, fragment: FragmentId) {
        if let Some(values) = self.local.take_piece(fragment) {
            let range = self.places.of(fragment);
            self.local.values()[range].copy_from_slice(&values);
            self.local.frames.recycle(fragment, values);
            self.local.set(fragment, Held::Contribution);
        }
    }

    /// What the owner of the run has directed of a round, and its members have chosen.
    pub(super) fn direct(&mut self, round: Round, rules: TrainingRules) {
        self.anchor.direct(rules);
        self.codecs.direct(round, &rules);
    }

    /// Encodes a shard of the contribution: masked, where it is for the sum of these members alone.
    ///
    /// # Panics
    /// If it would leave as it is although the run masks contributions.
    pub(super) fn encode_contribution(
        &mut self,
        slice: SliceId,
        of: u16,
        members: Option<&[(PeerId, f64)]>,
        out: &mut Vec<u8>,
    ) -> WorkResult {
        self.take_piece(slice.fragment);
        let (codecs, places) = (&mut self.codecs, &self.places);
        let range = places.shard(slice.fragment, slice.shard, of);
        let trained = self
            .local
            .trained(slice.fragment, range.clone(), &self.anchor.values)?;
        if self.sends_deltas {
            let sane = must_be_sane(slice.fragment, trained, &self.anchor.values);
            // A large noise is no sign of diverged training.
            sane.map_err(|error| match &self.noised {
                Some(noised) => noised.blamed(error),
                None => error,
            })?;
        }
        let start = range.start;
        let values = self.anchor.outgoing(range, trained);
        match (&mut self.masks, members) {
            (None, None) => self
                .contributions
                .encode(codecs, places, values, slice, of, out),
            (Some(masks), Some(members)) => {
                let masked = masks.encode(values.0, &slice, of, members, out);
                masked.map_err(|error| {
                    let named = places.must_be_finite(start, values.0);
                    named.err().unwrap_or(error)
                })?;
                self.contributions.note(slice, of);
                Ok(())
            }
            _ => panic!("contributions are masked where the plan says so, and only there"),
        }
    }

    /// Encodes values of a whole fragment, which are no contribution of the round.
    pub(super) fn encode_values(&mut self, slice: SliceId, values: &[f32], out: &mut Vec<u8>) {
        let range = self.places.of(slice.fragment);
        let state = &mut self.contributions.state;
        let mut context = state.context(&self.codecs.plan, &slice, 1, &range);
        let codec = self.codecs.of_mut(&slice);
        codec.encode(values, &mut context, out);
    }

    /// A contribution was lost: it goes back into the residual.
    pub(super) fn give_back(&mut self, slice: SliceId, host: &dyn Host) {
        let (codecs, places) = (&mut self.codecs, &self.places);
        self.contributions.give_back(codecs, places, slice, host);
    }

    /// The round's exchange of a fragment was given up: the anchor stays, and the trainer continues
    /// from where it is.
    ///
    /// # Errors
    /// When the train lane has ended with the trainer.
    pub(super) fn void(&mut self, fragment: FragmentId, host: &dyn Host) -> WorkResult {
        let encoded = self.contributions.encoded_of(fragment);
        let (codecs, places) = (&mut self.codecs, &self.places);
        let pending = self.local.of(fragment);
        let contributed = pending == Held::Contribution;
        let anchor = &self.anchor.values[..];
        let values = contributed.then_some((&mut self.local, anchor));
        self.contributions
            .undo(codecs, places, encoded, values, host)?;
        // An eager update counted on the result: the trainer gets back the part of the delta that it left behind.
        let index = usize::from(fragment.0);
        let back = self.ahead.eager.as_mut().is_some_and(|eager| {
            let range = places.of(fragment);
            let local = &mut self.local.values()[range.clone()];
            eager.resolve(index, range, local, true)
        });
        let held = match pending {
            _ if back => Held::Shift,
            Held::Contribution => Held::Nothing,
            // Nothing was trained in this round: the trainer has yet to take over what came before.
            earlier => earlier,
        };
        self.local.set(fragment, held);
        Ok(())
    }

    /// The anchor was replaced by another state: the trainer takes it over, and everything that
    /// belonged to the old one is dropped.
    pub(super) fn start_over(&mut self) {
        self.local.held.fill(Held::TakeAnchor);
        self.contributions.start_over();
        self.mixed.fill(false);
        if let Some(ema) = &mut self.ema {
            ema.start_over(&self.anchor.values);
        }
        if let Some(eager) = &mut self.ahead.eager {
            eager.start_over();
        }
    }

    /// Hash of a fragment's anchor.
    pub(super) fn digest(&self, fragment: FragmentId) -> Digest {
        let range = self.places.of(fragment);
        Digest::of(bytemuck::cast_slice(&self.anchor.values[range]))
    }

    pub(super) fn digests(&self) -> Vec<Digest> {
        let ids = (0..self.places.count()).map(|f| FragmentId(f as u16));
        ids.map(|f| self.digest(f)).collect()
    }

    /// Sends the train lane the values or the trainer that an order begins with, if it needs any.
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

    /// A forward pass begins: passes on the decided fragments, and each other one once it is decided.
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

    /// Lends the train lane the trainer at hand, or the buffer with the values to take over, once a round.
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
            match held {
                Held::TakeAnchor | Held::Blend => piece.copy_from_slice(anchor),
                Held::KeepDelta => piece.iter_mut().zip(anchor).for_each(|(d, a)| *d += a),
                Held::Shift => {}
                Held::Nothing | Held::Contribution => continue,
            }
            install.push((range.clone(), *held));
        }
        self.local.held.fill(Held::Nothing);
        let mut frame = Frame::new(values, install);
        frame.own_share = self.ahead.own_share();
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
        let borrowed = false;
        local.frames.send(Some(Lent::Trainer { trainer, borrowed }));
        true
    }

    /// Lends a trainer that is at hand, so that the train lane can write its state. It comes back if
    /// its parameters are still needed here.
    pub(super) fn lend_for_save(&mut self) {
        if self.local.at_hand.is_none() {
            return;
        }
        while let Some(handed) = self.local.frames.receive() {
            match handed {
                Handed::Trainer { trainer, cut } => self.come_home(trainer, cut),
                _ => unreachable!("no other buffer travels"),
            }
        }
        let needed = |held: &Held| matches!(held, Held::Contribution | Held::KeepDelta);
        let local = &mut self.local;
        let needed = local.held.iter().any(needed);
        let at_hand = local.at_hand.as_mut();
        let at_hand = at_hand.filter(|at_hand| needed || at_hand.cut_waits);
        match at_hand.and_then(AtHand::borrow) {
            Some(trainer) => {
                let borrowed = true;
                local.frames.send(Some(Lent::Trainer { trainer, borrowed }));
            }
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
        let mut values = eager.room.take().unwrap_or_else(|| vec![0.0; delta.len()]);
        let mut install = Vec::new();
        for index in ours {
            let range = self.places.ranges()[index].clone();
            let of = Start {
                delta: &delta[range.clone()],
                anchor: &self.anchor.values[range.clone()],
                start: &mut values[range.clone()],
            };
            eager.begin(index, range.clone(), share, of);
            install.push((range, Held::KeepDelta));
        }
        Some(Frame::new(values, install))
    }
}
