//! Agreement on one value although some members lie: what a member may sign, what decides, and which
//! value a higher ballot may propose. Nothing here sends, signs or checks a signature: statements
//! arrive here with their signatures checked.
//!
//! A group of m seats survives k liars; Q is the quorum of all n seats of the run, `Q <= m <= n`
//! and `n > 3k`. Values are whatever the members vote on. A ballot is a number; all members know who
//! coordinates it.
//!
//! 1. **Vote.** A member votes once in a ballot. Q equal votes of one ballot are a *certificate*.
//! 2. **Decide.** Equal votes of all m seats in ballot zero decide. So do Q *locks*: a member signs
//!    a lock once it has a certificate of a ballot that is not below its promise.
//! 3. **Promise.** A member that promises a ballot votes and locks in no lower one. The promise says
//!    what it voted for in ballot zero, and its highest certificate.
//! 4. **Choose.** The coordinator of a higher ballot needs Q promises. The value of the highest
//!    certificate among them must be proposed; without one, the value that at least Q - k of them
//!    voted for in ballot zero; without that, any value may be.
//! 5. **Repair.** The proposal carries the promises. A member votes for it only if it is what 4
//!    gives, so a lying coordinator can stop a ballot and do nothing else.
//!
//! **Why two values are never decided.** Two quorums share k + 1 seats, so they share one that does
//! not lie. So a ballot has one certified value at most. Say v is decided by locks in ballot b. Any
//! Q promises to a higher ballot include one of a member that locked v in b and said so, because it
//! would not lock after its promise. So, ballot by ballot, the highest certificate is of v. Say v
//! is decided by all votes of ballot zero. All who do not lie voted for v, so no other value has a
//! certificate of ballot zero. Of any Q promises Q - k or more name v, and at most `k < Q - k` name
//! another value. So the next certificate is of v too, and the highest one stays with v.
//!
//! `model` checks this: all schedules of the smallest group, and random ones of larger groups.
//!
//! **Source:** Castro and Liskov 1999, "Practical Byzantine Fault Tolerance" (certificates, two
//! phases); Martin and Alvisi 2006, "Fast Byzantine Consensus" (deciding on equal votes of all);
//! Lamport 2001, "Paxos Made Simple" (promises).

mod choose;
mod ledger;
#[cfg(test)]
mod model;
#[cfg(test)]
mod random;
mod said;

pub(super) use choose::{Choice, choose, justified};
pub(super) use ledger::Ledger;
pub(super) use said::{Certificate, Claim};

/// How many members of a group say something, decide, and may lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    /// Members of the group.
    pub(super) members: usize,
    /// Members that decide: a quorum of all seats, at most `members`.
    pub(super) quorum: usize,
    /// Members that may lie.
    pub(super) liars: usize,
}
