//! The order in which a peer reads passages: shuffled passes over all passages, of which it takes its own. And its
//! place in that order, as checkpoints keep it.

use crate::data::Dealt;
use crate::data::source::Passage;
use crate::rng;
use murmurate_protocol::Participants;
use std::ops::Range;

/// The passages that are one peer's.
#[derive(Debug)]
pub(super) enum Own {
    /// Always the same ones.
    Fixed(Range<usize>),
    /// Those that it is dealt among the participants.
    Dealt(Box<Dealt>),
}

/// Passages whose windows are shuffled together.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Leg {
    /// Number of the pass.
    pub(super) pass: u64,
    /// How far in the order of this pass the leg leads.
    pub(super) end: u64,
    /// Its passages, ascending.
    pub(super) passages: Vec<u32>,
}

/// Shuffled passes. All peers that divide the data have the same order of all passages, and each skips
/// those of the others. So when the participants change, the passages before a peer's place have
/// been read by some peer, and those after it have not.
#[derive(Debug)]
pub(super) struct Course {
    own: Own,
    seed: u64,
    /// Bytes of each passage.
    bytes: Vec<u64>,
    /// Bytes after which a leg ends.
    leg_bytes: u64,
    pass: u64,
    order: Vec<u32>,
}

impl Course {
    /// # Panics
    /// If there are no passages.
    pub(super) fn new(own: Own, seed: u64, passages: &[Passage], leg_bytes: u64) -> Self {
        assert!(!passages.is_empty(), "there is nothing to read");
        let mut course = Self {
            own,
            seed,
            bytes: passages.iter().map(|passage| passage.bytes).collect(),
            leg_bytes,
            pass: 0,
            order: Vec::new(),
        };
        course.shuffle(0);
        course
    }

    /// Number of all peers' passages.
    pub(super) fn passages(&self) -> usize {
        self.bytes.len()
    }

    /// Takes this peer's part among these participants.
    pub(super) fn deal(&mut self, participants: &Participants) {
        if let Own::Dealt(dealt) = &mut self.own {
            dealt.deal(participants);
        }
    }

    /// The leg that begins at this place of a pass. After the last place, that of the next pass.
    pub(super) fn leg(&mut self, mut pass: u64, mut at: u64) -> Leg {
        loop {
            self.shuffle(pass);
            let (mut passages, mut bytes) = (Vec::new(), 0);
            while bytes < self.leg_bytes && at < self.order.len() as u64 {
                let passage = self.order[at as usize];
                if self.is_own(passage) {
                    passages.push(passage);
                    bytes += self.bytes[passage as usize];
                }
                at += 1;
            }
            if !passages.is_empty() {
                passages.sort_unstable();
                let end = at;
                return Leg {
                    pass,
                    end,
                    passages,
                };
            }
            // Every peer has a passage, so the next pass or the one after it has a leg.
            (pass, at) = (pass + 1, 0);
        }
    }

    /// The passage of a block, as a leg: every epoch has the order of the pass with its number.
    pub(super) fn passage_of(&mut self, block: u64) -> Leg {
        let all = self.bytes.len() as u64;
        let (pass, place) = (block / all, block % all);
        self.shuffle(pass);
        Leg {
            pass,
            end: place + 1,
            passages: vec![self.order[place as usize]],
        }
    }

    fn is_own(&self, passage: u32) -> bool {
        match &self.own {
            Own::Fixed(range) => range.contains(&(passage as usize)),
            Own::Dealt(dealt) => dealt.has(passage),
        }
    }

    fn shuffle(&mut self, pass: u64) {
        if pass != self.pass || self.order.is_empty() {
            let mut rng = rng::stream(self.seed, rng::PASSES, pass);
            self.order = rng::permutation(self.bytes.len(), &mut rng);
            self.pass = pass;
        }
    }
}

/// The place of the next window. It names the passages of its leg, so that a leg that was begun is
/// finished also after the data was dealt again.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Position {
    /// The leg; it has no passages before the first one.
    pub(super) leg: Leg,
    /// The next window of the leg's shuffled windows.
    pub(super) window: u64,
}

impl Position {
    /// Before the first leg of a pass.
    pub(super) const fn start_of(pass: u64) -> Self {
        Self {
            leg: Leg {
                pass,
                end: 0,
                passages: Vec::new(),
            },
            window: 0,
        }
    }

    /// Its bytes, for data of this many passages: integers with the least byte first.
    ///
    /// ```text
    /// u64 passages of the data   u64 pass   u64 end of the leg   u64 window   u32 each passage
    /// ```
    pub(super) fn to_bytes(&self, of: usize) -> Vec<u8> {
        let Leg {
            pass,
            end,
            passages,
        } = &self.leg;
        let mut bytes = Vec::with_capacity(32 + 4 * passages.len());
        for number in [of as u64, *pass, *end, self.window] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(passages.iter().flat_map(|passage| passage.to_le_bytes()));
        bytes
    }

    /// The position of [`Position::to_bytes`]. If the data has another number of passages, files were
    /// added or removed: then it is the start of the same pass. `None` if the bytes are not a position.
    pub(super) fn from_bytes(bytes: &[u8], of: usize) -> Option<Self> {
        let (numbers, rest) = bytes.split_at_checked(32)?;
        let (numbers, []) = numbers.as_chunks::<8>() else {
            return None;
        };
        let (passages, []) = rest.as_chunks::<4>() else {
            return None;
        };
        let numbers: Vec<u64> = numbers.iter().map(|n| u64::from_le_bytes(*n)).collect();
        let passages: Vec<u32> = passages.iter().map(|n| u32::from_le_bytes(*n)).collect();
        let (pass, end, window) = (numbers[1], numbers[2], numbers[3]);
        if numbers[0] != of as u64 {
            return Some(Self::start_of(pass));
        }
        let fits = end <= of as u64 && passages.iter().all(|&passage| (passage as usize) < of);
        let leg = Leg {
            pass,
            end,
            passages,
        };
        fits.then_some(Self { leg, window })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_was_written() {
        let leg = Leg {
            pass: 3,
            end: 7,
            passages: vec![1, 4, 6],
        };
        let position = Position { leg, window: 99 };
        let bytes = position.to_bytes(9);
        assert_eq!(Position::from_bytes(&bytes, 9), Some(position));
        assert_eq!(
            Position::from_bytes(&bytes, 10),
            Some(Position::start_of(3))
        );
        assert_eq!(Position::from_bytes(&bytes[..43], 9), None);
        assert_eq!(Position::from_bytes(&bytes[..31], 9), None);
        let start = Position::start_of(0);
        assert_eq!(Position::from_bytes(&start.to_bytes(2), 2), Some(start));
    }
}
