//! Which passages a peer reads, and in which order: shuffled passes over all passages, of which it
//! takes its own.

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
