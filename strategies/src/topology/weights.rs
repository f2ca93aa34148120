//! Shares that several topologies use. Not a topology.

use murmurate_protocol::Partners;

/// Partners of one rank in a symmetric W: every receiver of a push is also a sender.
pub(super) fn symmetric(mut send: Vec<(usize, f64)>) -> Partners {
    send.sort_unstable_by_key(|(to, _)| *to);
    let receive = send.iter().map(|(to, _)| *to).collect();
    Partners { send, receive }
}

/// Equal shares of all `members`, including the peer itself: their mean.
pub(super) fn mean(rank: usize, members: impl Iterator<Item = usize>) -> Partners {
    let members: Vec<usize> = members.collect();
    let share = 1.0 / members.len().max(1) as f64;
    symmetric(
        members
            .into_iter()
            .filter(|other| *other != rank)
            .map(|other| (other, share))
            .collect(),
    )
}

/// Metropolis-Hastings shares on an undirected graph: `W[i][j] = 1 / (1 + max(d_i, d_j))`.
///
/// Symmetric, doubly stochastic, and with a share of at least `1 / (1 + d_i)` kept on any graph;
/// neighbours need only each other's degrees. Source: Xiao, Boyd and Kim, "Distributed average
/// consensus with least-mean-square deviation" (JPDC 2007), section 1.
pub(super) fn metropolis(rank: usize, neighbours: impl Fn(usize) -> Vec<usize>) -> Partners {
    let own = neighbours(rank);
    let degree = own.len();
    symmetric(
        own.into_iter()
            .map(|other| {
                (
                    other,
                    1.0 / (1 + degree.max(neighbours(other).len())) as f64,
                )
            })
            .collect(),
    )
}

/// Partners in a circulant W: `W[i + shift][i] = share` for each `(shift, share)`, indices modulo
/// n. Shares of the same shift are summed; shift zero is the share that a peer keeps.
pub(super) fn circulant(rank: usize, count: usize, shifts: &[(usize, f64)]) -> Partners {
    let mut merged: Vec<(usize, f64)> = Vec::with_capacity(shifts.len());
    for (shift, share) in shifts.iter().map(|(shift, share)| (shift % count, share)) {
        match merged.iter_mut().find(|(other, _)| *other == shift) {
            _ if shift == 0 => {}
            Some((_, sum)) => *sum += share,
            None => merged.push((shift, *share)),
        }
    }
    let mut receive: Vec<usize> = merged
        .iter()
        .map(|(shift, _)| (rank + count - shift) % count)
        .collect();
    receive.sort_unstable();
    let mut send: Vec<(usize, f64)> = merged
        .into_iter()
        .map(|(shift, share)| ((rank + shift) % count, share))
        .collect();
    send.sort_unstable_by_key(|(to, _)| *to);
    Partners { send, receive }
}
