//! The mix lane's side of what goes between the lanes: parameters lent to the trainer, and the cut that
//! comes back, whole or in pieces.

use super::frame::{Frame, Handed, Install, Taken};
use super::late::Late;
use super::mix_lane::{Local, MixLane};
use crate::correct::Companion;
use murmurate_protocol::{Contribution, FragmentId, Order};

impl MixLane {
    /// What the train lane begins an order of its own with.
    pub(super) fn hand_over(&mut self, order: &Order) {
        match *order {
            Order::Train {
                round,
                cut: false,
                peers,
                ..
            } => {
                // The beginning of a round whose result is not known.
                let ahead = self.begin_eagerly(round, peers);
                self.frames.send(ahead);
            }
            Order::Evaluate { .. } if self.goes_on => {
                // What peers agree on is looked at, and not what the trainer has made of it since. It gets its own
                // back, and keeps what it is to take over for its next round.
                let agreed = self.anchor[..self.parameters].to_vec();
                self.frames.send(Some(Frame::new(agreed, Vec::new())));
            }
            _ => self.lend(),
        }
    }

    /// Gives the train lane the buffer with what it is to take over, once a round.
    fn lend(&mut self) {
        // What is left of an earlier round was given up.
        self.collect();
        for (fragment, room) in std::mem::take(&mut self.pieces) {
            self.frames.recycle(fragment, room);
        }
        let nothing = |l: &Local| matches!(l, Local::Untouched | Local::Contribution);
        let anything = !self.local.iter().all(nothing);
        if self.buffer.is_none() && !anything {
            self.frames.send(None);
            return;
        }
        let len = self.anchor.len();
        let mut values = self.buffer.take().unwrap_or_else(|| vec![0.0; len]);
        let mut install = Vec::new();
        for (range, local) in self.fragments.iter().zip(&mut self.local) {
            let (piece, anchor) = (&mut values[range.clone()], &self.anchor[range.clone()]);
            if matches!(local, Local::TakeAnchor | Local::Blend) {
                piece.copy_from_slice(anchor);
            }
            let taken = match local {
                Local::TakeAnchor => Taken::Anchor,
                Local::KeepDelta => {
                    piece.iter_mut().zip(anchor).for_each(|(d, a)| *d += a);
                    Taken::WithDelta
                }
                Local::Shift => Taken::Shifted,
                Local::Blend => Taken::Blended(self.late.map_or(0.0, Late::own_share)),
                Local::Untouched | Local::Contribution => continue,
            };
            let range = range.clone();
            install.push(Install { range, taken });
        }
        self.local.fill(Local::Untouched);
        self.frames.send(Some(Frame::new(values, install)));
    }

    /// Takes in what the train lane has handed over.
    pub(super) fn collect(&mut self) {
        while let Some(handed) = self.frames.receive() {
            match handed {
                Handed::Cut(frame) => self.take_cut(frame),
                Handed::Empty(frame) => {
                    self.buffer = Some(frame.values);
                    self.local.fill(Local::Untouched);
                    self.mixed.fill(false);
                    self.encoded.clear();
                }
                Handed::Piece(fragment, values) => self.pieces.push((fragment, values)),
            }
        }
    }

    /// Makes the contribution of a fragment of what came of it under the backward pass, if it did.
    pub(super) fn take_piece(&mut self, fragment: FragmentId) {
        self.collect();
        let Some(at) = self.pieces.iter().position(|(f, _)| *f == fragment) else {
            return;
        };
        let (_, values) = self.pieces.swap_remove(at);
        let mut local = self.take_local();
        local[self.range(fragment)].copy_from_slice(&values);
        self.put_local(local);
        self.frames.recycle(fragment, values);
        self.local[usize::from(fragment.0)] = Local::Contribution;
    }

    /// Makes the contribution of this round's cut.
    fn take_cut(&mut self, frame: Frame) {
        let mut values = frame.values;
        if let Some(eager) = &mut self.eager {
            eager.give_room(frame.room);
        }
        if self.contribution == Contribution::Delta && self.exchange.moves_the_anchor() {
            values
                .iter_mut()
                .zip(&self.anchor)
                .for_each(|(v, a)| *v -= a);
        }
        if let Some(replicas) = &self.replicas {
            for (index, range) in self.fragments.iter().enumerate() {
                let fragment = FragmentId(index as u16);
                if range.start >= self.parameters {
                    break;
                }
                replicas.correct(fragment, &mut values[range.clone()]);
            }
        }
        if let Companion::Anchors { .. } = self.companion {
            values[self.parameters..].copy_from_slice(&self.anchor[self.parameters..]);
            self.landed.fill(false);
        }
        self.buffer = Some(values);
        self.local.fill(Local::Contribution);
        self.mixed.fill(false);
        self.encoded.clear();
    }
}
