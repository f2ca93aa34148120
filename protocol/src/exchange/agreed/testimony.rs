//! What one member has signed and heard in the agreement on one fragment.
//!
//! Members that contradict themselves are found here: each statement of a member is compared with its earlier ones,
//! and members whose votes differ show each other the votes that they have. A liar that gives every
//! receiver another vote is found out then.

use super::group::{Group, Sealed};
use super::member::{Ballot, ShardVersion, Versions, value_of};
use super::message::FragmentMessage;
use super::rule::{Certificate, Claim, Ledger, Terms};
use super::scope::Scope;
use super::signed_message::{Pledge, SignedMessage, VoteCertificate};
use crate::core::context::Context;
use crate::exchange::broke;
use crate::limits::{BALLOTS_SIGNED_MIN, GROUP_MEMBERS_MAX};
use crate::sorted::{SortedMap, SortedSet};
use crate::wire::Held;
use crate::{Checked, Digest, Members, PeerId, Proof, Saying, Signature, Time};

/// Doublings of the waits at most.
const PATIENCE_DOUBLINGS_MAX: usize = 4;

/// A ballot that this peer coordinates, or could.
#[derive(Debug, Default)]
pub(super) struct Lead {
    pub(super) pledges: SortedMap<usize, Pledge>,
    pub(super) held: SortedMap<usize, Vec<Held>>,
    pub(super) certificates: SortedMap<(u8, Digest), VoteCertificate>,
    /// The proposal is made. A second one would be refused.
    pub(super) planned: bool,
}

/// Statements of this member in the ballot that it is in.
#[derive(Debug, Default)]
pub(super) struct Statements {
    /// Each with the member that it is for, or for all. Bounded: once of each kind.
    pub(super) all: Vec<(Option<PeerId>, SignedMessage)>,
    pub(super) repeated: bool,
    /// Time of their repetition above ballot zero, where no other wait has one.
    pub(super) due: Option<Time>,
}

/// The statements that this member has signed and heard.
#[derive(Debug)]
pub(super) struct Testimony {
    pub(super) ledger: Ledger<Digest, Signature>,
    /// The versions behind values. Bounded: one for each statement that counts.
    pub(super) known: SortedMap<Digest, Versions>,
    /// A quorum has joined the group. Before, this member signs nothing.
    pub(super) joined: bool,
    pub(super) lock_at: Option<Time>,
    pub(super) overdue: bool,
    /// Ballots whose votes differ and were shown to the others.
    pub(super) shown: SortedSet<u8>,
    /// The ballot in which a void round is voted for.
    pub(super) void: Option<u8>,
    /// The ballots that this peer coordinates or was sent promises for, none below the one it leads. Bounded:
    /// of each member the last promise counts.
    pub(super) leads: SortedMap<u8, Lead>,
    /// The ballot that this peer leads.
    pub(super) led: u8,
    /// The highest ballot that each member has asked for.
    wishes: SortedMap<usize, u8>,
    /// Statements that are repeated if they are not answered.
    pub(super) statements: Statements,
    /// The number after the last ballot; zero once no ballot is left.
    pub(super) end: u8,
    /// The decision with its signatures, for members that ask.
    pub(super) proof: Option<SignedMessage>,
    pub(super) group: Sealed,
    /// The members, from which the coordinators follow.
    ranked: Vec<usize>,
}

impl Statements {
    /// There are some that were not repeated yet.
    pub(super) fn may_be_repeated(&self) -> bool {
        !self.all.is_empty() && !self.repeated
    }
}

/// Ballots in which every member coordinates one.
fn turn(ranked: &[usize]) -> u8 {
    ranked.len().min(GROUP_MEMBERS_MAX) as u8
}

impl Testimony {
    /// `ranked` are the members in the order in which they coordinate ballots.
    pub(super) fn new(group: &Group, sealed: Sealed, ranked: Vec<usize>) -> Self {
        Self {
            ledger: Ledger::new(Terms {
                members: group.len(),
                quorum: group.quorum,
                tolerance: sealed.tolerance,
            }),
            known: SortedMap::new(),
            joined: false,
            lock_at: None,
            overdue: false,
            shown: SortedSet::new(),
            void: None,
            leads: SortedMap::new(),
            led: 0,
            wishes: SortedMap::new(),
            statements: Statements::default(),
            end: BALLOTS_SIGNED_MIN + 2 * turn(&ranked),
            proof: None,
            group: sealed,
            ranked,
        }
    }

    pub(super) fn value(&self, versions: &[ShardVersion]) -> Digest {
        value_of(&self.group.digest, versions)
    }

    /// The only member that may coordinate a ballot above zero.
    pub(super) fn coordinator(&self, ballot: u8) -> usize {
        let at = usize::from(ballot.saturating_sub(1)) % self.ranked.len().max(1);
        self.ranked.get(at).copied().unwrap_or(0)
    }

    /// Every member coordinates one ballot more at most, in place of two.
    pub(super) fn hurry(&mut self) {
        self.end = self.end.min(turn(&self.ranked) + 1);
    }

    /// Factor of the waits: it doubles each time that every member has coordinated a ballot.
    pub(super) fn patience(&self) -> u32 {
        let turns = usize::from(self.ledger.promised()) / self.ranked.len().max(1);
        1 << turns.min(PATIENCE_DOUBLINGS_MAX)
    }

    pub(super) fn lead(&self) -> Option<(u8, &Lead)> {
        let lead = self.leads.get(&self.led)?;
        Some((self.led, lead))
    }

    /// Forgets the statements: they belong to a ballot below.
    pub(super) fn begins_ballot(&mut self) {
        self.statements = Statements::default();
    }

    pub(super) fn wishes(&mut self, member: usize, ballot: u8) {
        let wish = self.wishes.entry(member).or_default();
        *wish = ballot.max(*wish);
    }

    /// The highest ballot that more members ask for than may lie, this one among them: one that does not lie has
    /// waited in vain for all below. All go there, so they meet, and a liar alone takes no ballot.
    pub(super) fn wished(&self) -> u8 {
        let mut wishes: Vec<u8> = self.wishes.values().copied().collect();
        wishes.sort_unstable_by(|a, b| b.cmp(a));
        let credible = self.ledger.terms().tolerance.credible(&wishes);
        credible.copied().unwrap_or(0)
    }

    /// The members that have voted for these versions or locked them, and so hold them.
    pub(super) fn holders(&self, versions: &Versions) -> Members {
        let value = self.value(versions);
        self.ledger.voters_for(&value).collect()
    }

    /// A vote in ballot zero may still come. A member that asked for another ballot has promised to give none below.
    pub(super) fn awaits_votes(&self) -> bool {
        let asked = |member: &usize| self.wishes.get(member).is_some_and(|ballot| *ballot > 0);
        let open = |member: usize| self.ledger.vote_of(member, 0).is_none() && !asked(&member);
        (0..self.ledger.terms().members).any(open)
    }

    /// All waited for have voted in ballot zero, not for one value, and no ballot followed.
    pub(super) fn is_split(&self, hopeful: Members) -> bool {
        let voted = |member: usize| self.ledger.vote_of(member, 0).is_some();
        self.ledger.promised() == 0
            && self.ledger.certificate().is_none()
            && self.ledger.split(0).is_some()
            && hopeful.iter().all(voted)
    }

    pub(super) fn claim(pledge: &Pledge) -> Claim<Digest> {
        Claim {
            zero: pledge.zero,
            highest: pledge.highest,
        }
    }

    /// Time of this member's next look.
    pub(super) fn due(&self) -> Option<Time> {
        [self.lock_at, self.statements.due]
            .into_iter()
            .flatten()
            .min()
    }

    /// Sends a statement to a member, or to all.
    fn tell(cx: &mut Context, scope: &Scope, to: Option<PeerId>, message: &SignedMessage) {
        let body = FragmentMessage::Signed(message.clone());
        match to {
            Some(peer) => scope.send(cx, peer, body),
            None => scope.send_all(cx, &body),
        }
    }

    /// Makes a statement to a member, or to all, that is repeated if it is not answered.
    pub(super) fn say(
        &mut self,
        cx: &mut Context,
        scope: &Scope,
        to: Option<PeerId>,
        message: SignedMessage,
    ) {
        Self::tell(cx, scope, to, &message);
        let repairs = self.ledger.promised() > 0;
        self.statements.all.push((to, message));
        // A new statement may be lost as well.
        self.statements.repeated = false;
        self.statements.due = repairs.then(|| cx.now + cx.deadlines.answer());
    }

    /// Repeats the statements of this ballot: with a bare quorum, one lost message lets it fail.
    pub(super) fn repeat(&mut self, cx: &mut Context, scope: &Scope) {
        (self.statements.repeated, self.statements.due) = (true, None);
        for (to, message) in &self.statements.all {
            Self::tell(cx, scope, *to, message);
        }
    }

    /// A ballot with the member that may coordinate it.
    pub(super) fn ballot(&self, scope: &Scope, number: u8) -> Ballot {
        let coordinator = if number == 0 {
            0
        } else {
            self.coordinator(number)
        };
        Ballot {
            number,
            coordinator: scope.group.peer(coordinator),
        }
    }

    /// This peer's promise with its reasons; `None` where it has promised as high.
    pub(super) fn pledge(
        &mut self,
        cx: &Context,
        scope: &Scope,
        ballot: u8,
    ) -> Option<(Pledge, Option<VoteCertificate>, Vec<ShardVersion>)> {
        // A promise is a signature too: before the quorum it would bind for nothing.
        if !self.joined {
            return None;
        }
        let Claim { zero, highest } = self.ledger.promise(ballot)?;
        // A promise ends the right to lock below it.
        self.lock_at = None;
        let certificate = self.ledger.certificate().filter(|_| highest.is_some());
        let behind = highest.map(|(_, value)| value).or(zero);
        let versions = behind.and_then(|value| self.known.get(&value).cloned());
        let pledge = Pledge {
            by: cx.me(),
            zero,
            highest,
            signature: Signature::BLANK,
        };
        let certificate = certificate.map(|known| write(&scope.group, known));
        Some((pledge, certificate, versions.unwrap_or_default()))
    }

    /// Compares a checked statement with earlier ones; true if it proves that the member lies.
    pub(super) fn compare(
        &self,
        cx: &mut Context,
        scope: &Scope,
        member: usize,
        (saying, signature): (Saying, Signature),
    ) -> bool {
        // Two of a kind in one ballot contradict each other; so does a vote below a promise.
        let vote = |ballot| {
            let (value, by) = self.ledger.vote_of(member, ballot)?;
            Some((statement(false, ballot, *value), *by))
        };
        let promise = || {
            let named = |(ballot, lead): (&u8, &Lead)| Some((*ballot, *lead.pledges.get(&member)?));
            let (ballot, pledge) = self.leads.iter().rev().find_map(named)?;
            Some((promised(ballot, &pledge), pledge.signature))
        };
        let before = match saying {
            Saying::Vote { ballot, .. } => [vote(ballot), promise()],
            Saying::Lock { ballot, .. } => {
                let lock = self.ledger.lock_of(member, ballot);
                [
                    lock.map(|(value, by)| (statement(true, ballot, *value), *by)),
                    None,
                ]
            }
            Saying::Promise { .. } => [vote(0), promise()],
        };
        let place = (scope.round, scope.fragment, scope.group.tag);
        let mut proofs = before.into_iter().flatten().filter_map(|known| {
            Proof::new(
                scope.group.peer(member),
                place,
                [known, (saying, signature)],
            )
        });
        // A member's own signatures are blank here.
        let proof = proofs.find(|_| member != scope.group.me);
        let lies = proof.is_some();
        proof.into_iter().for_each(|proof| cx.prove(proof));
        lies
    }

    pub(super) fn compare_votes(&self, cx: &mut Context, scope: &Scope, shown: &VoteCertificate) {
        let vote = statement(false, shown.ballot, shown.value);
        for (peer, signature) in &shown.votes {
            if let Some(member) = scope.group.index(*peer) {
                self.compare(cx, scope, member, (vote, *signature));
            }
        }
    }

    /// Compares promises that a coordinator shows.
    pub(super) fn compare_pledges(
        &self,
        cx: &mut Context,
        scope: &Scope,
        ballot: u8,
        pledges: &[Pledge],
    ) {
        for pledge in pledges {
            if let Some(member) = scope.group.index(pledge.by) {
                let said = (promised(ballot, pledge), pledge.signature);
                self.compare(cx, scope, member, said);
            }
        }
    }

    /// Once votes of a ballot differ, shows all votes to the others, then each that comes.
    pub(super) fn show_votes(&mut self, cx: &mut Context, scope: &Scope, ballot: u8, last: usize) {
        let Some(votes) = self.ledger.split(ballot) else {
            return;
        };
        let of = |(member, (value, signature)): (&usize, &(Digest, Signature))| {
            (scope.group.peer(*member), *value, *signature)
        };
        let first = self.shown.insert(ballot);
        let news = votes.iter().filter(|(member, _)| first || **member == last);
        let votes: Vec<Shown> = news.map(of).collect();
        Self::tell(cx, scope, None, &SignedMessage::Heard { ballot, votes });
    }

    /// Votes that another member has.
    pub(super) fn on_heard(
        &self,
        cx: &mut Context,
        scope: &Scope,
        ballot: u8,
        votes: &[Shown],
    ) -> Checked {
        for (peer, value, signature) in votes {
            let Some(member) = scope.group.index(*peer) else {
                return broke("a vote of a peer outside the group");
            };
            let vote = statement(false, ballot, *value);
            self.compare(cx, scope, member, (vote, *signature));
        }
        Ok(())
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
        votes: votes.collect::<Option<SortedMap<usize, Signature>>>()?,
    })
}

fn write(group: &Group, known: &Certificate<Digest, Signature>) -> VoteCertificate {
    VoteCertificate {
        ballot: known.ballot,
        value: known.value,
        votes: by_peer(group, &known.votes),
    }
}

/// Signatures by peer.
pub(super) fn by_peer(
    group: &Group,
    signatures: &SortedMap<usize, Signature>,
) -> Vec<(PeerId, Signature)> {
    let all = signatures.iter();
    all.map(|(index, signature)| (group.peer(*index), *signature))
        .collect()
}

/// A vote of a member as it is shown to others.
type Shown = (PeerId, Digest, Signature);

pub(super) const fn statement(locks: bool, ballot: u8, value: Digest) -> Saying {
    if locks {
        Saying::Lock { ballot, value }
    } else {
        Saying::Vote { ballot, value }
    }
}

fn promised(ballot: u8, pledge: &Pledge) -> Saying {
    Saying::Promise {
        ballot,
        zero: pledge.zero,
        highest: pledge.highest,
    }
}
