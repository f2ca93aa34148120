//! What an all-reduce by rows and columns costs a peer.

use super::{Cluster, Traffic};
use murmurate_protocol::limits::ROLL_PEERS_MAX;
use murmurate_protocol::{Grid, Plan};
use serde::Serialize;

/// One-way latencies of an exchange by rows and columns: contributions, row means, aggregates, votes
/// and results follow one another.
const HOPS: u32 = 5;

/// Bytes of a value of a row's mean, which is f32 under every codec.
const ROW_VALUE_BYTES: f64 = 4.0;

/// Rows and columns, and what a peer pushes and says in one round.
///
/// With g columns, c rows and o owners of parts in a column, a peer and fragment take on average
/// 2 (g - 1) + (c - 1) o / c + o (1 - 1 / c) pushes: contributions and results to the row, aggregates
/// to the column, and the row's mean to the owners. A peer sends c - 1 messages, its votes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GridShape {
    /// Peers with a place: all, up to the largest roll.
    pub peers: usize,
    /// Columns, g: peers in a row, and shards of a fragment.
    pub columns: usize,
    /// Rows, c: peers in a column.
    pub rows: usize,
    /// Owners of parts in a column, o.
    pub part_owners: usize,
    /// Pushes of a peer in one round, on average.
    pub pushes: f64,
    /// Control messages of a peer in one round when all is well: its votes. Signs of life, one to each
    /// link every two seconds, come on top.
    pub votes: f64,
    /// Peers that a peer exchanges with: its row and its column.
    pub mates: usize,
}

impl GridShape {
    /// The rows and columns of this many peers under a plan. `row` peers make a row; zero leaves that to
    /// the size.
    pub fn new(plan: &Plan, peers: usize, row: u16) -> Self {
        let peers = peers.clamp(1, ROLL_PEERS_MAX);
        let grid = Grid::new(peers, Grid::columns_for(peers, row, 0));
        let (columns, rows) = (grid.columns(), grid.rows());
        let shortest = plan.fragments.iter().map(|fragment| fragment.len).min();
        let shard = (shortest.unwrap_or(1) / columns as u64).max(1);
        let owners = grid.part_owners(columns - 1) as u64;
        let part_owners = owners.min(shard) as usize;
        let (g, c, o) = (columns as f64, rows as f64, part_owners as f64);
        let of_fragment = 2.0 * (g - 1.0) + 2.0 * o * (c - 1.0) / c;
        let fragments = plan.fragments.len() as f64 / f64::from(plan.overlap.stagger);
        Self {
            peers,
            columns,
            rows,
            part_owners,
            pushes: fragments * of_fragment,
            votes: fragments * (c - 1.0),
            mates: columns + rows - 2,
        }
    }

    /// Bytes and seconds of one round.
    ///
    /// With encoded contributions and aggregates of C and A bytes, row means of R = 4 bytes a value, and
    /// the link's slower rate B, in bytes per second, a peer sends and receives on average
    /// (g - 1) / g (C + A) + (c - 1) / (c g) (R + A) bytes. An owner of a part sends its aggregate to
    /// c - 1 others and receives as many row means, so the busiest direction of the two middle steps is
    /// (c - 1) / (o g) times A and R:
    ///
    /// T = ((g - 1) / g (C + A) + (c - 1) / (o g) (R + A)) / B + 5 latencies. The five are contributions,
    /// row means, aggregates, votes and results.
    ///
    /// The mix lane reads 3 P + (1 + c / o) P / g values of P: it encodes all, sums a shard of its row,
    /// encodes the mean, sums a part of c rows, and applies all.
    pub fn traffic(&self, plan: &Plan, cluster: &Cluster) -> Traffic {
        let [g, c, o] = [self.columns, self.rows, self.part_owners].map(|count| count as f64);
        let (contribution, aggregate) = Traffic::encoded(plan);
        let values = Traffic::exchanged(plan, cluster);
        let means = ROW_VALUE_BYTES * values;
        let in_row = (g - 1.0) / g * (contribution + aggregate);
        let in_column = (c - 1.0) / (c * g) * (means + aggregate);
        let busiest = (c - 1.0) / (o * g) * (means + aggregate);
        let slower = cluster.link.up.min(cluster.link.down);
        let latency = cluster.link.latency * HOPS;
        // This peer's contribution, those of its row to its shard, what an owner of a part holds, and
        // the decided shards.
        let held = contribution
            + (g - 1.0) / g * contribution
            + means / g
            + (c - 1.0) / (o * g) * means
            + (1.0 + 1.0 / g) * aggregate;
        Traffic {
            up: in_row + in_column,
            down: in_row + in_column,
            seconds: (in_row + busiest) / slower + latency.as_secs_f64(),
            values: (3.0 + (1.0 + c / o) / g) * values,
            held,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;
    use crate::grid::Strategy;
    use murmurate_protocol::RunId;

    fn shape(peers: usize, row: u16) -> (GridShape, Traffic) {
        let cluster = Cluster::new(1e6, 100.0, "8mbit/10ms", peers, 0.8).unwrap();
        let strategy = Strategy::preset("local-sgd").unwrap();
        let layout = Layout::new([("parameters", vec![cluster.parameters])]);
        let plan = strategy
            .plan(RunId::from_bytes([0; 32]), &layout, 0)
            .unwrap();
        let shape = GridShape::new(&plan, peers, row);
        (shape, shape.traffic(&plan, &cluster))
    }

    #[test]
    fn a_peer_sends_two_models_whatever_the_size() {
        for peers in [100, 1000, 4000, 10_000] {
            let (shape, traffic) = shape(peers, 0);
            assert_eq!(shape.rows, peers.div_ceil(shape.columns));
            assert!(shape.rows <= 64, "{shape:?}");
            assert!((traffic.up / 8e6 - 1.0).abs() < 0.01, "{traffic:?}");
        }
    }

    #[test]
    fn square_grids_take_the_fewest_pushes() {
        // 12 rows of 12: 11 + 11 in the row; 8 of 12 members own parts.
        let (square, _) = shape(144, 12);
        assert_eq!(
            [square.columns, square.rows, square.part_owners],
            [12, 12, 8]
        );
        let expected = 22.0 + 2.0 * 8.0 * 11.0 / 12.0;
        assert!((square.pushes - expected).abs() < 1e-9, "{square:?}");
        assert!((square.votes - 11.0).abs() < 1e-9);
        let (automatic, _) = shape(144, 0);
        assert_eq!([automatic.columns, automatic.rows], [3, 48]);
        assert!(automatic.pushes > 2.0 * square.pushes, "{automatic:?}");
    }

    #[test]
    fn no_roll_is_larger_than_the_largest() {
        let (shape, _) = shape(1_000_000, 0);
        assert_eq!([shape.peers, shape.rows], [ROLL_PEERS_MAX, 64]);
    }
}
