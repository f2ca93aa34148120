//! Which value a ballot above zero may propose, and whether a proposal is justified.

use super::Terms;
use super::said::{Certificate, Claim};
use std::collections::BTreeMap;

/// What a ballot may propose.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in super::super) enum Choice<V> {
    /// This value and no other: it may be decided already.
    Must(V),
    /// Any value: none is decided.
    Free,
}

/// What follows from promises, by member; `None` where they are less than a quorum.
pub(in super::super) fn choose<V: Ord + Clone>(
    terms: Terms,
    claims: &BTreeMap<usize, Claim<V>>,
) -> Option<Choice<V>> {
    if claims.len() < terms.quorum {
        return None;
    }
    let certified = claims.values().filter_map(|claim| claim.highest.as_ref());
    if let Some((_, value)) = certified.max_by_key(|(ballot, _)| *ballot) {
        return Some(Choice::Must(value.clone()));
    }
    let mut votes: BTreeMap<&V, usize> = BTreeMap::new();
    for value in claims.values().filter_map(|claim| claim.zero.as_ref()) {
        *votes.entry(value).or_default() += 1;
    }
    // All members may have voted for it, and some node may have seen that. Of a quorum, all but the
    // liars then say so.
    let may_be_decided = |votes: usize| votes + terms.liars >= terms.quorum;
    let most = votes.into_iter().max_by_key(|(_, count)| *count);
    Some(match most {
        Some((value, count)) if may_be_decided(count) => Choice::Must(value.clone()),
        _ => Choice::Free,
    })
}

/// What a proposal of `ballot` may contain that carries these promises; `None` where they do not
/// justify any. The highest certificate that they name must be there, because a liar can name one
/// that does not exist. Lower ones change nothing.
pub(in super::super) fn justified<V: Ord + Clone, S>(
    terms: Terms,
    ballot: u8,
    claims: &BTreeMap<usize, Claim<V>>,
    certificate: Option<&Certificate<V, S>>,
) -> Option<Choice<V>> {
    let named = claims.values().filter_map(|claim| claim.highest.as_ref());
    let highest = named.max_by_key(|(ballot, _)| *ballot);
    let shown = certificate.map(|shown| (shown.ballot, &shown.value));
    let fits = match highest {
        None => true,
        Some((of, value)) => {
            let complete = certificate.is_some_and(|shown| shown.votes.len() >= terms.quorum);
            *of < ballot && complete && shown == Some((*of, value))
        }
    };
    let members = claims.keys().all(|member| *member < terms.members);
    if fits && members {
        choose(terms, claims)
    } else {
        None
    }
}
