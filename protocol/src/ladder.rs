//! The codec of a round, chosen by how long exchanges hold training up ([`Ladder`], [`Chosen`]).
//!
//! Each member says with its contribution for how many of its inner steps an exchange holds its training up.
//! The weighted median w of those in a result is agreed on, as losses are ([`Losses`](crate::Losses)), and an
//! exchange ends for all when its slowest line has carried its slices: so w is the wait for the slowest line.
//! Every few rounds the codec follows from w, from nothing else, and all members take the same.
//!
//! **The rule.** A ladder names codecs, the most exact one first; b_j is what one of them sends for 1024
//! values. Training has its share s of the time while waits are at most the *room* `R = H (1 - s) / s`, where H
//! is the number of inner steps. The wait w_j under a codec that was tried on this line is the one measured then.
//! One that was not tried may be as good as it can be: of `a + k b_j`, a latency and a time for each byte, it is
//! known that `w_j >= w b_j / b` with fewer bytes, and `w_j >= w` with more. A trial measures it.
//!
//! - A wait above the room leads to the most exact codec whose wait may fit. Where none fits, it leads to the
//!   last one, and then to the most exact one whose wait is at most twice the least: more is lost only where it
//!   halves the wait.
//! - A wait that leaves room leads one codec up, if the wait there may be at most two thirds of what fits. Up is
//!   one at a time, because a wrong guess makes the next rounds slow; down is at once.
//! - A wait that has changed by a quarter under one codec is for another line: all earlier waits are forgotten.
//!
//! A wait on a line stays as it was first measured, and between the limits for down and up lies a third. So noise of a
//! tenth leads to no more changes than it takes to try each codec on the way down and up once. Where the wait is
//! latency, fewer bytes do not shorten it, and the run goes back up.
//!
//! **Source.** The cost of a message is that of Hockney 1994, "The communication challenge for MPP: Intel Paragon
//! and Meiko CS-2" (Parallel Computing 20): a latency, and a time for each byte. To go by the best that an untried
//! choice can be is the optimism of Lai and Robbins 1985, "Asymptotically efficient adaptive allocation rules". The
//! room is the condition that [`Pace::Measured`](crate::Pace::Measured) solves for H, solved for the bytes.

use crate::limits::RUNGS_MAX;
use crate::{BytesBound, Loss, Round};
use serde::{Deserialize, Serialize};

/// A codec is left for a more exact one if the wait there is at most this part of what fits.
const ROOM_ABOVE: f64 = 2.0 / 3.0;

/// Where no codec fits, one is good enough whose wait is at most this multiple of the least.
const HALVES: f64 = 2.0;

/// A wait that has changed by this factor under one codec is one for another line.
const ANOTHER_LINE: f64 = 1.25;

/// One codec of a ladder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rung {
    /// The byte that opens its encodings.
    pub tag: u8,
    /// The share of values that it keeps, in billionths; zero for a codec that keeps all.
    pub per_billion: u32,
    /// What a round sends for 1024 values, in bytes, as far as the choice of the codec changes it.
    pub per_1024: u64,
    /// Bound of an encoded contribution.
    pub contribution: BytesBound,
    /// Bound of an encoded aggregate.
    pub aggregate: BytesBound,
}

/// Codecs of a run from which its rounds choose by measured waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ladder {
    /// Rounds of one interval. The codec only changes between two.
    pub every: u64,
    /// The share of the time that training should have, in thousandths, from 1 to 999.
    pub share: u16,
    /// The codecs, the configured one first; those behind the last one are empty.
    pub rungs: [Rung; RUNGS_MAX],
}

impl Ladder {
    /// Bytes of the encoding of a plan without one.
    pub(crate) const NONE_BYTES: usize = 1;

    /// A ladder of these codecs; `None` if they are more than [`RUNGS_MAX`].
    pub fn new(every: u64, share: u16, codecs: &[Rung]) -> Option<Self> {
        let mut rungs = [Rung::default(); RUNGS_MAX];
        rungs.get_mut(..codecs.len())?.copy_from_slice(codecs);
        Some(Self {
            every,
            share,
            rungs,
        })
    }

    /// The codecs, the most exact one first.
    pub fn codecs(&self) -> &[Rung] {
        let all = self.rungs.iter().position(|rung| rung.per_1024 == 0);
        &self.rungs[..all.unwrap_or(RUNGS_MAX)]
    }

    /// Returns `true` if its numbers make sense: at least two codecs, of which each sends less than the one before.
    pub(crate) fn fits(&self) -> bool {
        let codecs = self.codecs();
        let falls = codecs.is_sorted_by(|a, b| a.per_1024 > b.per_1024);
        let bounds = |of: &Rung| (of.contribution.per_1024, of.aggregate.per_1024);
        let first = codecs.first().map_or((0, 0), bounds);
        let within = |of: &Rung| bounds(of).0 <= first.0 && bounds(of).1 <= first.1;
        let numbers = self.every > 0 && 0 < self.share && self.share < 1000;
        let rest = self.rungs[codecs.len()..].iter();
        let empty = rest.copied().all(|rung| rung == Rung::default());
        numbers && codecs.len() > 1 && falls && empty && codecs.iter().all(within)
    }

    /// The longest wait that leaves training its share, in inner steps, of a round of `steps`.
    fn room(&self, steps: u32) -> f64 {
        let share = f64::from(self.share.clamp(1, 999));
        f64::from(steps) * (1000.0 - share) / share
    }
}

/// A change of the codec, and why.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recoding {
    /// The codec from now on.
    pub codec: Rung,
    /// The one before.
    pub before: Rung,
    /// For how many inner steps an exchange has held training up under that one, as the members agree.
    pub wait: f64,
    /// For how many it may, so that training has its share of the time.
    pub room: f64,
}

/// What the peers agree on about the codec of their rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Chosen {
    /// The place of the codec in the ladder.
    rung: u8,
    /// The wait in the last result under this codec.
    last: Option<Loss>,
    /// The waits under the codecs that were tried on this line, by their places.
    tried: [Option<Loss>; RUNGS_MAX],
}

impl Chosen {
    /// The wait in the last result under the present codec.
    pub const fn last(&self) -> Option<Loss> {
        self.last
    }

    /// The place of the codec in the ladder. A state of a liar leads no one out of it.
    pub fn rung(&self, ladder: &Ladder) -> u8 {
        let last = ladder.codecs().len().saturating_sub(1);
        self.rung.min(last as u8)
    }

    /// The codec.
    pub fn codec<'a>(&self, ladder: &'a Ladder) -> &'a Rung {
        &ladder.rungs[usize::from(self.rung(ladder))]
    }

    /// A round ended with this wait; with none, it had no result, or no member had measured.
    pub(crate) fn note(&mut self, wait: Option<Loss>) {
        self.last = wait.or(self.last);
    }

    /// `opened` begins. Where an interval begins with it, its codec follows from the last wait and the most
    /// inner steps that its rounds may have. Returns a change.
    pub(crate) fn open(&mut self, opened: Round, ladder: &Ladder, most: u32) -> Option<Recoding> {
        let begins = opened.0.is_multiple_of(ladder.every.max(1));
        let wait = self.last.filter(|_| begins)?;
        let (before, room) = (*self.codec(ladder), ladder.room(most));
        self.compare(usize::from(self.rung(ladder)), wait);
        let next = self.next(ladder, wait.value(), room);
        if next == self.rung(ladder) {
            return None;
        }
        // What was measured so far says nothing of rounds with this codec.
        (self.rung, self.last) = (next, None);
        Some(Recoding {
            codec: *self.codec(ladder),
            before,
            wait: wait.value(),
            room,
        })
    }

    /// Notes the wait of a codec that is tried the first time on this line. Where it shows that the line is
    /// another one, forgets the waits of all.
    fn compare(&mut self, now: usize, wait: Loss) {
        let tried = self.tried[now];
        let same = |tried: Loss| {
            let (one, two) = (wait.value(), tried.value());
            one.max(two) <= ANOTHER_LINE * one.min(two)
        };
        if !tried.is_some_and(same) {
            if tried.is_some() {
                self.tried = [None; RUNGS_MAX];
            }
            self.tried[now] = Some(wait);
        }
    }

    /// The place of the codec for rounds with this wait under the present one.
    fn next(&self, ladder: &Ladder, wait: f64, room: f64) -> u8 {
        let (now, last) = (
            usize::from(self.rung(ladder)),
            ladder.codecs().len().saturating_sub(1),
        );
        let bytes = |at: usize| ladder.rungs[at].per_1024 as f64;
        let waits = |at: usize| match self.tried[at] {
            _ if at == now => wait,
            Some(tried) => tried.value(),
            // The least that it can be.
            None => wait * (bytes(at) / bytes(now)).min(1.0),
        };
        let least = (0..=last).map(waits).fold(f64::INFINITY, f64::min);
        // What fits by the wait that is the least, or by one that is somewhat below it.
        let fits = |part: f64| {
            if part * least <= room {
                room
            } else {
                HALVES * least
            }
        };
        if least > room && self.tried[last].is_none() {
            return last as u8;
        }
        if wait > fits(1.0) {
            let below = (now + 1..=last).find(|at| waits(*at) <= fits(1.0));
            return below.unwrap_or(now) as u8;
        }
        let above = now.checked_sub(1);
        let above = above.filter(|at| waits(*at) <= ROOM_ABOVE * fits(ROOM_ABOVE));
        above.unwrap_or(now) as u8
    }
}

#[cfg(test)]
mod tests;
