//! The parameters that all agree on, by their hashes.

use crate::sorted::SortedMap;
use crate::{Digest, FragmentId, Round};

/// Hashes of the parameters, fragment by fragment.
#[derive(Debug, Default)]
pub(crate) struct Anchor {
    digests: Vec<Digest>,
    /// The fragments that this round has changed, with their hashes before that.
    changed: (Round, SortedMap<FragmentId, Digest>),
}

impl Anchor {
    /// Parameters that no round has changed yet.
    pub(crate) fn new(digests: Vec<Digest>) -> Self {
        Self {
            digests,
            ..Self::default()
        }
    }

    pub(crate) fn apply(&mut self, round: Round, fragment: FragmentId, digest: Digest) {
        let Some(slot) = self.digests.get_mut(usize::from(fragment.0)) else {
            return;
        };
        let before = std::mem::replace(slot, digest);
        if self.changed.0 != round {
            self.changed = (round, SortedMap::new());
        }
        if before != digest {
            self.changed.1.insert(fragment, before);
        }
    }

    pub(crate) fn has_changed(&self, round: Round, fragment: FragmentId) -> bool {
        self.changed.0 == round && self.changed.1.contains_key(&fragment)
    }

    /// One hash over all fragments.
    pub(crate) fn digest(&self) -> Digest {
        Digest::of_all(&self.digests)
    }

    /// The same with what this round has changed as it was. Where the round has changed a fragment twice, no
    /// peer has had such parameters, or those between the two changes.
    pub(crate) fn before(&self, round: Round) -> Digest {
        let mut digests = self.digests.clone();
        for (fragment, before) in self.changed.1.iter().filter(|_| self.changed.0 == round) {
            digests[usize::from(fragment.0)] = *before;
        }
        Digest::of_all(&digests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_that_is_applied_in_part_still_tells_how_it_began() {
        let [a, b, c] = [b"a", b"b", b"c"].map(|bytes| Digest::of(bytes));
        let mut anchor = Anchor::new(vec![a, b]);
        let (first, round) = (anchor.digest(), Round(3));
        assert_eq!(anchor.before(round), first);
        anchor.apply(round, FragmentId(1), c);
        let second = anchor.digest();
        assert!(second != first && anchor.before(round) == first);
        assert!(anchor.has_changed(round, FragmentId(1)));
        // Void in that round.
        anchor.apply(round, FragmentId(0), a);
        anchor.apply(round, FragmentId(1), c);
        assert!(!anchor.has_changed(round, FragmentId(0)));
        assert_eq!(anchor.before(round), first);
        // The same fragment again, as in a second group of the round, which began with what the first had made.
        anchor.apply(round, FragmentId(1), a);
        assert_eq!(anchor.before(round), second);
        // The next round begins with what is here.
        assert_eq!(anchor.before(round.next()), anchor.digest());
        anchor.apply(round.next(), FragmentId(0), c);
        assert!(!anchor.has_changed(round, FragmentId(1)));
    }
}
