//! What all mixers share: anchor, local buffer, codecs and what was encoded by them.

use super::ahead::Ahead;
use super::anchor::Anchor;
use super::at_hand::AtHand;
use super::codecs::Codecs;
use super::common::Common;
use super::contributions::{Contributions, must_be_sane};
use super::ema::Ema;
use super::frame::{Frame, Handed};
use super::gates::GateKeeper;
use super::held::Held;
use super::host::Host;
use super::local::LocalBuffer;
use super::places::Places;
use crate::trainer::Trainer;
use murmurate_protocol::{Digest, FragmentId, Round, SliceId, TrainingRules, WorkError};

/// The core of the mix lane. A mixer borrows it for each order.
pub(super) struct MixCore {
    pub(super) places: Places,
    pub(super) anchor: Anchor,
    pub(super) local: LocalBuffer,
    pub(super) codecs: Codecs,
    pub(super) contributions: Contributions,
    pub(super) ahead: Ahead,
    pub(super) ema: Option<Ema>,
    /// Where the next forward pass begins while fragments are still exchanged.
    pub(super) keeper: Option<GateKeeper>,
    /// Whether a contribution is the difference between parameters and anchor.
    pub(super) sends_deltas: bool,
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
            Handed::Piece(fragment, values) => self.local.push_piece(fragment, values),
            Handed::Trained(trainer) => self.come_home(trainer, true),
            Handed::Back(trainer) => self.come_home(trainer, false),
        }
        self.take_cut_at_hand()
    }

    pub(super) fn come_home(&mut self, trainer: Box<dyn Trainer>, cut: bool) {
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
            eager.give_room(frame.room);
        }
        if self.sends_deltas {
            let anchor = self.anchor.values.iter();
            values.iter_mut().zip(anchor).for_each(|(v, a)| *v -= a);
        }
        self.local.put(values);
        self.local.held.fill(Held::Contribution);
        self.contributions.begin_round();
    }

    /// Makes a fragment's contribution of the piece that arrived during the backward pass, if one
    /// did.
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

    /// Encodes a shard of the contribution.
    pub(super) fn encode_contribution(
        &mut self,
        slice: SliceId,
        of: u16,
        common: Option<&Common>,
        out: &mut Vec<u8>,
    ) -> Result<(), WorkError> {
        self.take_piece(slice.fragment);
        let (codecs, places) = (&mut self.codecs, &self.places);
        let range = places.shard(slice.fragment, slice.shard, of);
        let trained = self
            .local
            .trained(slice.fragment, range.clone(), &self.anchor.values)?;
        if self.sends_deltas {
            must_be_sane(slice.fragment, trained, &self.anchor.values)?;
        }
        let values = self.anchor.outgoing(range, trained);
        self.contributions
            .encode(codecs, places, values, (slice, of), common, out)
    }

    /// A contribution was lost: it goes back into the residual.
    pub(super) fn give_back(&mut self, slice: SliceId, common: Option<&Common>, host: &dyn Host) {
        let (codecs, places) = (&mut self.codecs, &self.places);
        self.contributions
            .give_back(codecs, places, slice, common, host);
    }

    /// The round's exchange of a fragment was given up: the anchor stays, and the trainer continues
    /// from where it is.
    ///
    /// # Errors
    /// When the train lane has ended with the trainer.
    pub(super) fn void(
        &mut self,
        fragment: FragmentId,
        encoded: Vec<SliceId>,
        common: Option<&Common>,
        host: &dyn Host,
    ) -> Result<(), WorkError> {
        let (codecs, places) = (&mut self.codecs, &self.places);
        let pending = self.local.of(fragment);
        let contributed = pending == Held::Contribution;
        let anchor = &self.anchor.values[..];
        let values = contributed.then_some((&mut self.local, anchor));
        self.contributions
            .undo(codecs, places, encoded, values, (common, host))?;
        // An eager update counted on the result: the trainer gets back the part of the delta that it
        // left behind.
        let index = usize::from(fragment.0);
        let back = self.ahead.eager.as_mut().is_some_and(|eager| {
            let range = places.of(fragment);
            let local = &mut self.local.values()[range.clone()];
            eager.resolve(index, range, local, true)
        });
        self.local.set(
            fragment,
            match back {
                true => Held::Shift,
                false if contributed => Held::Nothing,
                // Nothing was trained in this round: the trainer has yet to take over what came before.
                false => pending,
            },
        );
        Ok(())
    }

    /// The anchor was replaced by another state: the trainer takes it over, and everything that
    /// belonged to the old one is dropped.
    pub(super) fn start_over(&mut self) {
        self.local.held.fill(Held::TakeAnchor);
        self.contributions.start_over();
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

    /// Hash of every fragment's anchor.
    pub(super) fn digests(&self) -> Vec<Digest> {
        let ids = (0..self.places.count()).map(|f| FragmentId(f as u16));
        ids.map(|f| self.digest(f)).collect()
    }
}
