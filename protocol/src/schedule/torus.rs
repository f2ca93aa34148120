//! 2D torus: ranks on a grid of r rows and c columns, r the largest divisor of n with r <= c. Rings
//! along the rows reduce, rings along the columns reduce and pass on, rings along the rows pass on.
//! Where n is a prime the grid has one row, and this is the ring.
//!
//! With n members and m encoded bytes: n shards, 2 (r - 1) + 2 (c - 1) hops, 2 n (n - 1) pushes;
//! each member sends 2 (n - 1) of them, 2 m (n - 1) / n bytes, to two neighbours. A partial sum is
//! encoded again r + c - 3 times.
//!
//! **Source:** Mikami et al. 2018, "Massively distributed SGD: ImageNet/ResNet-50 training in a
//! flash", section 2.2; as BlueConnect: Cho et al., SysML 2019.

use super::shape::{ScheduleCost, Trees};

#[derive(Debug)]
pub(super) struct Torus;

/// Rows and columns.
fn grid(n: usize) -> (usize, usize) {
    let rows = (1..=n.isqrt()).rev().find(|rows| n.is_multiple_of(*rows));
    let rows = rows.unwrap_or(1);
    (rows, n / rows)
}

impl Trees for Torus {
    fn up(&self, n: usize, shard: usize, rank: usize) -> Option<usize> {
        let (rows, columns) = grid(n);
        let (row, column) = (rank / columns, rank % columns);
        if column != shard % columns {
            return Some(row * columns + (column + 1) % columns);
        }
        (rank != shard).then_some((row + 1) % rows * columns + column)
    }

    fn down(&self, n: usize, shard: usize, rank: usize) -> Option<usize> {
        let (rows, columns) = grid(n);
        let (row, column) = (rank / columns, rank % columns);
        if column != shard % columns {
            return Some(row * columns + (column + columns - 1) % columns);
        }
        (rank != shard).then_some((row + rows - 1) % rows * columns + column)
    }

    fn cost(&self, n: usize) -> ScheduleCost {
        let (rows, columns) = grid(n);
        let n = n as u64;
        ScheduleCost {
            shards: n,
            hops: 2 * (rows + columns - 2) as u64,
            pushes: 2 * n * (n - 1),
            busiest: 2 * (n - 1),
        }
    }
}
