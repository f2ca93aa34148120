//! A parameter server among the members, all in the same round: k of them own the shards of every
//! fragment. A rendezvous hash chooses them, so owners stay the same while they live, and any peer
//! can be one. Workers push each shard to its owner; the owner sends the reduction back to all.
//!
//! A worker would pull the old anchor moved by the reduction. Every member holds the old anchor, so
//! only the reduction travels, and every member holds the center. A successor of a dead owner has
//! it at once: in the next ballot it reduces the contributions that the workers still hold.
//! Everything else is as in the butterfly with other owners; with k = n it is the butterfly.
//!
//! Cost per round with n members, k owners, f fragments of m encoded bytes in all: f k (n - 1)
//! pushes of contributions and as many of reductions, about m / (f k) bytes each. A worker that
//! owns nothing sends m bytes and gets m; an owner gets m (n - 1) / k and sends as much. Control
//! messages as in all-reduce. Between k = 1, where one link carries all, and k = n, where all carry
//! the same, lies BytePS's choice of k by what the links can carry. Where the plan says so, a fragment is
//! cut into more parts than owners, and each owns as many as its line carries (`cut.rs`).
//!
//! **Source:** Li et al. 2014, "Scaling Distributed Machine Learning with the Parameter Server";
//! Jiang et al. 2020, "BytePS", section 4.1.

use super::cut;
use super::group::Group;
use crate::core::context::Context;
use crate::rendezvous::rendezvous;
use crate::{ExchangeKind, Round};

/// Into how many parts a fragment of `len` values is cut: in a merge one for each member, whatever the
/// exchange is.
pub(super) fn parts(cx: &Context, group: &Group, len: u64) -> u16 {
    match group.merges() {
        true => (group.len() as u64).min(len) as u16,
        false => cx.plan.parts(len, group.len()) as u16,
    }
}

/// The owner of every part in the first ballot.
pub(super) fn owners(cx: &Context, group: &Group, of: u16) -> Vec<usize> {
    let mut owners = ranked(cx, group, (0..group.len()).collect());
    if let (1.., false, Some(most)) = (
        cx.plan.agreement.parts,
        group.merges(),
        cx.plan.exchange.owners(),
    ) {
        return cut::dealt(&cut::rates(group), &owners, usize::from(most), of);
    }
    owners.truncate(usize::from(of));
    owners
}

/// Members in the order in which they own parts: those of a parameter server by rendezvous hash
/// over the run, so that a death moves only the dead member's shards; others as they are.
pub(super) fn ranked(cx: &Context, group: &Group, mut members: Vec<usize>) -> Vec<usize> {
    if let ExchangeKind::Server(_) = cx.plan.exchange {
        let rank = |i: &usize| rendezvous(&cx.plan.run, Round(0), 0, group.peer(*i));
        members.sort_by_key(|i| (std::cmp::Reverse(rank(i)), *i));
    }
    members
}
