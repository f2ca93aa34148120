//! Signatures as bytes. Hosts make and check them; a peer only carries them.

use crate::id::words;
use crate::limits::{PROOF_BYTES_MAX, SEALS_CHECKED_MAX, SEALS_MADE_MAX};
use crate::sorted::SortedSet;
use crate::wire::{canonical, decode_value, encode_value};
use crate::{Digest, FragmentId, GroupTag, PeerId, Round, RunId};
use core::fmt;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A signature of 64 bytes, of whatever kind the hosts of a run use (Ed25519 between daemons).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Signature(
    #[serde(with = "words")] [u8; 32],
    #[serde(with = "words")] [u8; 32],
);

impl Signature {
    /// The place of a signature that the sender's host fills in.
    pub const BLANK: Self = Self([0; 32], [0; 32]);

    /// Wraps 64 raw bytes.
    pub fn from_bytes(bytes: [u8; 64]) -> Self {
        let (mut first, mut second) = ([0; 32], [0; 32]);
        first.copy_from_slice(&bytes[..32]);
        second.copy_from_slice(&bytes[32..]);
        Self(first, second)
    }

    /// The raw bytes.
    pub fn to_bytes(self) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes[..32].copy_from_slice(&self.0);
        bytes[32..].copy_from_slice(&self.1);
        bytes
    }

    /// It is still to be filled in.
    pub fn is_blank(&self) -> bool {
        *self == Self::BLANK
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = &self.0;
        write!(f, "Signature({:02x}{:02x}..)", first[0], first[1])
    }
}

/// A signature in a message: whose it is, over which bytes, and its place.
#[derive(Debug)]
pub struct Signed<'a> {
    /// The peer whose signature it is.
    pub by: PeerId,
    /// The bytes under the signature.
    pub statement: Vec<u8>,
    /// The signature, or its blank place.
    pub signature: &'a mut Signature,
}

/// What a host remembers of the signatures that it made and checked. A statement goes to all members of a
/// group, and comes back in proposals and proofs: it is signed once and checked once.
#[derive(Debug, Default)]
pub struct SealMemory {
    made: VecDeque<(Digest, Signature)>,
    right: SortedSet<Digest>,
    /// The same, oldest first.
    ages: VecDeque<Digest>,
}

impl SealMemory {
    /// The signature that was made for this statement.
    pub fn made(&self, statement: &[u8]) -> Option<Signature> {
        let statement = Digest::of(statement);
        let made = self.made.iter().find(|(of, _)| *of == statement);
        made.map(|(_, signature)| *signature)
    }

    /// A signature was made.
    pub fn note_made(&mut self, statement: &[u8], signature: Signature) {
        if self.made.len() == SEALS_MADE_MAX {
            self.made.pop_front();
        }
        self.made.push_back((Digest::of(statement), signature));
    }

    /// This signature was checked before and was right.
    pub fn is_right(&self, by: PeerId, statement: &[u8], signature: &Signature) -> bool {
        self.right.contains(&name(by, statement, signature))
    }

    /// A signature was checked and is right.
    pub fn note_right(&mut self, by: PeerId, statement: &[u8], signature: &Signature) {
        let name = name(by, statement, signature);
        if !self.right.insert(name) {
            return;
        }
        self.ages.push_back(name);
        if self.ages.len() > SEALS_CHECKED_MAX
            && let Some(oldest) = self.ages.pop_front()
        {
            self.right.remove(&oldest);
        }
    }
}

/// A signer and a signature have a fixed length, so no two different ones have the same bytes.
fn name(by: PeerId, statement: &[u8], signature: &Signature) -> Digest {
    Digest::of(&[by.as_bytes(), &signature.to_bytes()[..], statement].concat())
}

// Statements of members, as bytes under a signature. Every statement names the run and its subject,
// so that a signature counts in one place only. Two of them that no honest peer signs are a proof that
// their peer lies.

/// The first bytes under every signature of this kind.
const PREFIX: &str = "murmurate statement 1";

/// A statement of one peer.
#[derive(Debug, Serialize)]
pub(crate) enum Statement {
    /// It has trained a round.
    Ready {
        round: Round,
        weight: f64,
        anchor: Digest,
        life: u64,
        forgets: bool,
    },
    /// It votes for a value.
    Vote(Place, u8, Digest),
    /// It has seen a certificate for a value and signs nothing below its ballot any more.
    Lock(Place, u8, Digest),
    /// It signs nothing below this ballot any more. Its vote of ballot zero, and ballot and value of
    /// its highest certificate.
    Promise(Place, u8, Option<Digest>, Option<(u8, Digest)>),
}

/// What a statement of a member is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) round: Round,
    pub(crate) fragment: FragmentId,
    pub(crate) group: GroupTag,
}

impl Statement {
    pub(crate) fn bytes(&self, run: &RunId) -> Vec<u8> {
        canonical(&(PREFIX, run, self))
    }
}

/// A statement of a member about one fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Saying {
    /// It votes for a value.
    Vote {
        /// In which ballot.
        ballot: u8,
        /// For what.
        value: Digest,
    },
    /// It has seen a quorum of votes for a value.
    Lock {
        /// In which ballot.
        ballot: u8,
        /// For what.
        value: Digest,
    },
    /// It signs nothing below a ballot any more.
    Promise {
        /// The ballot.
        ballot: u8,
        /// Its vote in ballot zero.
        zero: Option<Digest>,
        /// Ballot and value of its highest certificate.
        highest: Option<(u8, Digest)>,
    },
}

/// Two statements of one member that contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    by: PeerId,
    place: Place,
    said: [(Saying, Signature); 2],
}

impl Proof {
    /// A proof that `by` lies; `None` if an honest peer may say both. The signatures are checked by
    /// [`Proof::holds`].
    pub fn new(
        by: PeerId,
        (round, fragment, group): (Round, FragmentId, GroupTag),
        said: [(Saying, Signature); 2],
    ) -> Option<Self> {
        let [(one, _), (other, _)] = &said;
        let place = Place {
            round,
            fragment,
            group,
        };
        contradict(one, other).then_some(Self { by, place, said })
    }

    /// The peer that lies.
    pub fn by(&self) -> PeerId {
        self.by
    }

    /// The round in which it did.
    pub fn round(&self) -> Round {
        self.place.round
    }

    /// The peer's lie, in words that follow its name.
    pub fn what(&self) -> String {
        let round = self.place.round;
        match self.said.map(|(saying, _)| saying) {
            [Saying::Vote { ballot, .. }, Saying::Vote { .. }] => {
                format!("it voted for two results in ballot {ballot} of round {round}")
            }
            [Saying::Lock { ballot, .. }, Saying::Lock { .. }] => {
                format!("it confirmed two results in ballot {ballot} of round {round}")
            }
            [Saying::Promise { ballot, .. }, Saying::Promise { .. }] => {
                format!("it made two promises for ballot {ballot} of round {round}")
            }
            _ => format!("it denied its vote in round {round}"),
        }
    }

    /// The bytes under each of the two signatures.
    pub fn statements(&self, run: &RunId) -> [Vec<u8>; 2] {
        self.said
            .map(|(saying, _)| saying.statement(self.place).bytes(run))
    }

    /// Returns `true` if the statements contradict each other and both signatures are right. `check` says
    /// whether a peer signed these bytes.
    pub fn holds(&self, run: &RunId, check: impl Fn(&PeerId, &[u8], &Signature) -> bool) -> bool {
        let [(one, _), (other, _)] = &self.said;
        contradict(one, other)
            && self
                .statements(run)
                .iter()
                .zip(&self.said)
                .all(|(statement, (_, signature))| check(&self.by, statement, signature))
    }

    /// Its bytes, fewer than [`PROOF_BYTES_MAX`].
    pub fn to_bytes(&self) -> Vec<u8> {
        encode_value(self)
    }

    /// Reads a proof; `None` if these bytes are none. It still needs [`Proof::holds`].
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        (bytes.len() <= PROOF_BYTES_MAX).then(|| decode_value(bytes).ok())?
    }
}

impl Saying {
    fn statement(&self, place: Place) -> Statement {
        match *self {
            Self::Vote { ballot, value } => Statement::Vote(place, ballot, value),
            Self::Lock { ballot, value } => Statement::Lock(place, ballot, value),
            Self::Promise {
                ballot,
                zero,
                highest,
            } => Statement::Promise(place, ballot, zero, highest),
        }
    }
}

/// Returns `true` if no honest member says both about one fragment in one group: two votes, two locks or two
/// promises of one ballot, or a promise that does not name the vote of ballot zero. A member that
/// promised before it voted does not vote there any more, so the order does not matter.
fn contradict(one: &Saying, other: &Saying) -> bool {
    match (*one, *other) {
        (
            Saying::Vote { ballot, value },
            Saying::Vote {
                ballot: again,
                value: another,
            },
        )
        | (
            Saying::Lock { ballot, value },
            Saying::Lock {
                ballot: again,
                value: another,
            },
        ) => ballot == again && value != another,
        (Saying::Promise { ballot, .. }, Saying::Promise { ballot: again, .. }) => {
            ballot == again && one != other
        }
        (Saying::Vote { ballot: 0, value }, Saying::Promise { zero, .. })
        | (Saying::Promise { zero, .. }, Saying::Vote { ballot: 0, value }) => zero != Some(value),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(id: u8) -> Signature {
        Signature::from_bytes([id; 64])
    }

    #[test]
    fn what_differs_in_anything_was_not_checked() {
        let (a, b) = (PeerId::from_bytes([1; 32]), PeerId::from_bytes([2; 32]));
        let mut memory = SealMemory::default();
        memory.note_right(a, b"vote", &signature(1));
        assert!(memory.is_right(a, b"vote", &signature(1)));
        assert!(!memory.is_right(b, b"vote", &signature(1)));
        assert!(!memory.is_right(a, b"vota", &signature(1)));
        assert!(!memory.is_right(a, b"vote", &signature(2)));
        memory.note_made(b"vote", signature(3));
        assert_eq!(memory.made(b"vote"), Some(signature(3)));
        assert_eq!(memory.made(b"lock"), None);
    }

    #[test]
    fn it_forgets_the_oldest() {
        let me = PeerId::from_bytes([1; 32]);
        let mut memory = SealMemory::default();
        for number in 0..=SEALS_CHECKED_MAX as u64 {
            memory.note_right(me, &number.to_le_bytes(), &signature(1));
            memory.note_right(me, &number.to_le_bytes(), &signature(1));
            memory.note_made(&number.to_le_bytes(), signature(1));
        }
        assert_eq!(
            (memory.right.len(), memory.ages.len()),
            (SEALS_CHECKED_MAX, SEALS_CHECKED_MAX)
        );
        assert_eq!(memory.made.len(), SEALS_MADE_MAX);
        assert!(!memory.is_right(me, &0_u64.to_le_bytes(), &signature(1)));
    }
}

#[cfg(test)]
mod statement_tests {
    use super::*;

    const BLANK: Signature = Signature::BLANK;

    fn digest(name: &[u8]) -> Digest {
        Digest::of(name)
    }

    fn vote(ballot: u8, name: &[u8]) -> Saying {
        let value = digest(name);
        Saying::Vote { ballot, value }
    }

    fn lock(ballot: u8, name: &[u8]) -> Saying {
        let value = digest(name);
        Saying::Lock { ballot, value }
    }

    fn promise(ballot: u8, zero: Option<&[u8]>, highest: Option<(u8, &[u8])>) -> Saying {
        Saying::Promise {
            ballot,
            zero: zero.map(digest),
            highest: highest.map(|(ballot, name)| (ballot, digest(name))),
        }
    }

    fn proof(one: Saying, other: Saying) -> Option<Proof> {
        let place = (Round(3), FragmentId(0), GroupTag::of_digest(&digest(b"g")));
        let by = PeerId::from_bytes([7; 32]);
        Proof::new(by, place, [(one, BLANK), (other, BLANK)])
    }

    #[test]
    fn only_what_no_honest_peer_says_is_a_proof() {
        for (one, other, lies) in [
            (vote(0, b"a"), vote(0, b"b"), true),
            (vote(0, b"a"), vote(0, b"a"), false),
            // A higher ballot may be about something else.
            (vote(0, b"a"), vote(1, b"b"), false),
            (lock(2, b"a"), lock(2, b"b"), true),
            (lock(2, b"a"), lock(3, b"b"), false),
            // The others may have certified what this member did not vote for.
            (vote(2, b"a"), lock(2, b"b"), false),
            (promise(1, None, None), promise(1, Some(b"a"), None), true),
            (promise(1, None, None), promise(2, Some(b"a"), None), false),
            (
                promise(1, None, None),
                promise(1, None, Some((0, b"a"))),
                true,
            ),
            (vote(0, b"a"), promise(1, Some(b"a"), None), false),
            (vote(0, b"a"), promise(1, None, None), true),
            (vote(0, b"a"), promise(4, Some(b"b"), None), true),
            (vote(1, b"a"), promise(4, Some(b"b"), None), false),
            // Its highest certificate may be of a ballot that is not below the promise.
            (lock(0, b"a"), promise(2, None, None), false),
        ] {
            assert_eq!(proof(one, other).is_some(), lies, "{one:?} {other:?}");
            assert_eq!(proof(other, one).is_some(), lies, "{other:?} {one:?}");
        }
    }

    #[test]
    fn a_proof_holds_with_both_signatures_and_in_its_run_only() {
        let proof = proof(vote(0, b"a"), vote(0, b"b")).expect("contradictory");
        let run = RunId::from_bytes([1; 32]);
        let right = [b"a", b"b"].map(|name| {
            let statement = vote(0, name).statement(proof.place);
            statement.bytes(&run)
        });
        let check = |by: &PeerId, bytes: &[u8], _: &Signature| {
            *by == proof.by && right.iter().any(|known| known == bytes)
        };
        assert!(proof.holds(&run, check));
        assert!(!proof.holds(&RunId::from_bytes([2; 32]), check));
        assert!(!proof.holds(&run, |_, bytes, _| bytes == right[0]));
        assert!(proof.what().contains("two results in ballot 0 of round 3"));
        let bytes = proof.to_bytes();
        assert!(bytes.len() <= PROOF_BYTES_MAX);
        assert_eq!(Proof::from_bytes(&bytes), Some(proof));
        assert_eq!(Proof::from_bytes(&bytes[1..]), None);
        assert_eq!(Proof::from_bytes(&[0; PROOF_BYTES_MAX + 1]), None);
    }

    #[test]
    fn bytes_that_agree_with_themselves_are_no_proof() {
        let honest = Proof {
            said: [(vote(0, b"a"), BLANK), (vote(0, b"a"), BLANK)],
            ..proof(vote(0, b"a"), vote(0, b"b")).expect("contradictory")
        };
        let read = Proof::from_bytes(&honest.to_bytes()).expect("the form of a proof");
        assert!(!read.holds(&RunId::from_bytes([1; 32]), |_, _, _| true));
    }
}
