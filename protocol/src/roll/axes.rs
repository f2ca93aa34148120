//! The places of a roll along several axes, and the cells that a round deals along one of them.
//!
//! Place p has the digits of p to the base s, as many as there are axes; only the last digit may be
//! larger than s. The cell of a place along an axis is all places that differ from it in that digit
//! alone. A round deals cells along one axis, and the next round along the next. So peers that
//! average within their cells hold the mean over all after one round for each axis, if all `s^d`
//! places are taken and all peers are there.
//!
//! The number of places alone decides. One place more or less moves no other place and changes one
//! cell of each axis, but for the few numbers at which the side s changes.
//!
//! **Source:** Ryabinin et al. 2021, "Moshpit SGD", section 3.2, with places of a roll in place of
//! hashed keys, whose cells would have unequal sizes.

use crate::limits::GROUP_MEMBERS_MAX;

/// Room on the last axis beyond the size of a cell: one in four.
const ROOM: usize = 4;

/// The axes of a number of places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axes {
    places: usize,
    /// Places along each axis but the last.
    side: usize,
    count: u32,
}

impl Axes {
    /// For `places` peers in cells of about `cell`, which is from 2 to 64. Cells along the last axis may be
    /// larger by a quarter, so that a newcomer rarely changes the number of axes.
    pub fn new(places: usize, cell: u16) -> Self {
        let most = Self::largest(cell);
        Self::of_most(places, usize::from(cell).clamp(2, GROUP_MEMBERS_MAX), most)
    }

    /// For `places` peers, about `cell` along each axis and at most `most` along the last one.
    pub(crate) fn of_most(places: usize, cell: usize, most: usize) -> Self {
        let places = places.max(1);
        let mut count = 1;
        while (cell as u128).pow(count - 1) * (most as u128) < places as u128 {
            count += 1;
        }
        let mut this = Self {
            places,
            side: rounded_root(places, count).clamp(2, cell),
            count,
        };
        while this.last() > most && this.side < cell {
            this.side += 1;
        }
        this
    }

    /// The most peers of a cell where the plan asks for about `cell`.
    pub fn largest(cell: u16) -> usize {
        let cell = usize::from(cell).clamp(2, GROUP_MEMBERS_MAX);
        (cell + cell / ROOM).min(GROUP_MEMBERS_MAX)
    }

    /// How many axes there are: rounds after which each peer has met all others, through others.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Places between neighbours along an axis.
    const fn stride(&self, axis: u32) -> usize {
        self.side.pow(axis)
    }

    /// Places along the last axis.
    const fn last(&self) -> usize {
        self.places.div_ceil(self.stride(self.count - 1))
    }

    /// The axis along which a round deals cells.
    pub const fn axis_of(&self, round: u64) -> u32 {
        (round % self.count as u64) as u32
    }

    /// The places of the cell of a place along an axis, ascending, this one among them.
    pub fn cell(&self, place: usize, axis: u32) -> impl Iterator<Item = usize> + use<> {
        let axis = axis.min(self.count - 1);
        let stride = self.stride(axis);
        let (digit, length) = if axis + 1 == self.count {
            (place / stride, self.last())
        } else {
            (place / stride % self.side, self.side)
        };
        let (first, places) = (place - digit * stride, self.places);
        let cell = (0..length).map(move |step| first + step * stride);
        cell.filter(move |place| *place < places)
    }
}

fn rounded_root(of: usize, degree: u32) -> usize {
    let twice = (of as u128) << degree;
    let mut root = 1;
    // (2 r + 1)^d < 2^d n says that r + 1/2 is below the root.
    while (2 * root as u128 + 1).pow(degree) < twice {
        root += 1;
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sorted::SortedSet;

    #[test]
    fn a_round_deals_every_place_into_one_cell_of_at_most_64() {
        for cell in [2, 4, 10, 16, 64] {
            for places in (1..130).chain([1000, 9999]) {
                let axes = Axes::new(places, cell);
                for axis in 0..axes.count() {
                    let mut dealt = vec![0; places];
                    for place in 0..places {
                        let cell_of_it: Vec<usize> = axes.cell(place, axis).collect();
                        assert!(cell_of_it.contains(&place), "{places} in cells of {cell}");
                        assert!(cell_of_it.len() <= Axes::largest(cell), "{places}, {cell}");
                        if cell_of_it[0] == place {
                            cell_of_it.iter().for_each(|other| dealt[*other] += 1);
                        }
                    }
                    assert!(dealt.iter().all(|times| *times == 1), "{places}, {cell}");
                }
            }
        }
    }

    #[test]
    fn powers_of_the_cell_have_as_many_axes_with_full_cells() {
        for (places, cell, count) in [(16, 4, 2), (64, 4, 3), (256, 16, 2), (1000, 10, 3)] {
            let axes = Axes::new(places, cell);
            assert_eq!(axes.count(), count);
            for axis in 0..count {
                let sizes = (0..places).map(|place| axes.cell(place, axis).count());
                assert!(sizes.into_iter().all(|size| size == usize::from(cell)));
            }
        }
    }

    #[test]
    fn means_along_all_axes_are_the_mean_over_all() {
        let axes = Axes::new(64, 4);
        let mut values: Vec<f64> = (0..64).map(f64::from).collect();
        for round in 0..3 {
            let axis = axes.axis_of(round);
            values = (0..64)
                .map(|place| axes.cell(place, axis).map(|at| values[at]).sum::<f64>() / 4.0)
                .collect();
        }
        assert!(values.iter().all(|value| (value - 31.5).abs() < 1e-12));
    }

    #[test]
    fn every_peer_can_reach_every_other_along_the_axes() {
        for (places, cell) in [(17, 4), (65, 16), (100, 8), (1001, 10), (777, 2)] {
            let axes = Axes::new(places, cell);
            let mut reached = SortedSet::from([places - 1]);
            // A short last cell may be passed twice.
            for axis in (0..axes.count()).chain(0..axes.count()) {
                reached = reached
                    .iter()
                    .flat_map(|place| axes.cell(*place, axis))
                    .collect();
            }
            assert_eq!(reached.len(), places, "{places} in cells of {cell}");
        }
    }

    #[test]
    fn a_place_more_changes_the_cells_of_few_peers() {
        let mut shifts = 0;
        for places in 65..2000 {
            let (before, after) = (Axes::new(places, 16), Axes::new(places + 1, 16));
            if (before.side, before.count) != (after.side, after.count) {
                shifts += 1;
                continue;
            }
            for axis in 0..before.count() {
                let changed = (0..places)
                    .filter(|place| !before.cell(*place, axis).eq(after.cell(*place, axis)));
                assert!(changed.count() < GROUP_MEMBERS_MAX);
            }
        }
        // From 65 to 2,000 places the side grows from 8 to 16, and with a third axis from 7 to 13.
        assert!(shifts <= 15, "{shifts} sizes at which all move");
    }
}
