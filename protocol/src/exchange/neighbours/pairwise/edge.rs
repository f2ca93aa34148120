//! One neighbour and one fragment: which session the two are in, which of its exchanges is under
//! way, and which slices of either end are still on their way.
//!
//! Both ends count in the same way. A session begins with exchange zero whenever the two know
//! nothing of each other: at first, after a link was down, after a gap. Of two sessions the one
//! with the higher number wins. Within a session exchange k consists of one slice from either end.
//! An end that has pushed its own and holds the other's mixes the two: what one end gains the other
//! loses, whenever each of them gets to it. Exchange k + 1 needs k at this end, so at most two
//! slices of an end are under way and at most two of the other wait.

use crate::{FragmentId, OrderId, PeerId, SliceId, SliceMeta};

/// How far a peer is with one neighbour and fragment. Where both ends are in the same session and
/// have finished as many exchanges, their weights are the same to the bit; else one end has
/// finished exactly one more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// The neighbour.
    pub peer: PeerId,
    /// The fragment.
    pub fragment: FragmentId,
    /// Number of the session.
    pub session: u32,
    /// Exchanges finished in it.
    pub exchanges: u32,
    /// Sum of the weights that they were mixed with.
    pub weight: f64,
}

/// How far this end's half of an exchange is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Half {
    /// Not begun.
    #[default]
    Idle,
    /// Being encoded.
    Encoding(OrderId),
    /// Pushed, under this name and with this share.
    Pushed(SliceId, f64),
}

/// A slice of the other end that waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Waiting {
    pub(super) slice: SliceId,
    pub(super) share: f64,
    pub(super) number: u32,
}

/// A slice of this end whose arrival is not known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sent {
    pub(super) slice: SliceId,
    pub(super) meta: SliceMeta,
    pub(super) number: u32,
    /// Set while a push of it is under way; else it is due again.
    pub(super) under_way: bool,
    /// How often it was pushed again since the round began.
    pub(super) again: u8,
}

/// What an arrived slice means to this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// It waits for its exchange.
    Kept,
    /// It is here already.
    Repeated,
    /// It belongs to a session that is over, or to an exchange that is done.
    Past,
    /// This end lacks its session, or an earlier half that it builds on.
    Gap,
}

/// One neighbour and one fragment.
#[derive(Clone, Debug, Default)]
pub(super) struct Edge {
    /// Number of the session, zero before the first.
    pub(super) session: u32,
    /// The highest session that the other end was heard in: the next one's number is above it.
    pub(super) above: u32,
    /// Set while a session is open.
    pub(super) open: bool,
    /// The exchange under way.
    pub(super) number: u32,
    pub(super) half: Half,
    /// Slices of the other end that wait, at most one of each number.
    pub(super) theirs: Vec<Waiting>,
    /// Own slices whose arrival is not known.
    pub(super) unheard: Vec<Sent>,
    /// Set while a mix under way reads this exchange.
    pub(super) mixing: bool,
    /// The link is gone: the exchange that is complete is mixed, then the session ends.
    pub(super) closing: bool,
    /// Sum of the weights mixed in this session.
    pub(super) mixed: f64,
}

impl Edge {
    /// Begins a session; gives all slices of the one before, of both ends.
    pub(super) fn begin(&mut self, session: u32) -> Vec<SliceId> {
        let dropped = self.drop_all();
        // `above` outlives sessions: the number of the next one must be above all that either end
        // has used, or the other end would take it for one that is over.
        *self = Self {
            session,
            above: self.above,
            open: true,
            ..Self::default()
        };
        dropped
    }

    /// Ends the session; gives its slices, of both ends.
    pub(super) fn end(&mut self) -> Vec<SliceId> {
        let session = self.session;
        let dropped = self.begin(session);
        self.open = false;
        dropped
    }

    fn drop_all(&mut self) -> Vec<SliceId> {
        let theirs = self.theirs.drain(..).map(|w| w.slice);
        let own = self.unheard.drain(..).map(|s| s.slice);
        let mut all: Vec<SliceId> = theirs.chain(own).collect();
        if let Half::Pushed(slice, _) = self.half {
            all.push(slice);
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Takes a slice of the other end in.
    pub(super) fn take(&mut self, session: u32, waiting: Waiting) -> Meaning {
        if session < self.session || (session == self.session && (!self.open || self.closing)) {
            return Meaning::Past;
        }
        // The first half of a later session opens it before it comes here. A later half of it shows
        // that this end has missed that one.
        if session > self.session {
            return Meaning::Gap;
        }
        if waiting.number < self.number {
            return Meaning::Past;
        }
        // The other end has finished exchange k only with this end's half of k, so it is at most
        // one exchange ahead.
        if waiting.number > self.number.saturating_add(1) {
            return Meaning::Gap;
        }
        if self.theirs.iter().any(|w| w.number == waiting.number) {
            return Meaning::Repeated;
        }
        self.theirs.push(waiting);
        Meaning::Kept
    }

    /// The other end's slice of the exchange under way.
    pub(super) fn awaited(&self) -> Option<&Waiting> {
        self.theirs.iter().find(|w| w.number == self.number)
    }

    /// Both halves of the exchange under way are here.
    pub(super) fn complete(&self) -> bool {
        matches!(self.half, Half::Pushed(..)) && self.awaited().is_some()
    }

    /// The current exchange is mixed. Returns the slices to release: the other end's, and this
    /// end's if its arrival is known. Otherwise this end may have to push its slice again.
    pub(super) fn advance(&mut self, weight: f64) -> Vec<SliceId> {
        self.mixing = false;
        self.mixed += weight;
        let mut free = Vec::new();
        let number = self.number;
        self.theirs.retain(|w| {
            let done = w.number == number;
            if done {
                free.push(w.slice);
            }
            !done
        });
        if let Half::Pushed(slice, _) = self.half
            && !self.unheard.iter().any(|s| s.slice == slice)
        {
            free.push(slice);
        }
        self.half = Half::Idle;
        self.number = number.saturating_add(1);
        free
    }

    /// Own slices have arrived; gives those that the exchange under way does not need.
    pub(super) fn heard(&mut self, arrived: impl Fn(&Sent) -> bool) -> Vec<SliceId> {
        let needed = match self.half {
            Half::Pushed(slice, _) => Some(slice),
            _ => None,
        };
        let mut free = Vec::new();
        self.unheard.retain(|sent| {
            let done = arrived(sent);
            if done && needed != Some(sent.slice) {
                free.push(sent.slice);
            }
            !done
        });
        free
    }

    /// Weight of a complete exchange: the smaller of the two shares, which both ends know.
    pub(super) fn weight(&self) -> f64 {
        match (self.half, self.awaited()) {
            (Half::Pushed(_, mine), Some(theirs)) => mine.min(theirs.share),
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tag;
    use crate::{FragmentId, Part, PeerId, Round};

    fn slice(round: u64, origin: u8) -> SliceId {
        SliceId {
            round: Round(round),
            fragment: FragmentId(0),
            shard: 0,
            part: Part::Contribution,
            origin: PeerId::from_bytes([origin; 32]),
            attempt: crate::Attempt(0),
        }
    }

    fn theirs(number: u32) -> Waiting {
        Waiting {
            slice: slice(u64::from(number), 2),
            share: 0.25,
            number,
        }
    }

    fn push(edge: &mut Edge, number: u32) {
        let name = slice(u64::from(number), 1);
        edge.half = Half::Pushed(name, 0.5);
        edge.unheard.push(Sent {
            slice: name,
            meta: SliceMeta {
                of: 1,
                bytes: 4,
                tag: Tag::Half {
                    session: 1,
                    exchange: number,
                    share: 0.5,
                },
            },
            number,
            under_way: true,
            again: 0,
        });
    }

    #[test]
    fn an_exchange_needs_both_halves_and_two_slices_may_wait() {
        let mut edge = Edge::default();
        edge.begin(1);
        assert_eq!(edge.take(1, theirs(0)), Meaning::Kept);
        assert_eq!(edge.take(1, theirs(0)), Meaning::Repeated);
        assert_eq!(edge.take(1, theirs(1)), Meaning::Kept);
        assert_eq!(edge.take(1, theirs(2)), Meaning::Gap);
        assert!(!edge.complete());
        push(&mut edge, 0);
        assert!(edge.complete());
        assert_eq!(edge.weight(), 0.25);
        // This end's slice is kept until its arrival is known.
        assert_eq!(edge.advance(0.25), [slice(0, 2)]);
        assert_eq!(edge.heard(|sent| sent.number < 1), [slice(0, 1)]);
        assert_eq!(edge.take(1, theirs(0)), Meaning::Past);
        push(&mut edge, 1);
        // Arrived, and still needed by the mix.
        assert!(edge.heard(|sent| sent.number == 1).is_empty());
        assert_eq!(edge.advance(0.25), [slice(1, 2), slice(1, 1)]);
        assert_eq!((edge.number, edge.mixed), (2, 0.5));
    }

    #[test]
    fn the_higher_session_wins_and_what_is_over_is_past() {
        let mut edge = Edge::default();
        edge.begin(3);
        push(&mut edge, 0);
        assert_eq!(edge.take(2, theirs(0)), Meaning::Past);
        assert_eq!(edge.take(4, theirs(5)), Meaning::Gap);
        assert_eq!(edge.take(3, theirs(1)), Meaning::Kept);
        assert_eq!(edge.end(), [slice(0, 1), slice(1, 2)]);
        assert_eq!(edge.take(3, theirs(0)), Meaning::Past);
        assert_eq!(edge.session, 3);
    }
}
