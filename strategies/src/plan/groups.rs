//! How a swarm is cut into groups that agree.

use super::GridShape;
use crate::grid::Strategy;
use murmurate_protocol::limits::GROUP_MEMBERS_MAX;
use murmurate_protocol::{Dealing, Grouping, Plan, Round};
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
        Some(match plan.agreement.grouping {
            Grouping::Grid { row } => Self::Grid(GridShape::new(plan, peers, row)),
            grouping @ (Grouping::Cells { .. } | Grouping::RandomCells { .. }) => {
                Self::cells(Dealing::new(grouping, plan.run, peers)?, peers)
            }
            Grouping::Flat if peers <= GROUP_MEMBERS_MAX => Self::One { peers },
            Grouping::Flat => Self::Turns {
                members: GROUP_MEMBERS_MAX,
                peers,
                reason: strategy.why_flat(),
            },
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

    /// Set where the result of a round is the mean over all peers.
    pub const fn is_exact(&self) -> bool {
        matches!(self, Self::One { .. } | Self::Grid(_))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;
    use murmurate_protocol::RunId;

    fn groups(text: &str, preset: &str, peers: usize) -> Option<Groups> {
        let strategy = Strategy::parse(text, Some(preset)).unwrap();
        let strategy = strategy.for_peers(peers);
        let layout = Layout::new([("parameters", vec![1_000_000])]);
        let plan = strategy
            .plan(RunId::from_bytes([0; 32]), &layout, 0)
            .unwrap();
        Groups::of(&strategy, &plan, peers)
    }

    #[test]
    fn more_than_a_group_forms_a_grid_if_a_grid_can_carry_it() {
        assert_eq!(groups("", "diloco", 64), Some(Groups::One { peers: 64 }));
        let grid = groups("", "diloco", 1000).unwrap();
        assert!(grid.is_exact() && grid.counted() == 1000, "{grid}");
        assert!(grid.to_string().contains("63 rows x 16 columns"), "{grid}");
        assert_eq!(groups("", "d-psgd", 1000), None);
    }

    #[test]
    fn cells_say_how_much_they_send_and_what_a_round_leaves() {
        let text = "[agreement]\ncell = 10\n";
        let cells = groups(text, "moshpit", 1000).unwrap();
        assert!(!cells.is_exact() && cells.counted() == 1000);
        let text = cells.to_string();
        assert!(
            text.contains("cells of 10 along 3 axes, 1.80 models"),
            "{text}"
        );
    }

    #[test]
    fn random_cells_say_what_a_round_leaves_by_the_law() {
        let cells = groups("", "prague", 16).unwrap();
        assert!(!cells.is_exact() && cells.counted() == 16);
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
            assert!(!groups.is_exact() && groups.counted() == 64);
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
}
