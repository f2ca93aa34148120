//! Whether a swarm that is larger than one group should agree exactly or average over cells.

use murmurate_protocol::limits::GROUP_MEMBERS_MAX;

/// Peers up to which exact agreement is advised however short rounds are.
const EXACT_PEERS: usize = 1000;

/// Seconds of a round from which exact agreement is advised however many peers there are.
const EXACT_ROUND_S: f64 = 10.0;

/// What to use and why, in a line; `None` where one group holds all peers.
pub fn exact_or_cells(peers: usize, round_s: f64) -> Option<String> {
    if peers <= GROUP_MEMBERS_MAX {
        return None;
    }
    let round = format!("{peers} peers in rounds of {round_s:.1} s");
    if peers > EXACT_PEERS && round_s < EXACT_ROUND_S {
        return Some(format!(
            "{round}: cells (agreement.grouping = \"cells\"), because an agreement of all takes a large part of \
             such rounds; exact (\"grid\") for an outer momentum, error feedback or one model that can be audited"
        ));
    }
    Some(format!(
        "{round}: exact (agreement.grouping = \"grid\"), because they leave time for an agreement of all; \
         \"cells\" if speeds differ more than twofold, or if more than a quarter of the peers may vanish at once"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_rounds_of_many_peers_average_over_cells() {
        let starts = |peers, round_s, way: &str| {
            let line = exact_or_cells(peers, round_s).unwrap();
            assert!(line.contains(&format!(": {way} (")), "{line}");
            assert!(!line.contains('\n'));
        };
        assert_eq!(exact_or_cells(64, 1.0), None);
        starts(65, 1.0, "exact");
        starts(1000, 1.0, "exact");
        starts(1001, 1.0, "cells");
        starts(10_000, 60.0, "exact");
    }
}
