//! Statements of members, as bytes under a signature. Every statement names the run and its subject,
//! so that a signature counts in one place only.
//!
//! Two of them that no honest peer signs are a proof that their peer lies.

use crate::limits::PROOF_BYTES_MAX;
use crate::wire::{canonical, decode_value, encode_value};
use crate::{Digest, FragmentId, GroupTag, PeerId, Round, RunId, Signature};
use serde::{Deserialize, Serialize};

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
