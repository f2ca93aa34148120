//! What one member knows of the signed agreement on one fragment.

use super::super::ballot::Versions;
use super::super::group::{Group, Sealed};
use super::super::rule::{Certificate, Claim, Ledger, Terms};
use super::super::signed_message::{Pledge, SignedMessage, VoteCertificate};
use super::super::value::value_of;
use crate::limits::{BALLOTS_SIGNED_MAX, BALLOTS_SIGNED_MIN};
use crate::wire::Held;
use crate::{Digest, Members, PeerId, Signature, Time};
use std::collections::{BTreeMap, BTreeSet};

/// How often waits become twice as long.
const PATIENCE_DOUBLINGS_MAX: usize = 4;

/// A ballot that this peer coordinates, or could.
#[derive(Debug, Default)]
pub(super) struct Lead {
    pub(super) pledges: BTreeMap<usize, Pledge>,
    pub(super) held: BTreeMap<usize, Vec<Held>>,
    /// The certificates that the promises name.
    pub(super) certificates: BTreeMap<(u8, Digest), VoteCertificate>,
    /// Whether the proposal is made. A second one would be refused.
    pub(super) planned: bool,
}

/// What this member has said in the ballot that it is in.
#[derive(Debug, Default)]
pub(super) struct Statements {
    /// Each with the member that it is for, or for all. Bounded: once of each kind.
    pub(super) all: Vec<(Option<PeerId>, SignedMessage)>,
    /// Whether all of them were repeated.
    pub(super) repeated: bool,
    /// When they are repeated above ballot zero, where no other wait has a time for it.
    pub(super) due: Option<Time>,
}

/// What this member has signed and heard.
#[derive(Debug)]
pub(in super::super) struct Testimony {
    pub(super) ledger: Ledger<Digest, Signature>,
    /// The versions behind values. Bounded: one for each statement that counts.
    pub(super) known: BTreeMap<Digest, Versions>,
    /// Whether a quorum has joined the group. Before, this member signs nothing.
    pub(in super::super) joined: bool,
    /// When this member locks although votes are missing.
    pub(super) lock_at: Option<Time>,
    /// Whether votes are overdue.
    pub(super) overdue: bool,
    /// Ballots whose votes differ and were shown to the others.
    pub(super) shown: BTreeSet<u8>,
    /// The ballot in which a void round is voted for.
    pub(super) void: Option<u8>,
    /// The ballots that this peer coordinates or was sent promises for, none below the one it leads. Bounded:
    /// of each member the last promise counts.
    pub(super) leads: BTreeMap<u8, Lead>,
    /// The ballot that this peer leads.
    pub(super) led: u8,
    /// The highest ballot that each member has asked for.
    wishes: BTreeMap<usize, u8>,
    /// What must be repeated if it is not answered.
    pub(super) statements: Statements,
    /// Whether no ballot is left.
    pub(in super::super) spent: bool,
    /// The decision with its signatures, for members that ask.
    pub(super) proof: Option<SignedMessage>,
    /// The group in its members' words.
    pub(super) group: Sealed,
    /// The members, from which the coordinators follow.
    ranked: Vec<usize>,
}

impl Testimony {
    /// `ranked` are the members in the order in which they coordinate ballots.
    pub(in super::super) fn new(group: &Group, sealed: Sealed, ranked: Vec<usize>) -> Self {
        Self {
            ledger: Ledger::new(Terms {
                members: group.len(),
                quorum: group.quorum,
                liars: sealed.liars,
            }),
            known: BTreeMap::new(),
            joined: false,
            lock_at: None,
            overdue: false,
            shown: BTreeSet::new(),
            void: None,
            leads: BTreeMap::new(),
            led: 0,
            wishes: BTreeMap::new(),
            statements: Statements::default(),
            spent: false,
            proof: None,
            group: sealed,
            ranked,
        }
    }

    /// The value that stands for these versions.
    pub(super) fn value(&self, versions: &Versions) -> Digest {
        value_of(&self.group.digest, versions)
    }

    /// The only member that may coordinate a ballot above zero.
    pub(super) fn coordinator(&self, ballot: u8) -> usize {
        let at = usize::from(ballot.saturating_sub(1)) % self.ranked.len().max(1);
        self.ranked.get(at).copied().unwrap_or(0)
    }

    /// The number after the last ballot: every member has coordinated at least two.
    pub(super) fn ballots_end(&self) -> u8 {
        let twice = u8::try_from(2 * self.ranked.len()).unwrap_or(u8::MAX);
        twice
            .saturating_add(BALLOTS_SIGNED_MIN)
            .min(BALLOTS_SIGNED_MAX)
    }

    /// How many times as long the waits are as in the first ballots: twice as long each time that every member
    /// has coordinated one.
    pub(in super::super) fn patience(&self) -> u32 {
        let turns = usize::from(self.ledger.promised()) / self.ranked.len().max(1);
        1 << turns.min(PATIENCE_DOUBLINGS_MAX)
    }

    /// The ballot that this peer leads, with what it was promised.
    pub(super) fn lead(&self) -> Option<(u8, &Lead)> {
        let lead = self.leads.get(&self.led)?;
        Some((self.led, lead))
    }

    /// What was said belongs to a ballot below.
    pub(in super::super) fn begins_ballot(&mut self) {
        self.statements = Statements::default();
    }

    /// A member asks for a ballot.
    pub(super) fn wishes(&mut self, member: usize, ballot: u8) {
        let wish = self.wishes.entry(member).or_default();
        *wish = ballot.max(*wish);
    }

    /// The highest ballot that more members ask for than may lie, this one among them: one that does not lie has
    /// waited in vain for all below. All go there, so they meet, and a liar alone takes no ballot.
    pub(super) fn wished(&self) -> u8 {
        let mut wishes: Vec<u8> = self.wishes.values().copied().collect();
        wishes.sort_unstable_by(|a, b| b.cmp(a));
        wishes.get(self.ledger.terms().liars).copied().unwrap_or(0)
    }

    /// The members that have voted for these versions or locked them, and so hold them.
    pub(in super::super) fn holders(&self, versions: &Versions) -> Members {
        let value = self.value(versions);
        self.ledger.voters_for(&value).collect()
    }

    /// What a pledge says of its member.
    pub(super) fn claim(pledge: &Pledge) -> Claim<Digest> {
        Claim {
            zero: pledge.zero,
            highest: pledge.highest,
        }
    }

    /// When this member must look again.
    pub(in super::super) fn due(&self) -> Option<Time> {
        [self.lock_at, self.statements.due]
            .into_iter()
            .flatten()
            .min()
    }
}

/// A certificate from a message; `None` if a vote is of a peer outside the group.
pub(super) fn read(
    group: &Group,
    shown: &VoteCertificate,
) -> Option<Certificate<Digest, Signature>> {
    let votes = shown.votes.iter();
    let votes = votes.map(|(peer, signature)| Some((group.index(*peer)?, *signature)));
    Some(Certificate {
        ballot: shown.ballot,
        value: shown.value,
        votes: votes.collect::<Option<BTreeMap<usize, Signature>>>()?,
    })
}

/// A certificate as a message.
pub(super) fn write(group: &Group, known: &Certificate<Digest, Signature>) -> VoteCertificate {
    VoteCertificate {
        ballot: known.ballot,
        value: known.value,
        votes: by_peer(group, &known.votes),
    }
}

/// Signatures by peer.
pub(super) fn by_peer(
    group: &Group,
    signatures: &BTreeMap<usize, Signature>,
) -> Vec<(PeerId, Signature)> {
    let all = signatures.iter();
    all.map(|(index, signature)| (group.peer(*index), *signature))
        .collect()
}
