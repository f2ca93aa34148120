//! How a swarm is cut into groups that agree, and what an all-reduce by rows and columns costs a peer.

use super::{Cluster, Traffic};
use crate::grid::Strategy;
use murmurate_protocol::limits::{GROUP_MEMBERS_MAX, ROLL_PEERS_MAX};
use murmurate_protocol::{Dealing, Grid, Grouping, Plan, Round};
use serde::Serialize;
use std::fmt;

/// How an exchange whose members agree cuts a swarm into groups.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Groups {
    /// One group of all: every round combines the contributions of all.
    One {
        /// Peers in it.
        peers: usize,
    },
    /// Rows and columns: every round combines the contributions of all.
    Grid(GridShape),
    /// Cells, dealt along another axis in each round: every round combines the contributions of all, each
    /// within its cell.
    Cells {
        /// Peers of the largest cell.
        cell: usize,
        /// Rounds after which all peers hold the mean over all, if none fails.
        axes: u32,
        /// All peers.
        peers: usize,
    },
    /// Random cells, others in each round.
    RandomCells {
        /// Peers of the largest cell.
        cell: usize,
        /// What a round leaves of the variance between peers, in expectation.
        left: f64,
        /// All peers.
        peers: usize,
    },
    /// One group of the largest size, in which the peers take turns. The others train and apply what
    /// it decides, but no round combines their contributions.
    Turns {
        /// Peers in the group.
        members: usize,
        /// All peers.
        peers: usize,
        /// Why rows and columns do not take its place.
        reason: &'static str,
    },
}

impl Groups {
    /// The groups of a plan's exchange among this many peers. `None` where members do not agree.
    pub fn of(strategy: &Strategy, plan: &Plan, peers: usize) -> Option<Self> {
        if !plan.exchange.agrees() && plan.agreement.grouping.cell().is_none() {
            return None;
        }
        if let Some(shape) = GridShape::of(plan, peers) {
            return Some(Self::Grid(shape));
        }
        if let Some(dealing) = Dealing::new(plan.agreement.grouping, plan.run, peers) {
            return Some(Self::cells(dealing, peers));
        }
        Some(if peers <= GROUP_MEMBERS_MAX {
            Self::One { peers }
        } else {
            Self::Turns {
                members: GROUP_MEMBERS_MAX,
                peers,
                reason: strategy.why_flat(),
            }
        })
    }

    fn cells(dealing: Dealing, peers: usize) -> Self {
        let cell = dealing.largest();
        if !dealing.is_random() {
            let axes = dealing.axes();
            return Self::Cells { cell, axes, peers };
        }
        let cells =
            (0..peers).filter(|place| dealing.cell(*place, Round(0)).first() == Some(place));
        // The rank of the mixing matrix less that of the mean.
        let left = cells.count().saturating_sub(1) as f64 / peers.saturating_sub(1).max(1) as f64;
        Self::RandomCells { cell, left, peers }
    }

    /// Peers whose contributions a round combines.
    pub const fn counted(&self) -> usize {
        match self {
            Self::One { peers } | Self::Cells { peers, .. } | Self::RandomCells { peers, .. } => {
                *peers
            }
            Self::Grid(shape) => shape.peers,
            Self::Turns { members, .. } => *members,
        }
    }
}

/// Encoded models that a peer of a cell sends in a round.
fn models(cell: usize) -> f64 {
    2.0 * (cell as f64 - 1.0) / cell as f64
}

impl fmt::Display for Groups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One { peers } => write!(f, "exact: one group of {peers}"),
            Self::Grid(shape) => write!(
                f,
                "exact: {} rows x {} columns, {} owners of parts in a column, {:.0} pushes and {:.0} \
                 votes a peer and round, {} mates",
                shape.rows,
                shape.columns,
                shape.part_owners,
                shape.pushes,
                shape.votes,
                shape.mates
            ),
            Self::Cells { cell, axes, .. } => write!(
                f,
                "not exact: cells of {cell} along {axes} axes, {:.2} models a peer and round; a round leaves \
                 1/{cell} of the variance between peers",
                models(*cell)
            ),
            Self::RandomCells { cell, left, .. } => write!(
                f,
                "not exact: random cells of {cell}, {:.2} models a peer and round; a round leaves {left:.3} of \
                 the variance between peers",
                models(*cell)
            ),
            Self::Turns {
                members,
                peers,
                reason,
            } => write!(
                f,
                "one group of {members} takes turns, {:.0} % of the contributions count: {reason}",
                100.0 * *members as f64 / *peers as f64
            ),
        }
    }
}

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
    /// The rows and columns of this many peers under a plan; `None` where it has none.
    pub fn of(plan: &Plan, peers: usize) -> Option<Self> {
        match plan.agreement.grouping {
            Grouping::Grid { row } => Some(Self::new(plan, peers, row)),
            _ => None,
        }
    }

    /// `row` peers make a row; zero leaves that to the size.
    fn new(plan: &Plan, peers: usize, row: u16) -> Self {
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
    use murmurate_protocol::RunId;

    fn plan(strategy: &Strategy) -> Plan {
        let layout = Layout::new([("parameters", vec![1_000_000])]);
        let plan = strategy.plan(RunId::from_bytes([0; 32]), &layout, 0);
        plan.unwrap()
    }

    fn groups(text: &str, preset: &str, peers: usize) -> Option<Groups> {
        let strategy = Strategy::parse(text, Some(preset)).unwrap();
        let strategy = strategy.for_peers(peers);
        Groups::of(&strategy, &plan(&strategy), peers)
    }

    #[test]
    fn more_than_a_group_forms_a_grid_if_a_grid_can_carry_it() {
        assert_eq!(groups("", "diloco", 64), Some(Groups::One { peers: 64 }));
        let grid = groups("", "diloco", 1000).unwrap();
        assert!(
            matches!(grid, Groups::Grid(_)) && grid.counted() == 1000,
            "{grid}"
        );
        assert!(grid.to_string().contains("63 rows x 16 columns"), "{grid}");
        assert_eq!(groups("", "d-psgd", 1000), None);
    }

    #[test]
    fn cells_say_how_much_they_send_and_what_a_round_leaves() {
        let text = "[agreement]\ncell = 10\n";
        let cells = groups(text, "moshpit", 1000).unwrap();
        assert!(matches!(cells, Groups::Cells { .. }) && cells.counted() == 1000);
        let text = cells.to_string();
        assert!(
            text.contains("cells of 10 along 3 axes, 1.80 models"),
            "{text}"
        );
    }

    #[test]
    fn random_cells_say_what_a_round_leaves_by_the_law() {
        let cells = groups("", "prague", 16).unwrap();
        assert!(matches!(cells, Groups::RandomCells { .. }) && cells.counted() == 16);
        // (n - g) / (g (n - 1)) with 4 of 16.
        let text = cells.to_string();
        assert!(
            text.contains("random cells of 4, 1.50 models a peer and round; a round leaves 0.200"),
            "{text}"
        );
        let many = groups("", "prague", 1000).unwrap().to_string();
        assert!(many.contains("random cells of 4, 1.50 models"), "{many}");
    }

    #[test]
    fn what_no_grid_carries_takes_turns_and_says_why() {
        let why = |text, preset| {
            let groups = groups(text, preset, 256).unwrap();
            assert!(matches!(groups, Groups::Turns { .. }) && groups.counted() == 64);
            let text = groups.to_string();
            assert!(text.contains("25 % of the contributions"), "{text}");
            text
        };
        assert!(why("[architecture]\nschedule = \"ring\"\n", "diloco").contains("butterfly"));
        assert!(why("[aggregation]\nrule = \"median\"\n", "diloco").contains("robust rule"));
        assert!(why("[agreement]\ngrouping = \"flat\"\n", "diloco").contains("flat"));
        assert!(why("[overlap]\nlate_steps = 2\n", "diloco").contains("after"));
    }

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

    fn shape(peers: usize, row: u16) -> (GridShape, Traffic) {
        let cluster = Cluster::new(1e6, 100.0, "8mbit/10ms", peers, 0.8).unwrap();
        let plan = plan(&Strategy::preset("local-sgd").unwrap());
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
