//! How a swarm is cut into groups that agree.

use super::GridShape;
use crate::grid::Strategy;
use murmurate_protocol::limits::GROUP_MEMBERS_MAX;
use murmurate_protocol::{Axes, Grouping, Plan};
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
            Grouping::Cells { cell } => {
                let axes = Axes::new(peers, cell);
                let sizes = (0..axes.count()).map(|axis| axes.cell(0, axis).count());
                Self::Cells {
                    cell: sizes.max().unwrap_or(1),
                    axes: axes.count(),
                    peers,
                }
            }
            Grouping::Flat if peers <= GROUP_MEMBERS_MAX => Self::One { peers },
            Grouping::Flat => Self::Turns {
                members: GROUP_MEMBERS_MAX,
                peers,
                reason: strategy.why_flat(),
            },
        })
    }

    /// Peers whose contributions a round combines.
    pub const fn counted(&self) -> usize {
        match self {
            Self::One { peers } | Self::Cells { peers, .. } => *peers,
            Self::Grid(shape) => shape.peers,
            Self::Turns { members, .. } => *members,
        }
    }

    /// Whether a round's result is the mean over all peers.
    pub const fn is_exact(&self) -> bool {
        !matches!(self, Self::Turns { .. } | Self::Cells { .. })
    }
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
                2.0 * (*cell as f64 - 1.0) / *cell as f64
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
}
