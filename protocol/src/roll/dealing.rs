//! Which places of a roll a round deals into one cell: those along an axis, or random ones.
//!
//! | dealing | cells of a round | links of a peer among n, with cells of g |
//! |---|---|---|
//! | along axes | the places that differ in one digit ([`Axes`]), another one in the next round | d (g - 1) |
//! | at random | a random part of the places, another one in each round | n - 1, up to 128 peers |
//!
//! Every peer of a run that knows the roll and the round deals the same cells, and no place is in two
//! of them. So the conflicts that Prague's group generator serializes cannot arise, and it needs no
//! generator: there one process forms groups of the workers that are idle.
//!
//! **At random.** A shuffle of the s places of a pool is drawn from run, round and pool. The place at
//! position p of it is in cell p mod k, with k = ceil(s / g): sizes differ by at most one, and none is
//! above g. Up to [`DEALT_POOL_MAX`] peers the pool is the whole roll. With more, a peer would need
//! links with thousands, so the places lie along axes of at most as many, and a round deals the pools
//! along one of them.
//!
//! **Law.** W, which gives each place the mean of its cell, is a projection of rank k, and all places
//! are alike. So E[W] = lambda I + (1 - lambda) 1 1' / s, and its trace gives lambda = (k - 1) / (s - 1):
//! what a round leaves of the squared distance between the peers of a pool, in expectation. With equal
//! cells of g that is (s - g) / (g (s - 1)).
//!
//! A place more than before moves at most one other place within a shuffle. Only where it begins
//! another cell are all cells of its pool others.
//!
//! **Source:** Luo, He, Zhuo, Qian 2020, "Prague: high-performance heterogeneity-aware asynchronous
//! decentralized training" (ASPLOS), sections 3 and 4: partial all-reduce, random groups.

use crate::limits::{DEALT_POOL_MAX, GROUP_MEMBERS_MAX};
use crate::{Digest, Grouping, Round, RunId};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// What the seed of a shuffle begins with, so that no other draw of a run has it.
const NAME: &[u8] = b"murmurate cells";

/// How the rounds of a run deal the places of a roll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dealing {
    /// The cells, or the pools from which they are drawn.
    axes: Axes,
    shuffle: Option<Shuffle>,
}

/// Random cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shuffle {
    run: RunId,
    /// Places of a cell at most.
    cell: usize,
}

impl Shuffle {
    /// The cell of a place among those of its pool, ascending.
    fn cell(self, pool: &[usize], place: usize, round: Round) -> Vec<usize> {
        let cells = self.cells(pool.len());
        let order = self.order(pool, round);
        let at = order.iter().position(|other| *other == place);
        let own = at.map_or(0, |at| at % cells);
        let mut cell: Vec<usize> = order.into_iter().skip(own).step_by(cells).collect();
        cell.sort_unstable();
        cell
    }

    fn cells(self, pool: usize) -> usize {
        pool.div_ceil(self.cell).max(1)
    }

    /// A pool's places in the round's random order. (Fisher and Yates, from the inside out: the order
    /// of the first places is the same, whatever comes after them.)
    fn order(self, pool: &[usize], round: Round) -> Vec<usize> {
        let first = pool.first().copied().unwrap_or(0) as u64;
        let words = [round.0.to_le_bytes(), first.to_le_bytes()].concat();
        let seed = Digest::of(&[NAME, self.run.as_bytes(), &words].concat());
        let mut rng = ChaCha8Rng::from_seed(*seed.as_bytes());
        let mut order = Vec::with_capacity(pool.len());
        for (at, place) in pool.iter().enumerate() {
            // A pool is small, so the bias of the remainder is below 2^-56.
            let other = rng.next_u64() % (at as u64 + 1);
            order.push(*place);
            order.swap(at, other as usize);
        }
        order
    }

    /// Rounds in which what one place knows reaches all of a pool of this size, but for one draw in
    /// thousands. At first those that know it become g times as many in a round. Once half of them know
    /// it, the part that does not is raised to the power g.
    fn spread(self, pool: usize) -> u64 {
        let rounds = |until: usize| {
            let (mut rounds, mut reached) = (0, 1);
            while reached < until {
                reached *= self.cell;
                rounds += 1;
            }
            rounds
        };
        if pool <= self.cell {
            1
        } else {
            rounds(pool) + rounds(pool.ilog2() as usize + 1)
        }
    }
}

impl Dealing {
    /// How a roll of `places` is dealt; `None` where a plan has no cells.
    pub fn new(grouping: Grouping, run: RunId, places: usize) -> Option<Self> {
        let most = grouping.cell()?;
        Some(if let Grouping::RandomCells { .. } = grouping {
            let cell = usize::from(most).max(2);
            Self {
                axes: Axes::of_most(places, DEALT_POOL_MAX, DEALT_POOL_MAX),
                shuffle: Some(Shuffle { run, cell }),
            }
        } else {
            Self {
                axes: Axes::new(places, most),
                shuffle: None,
            }
        })
    }

    /// The most peers of a cell where the plan says so; zero without cells.
    pub fn largest_of(grouping: Grouping) -> usize {
        grouping.cell().map_or(0, |cell| match grouping {
            Grouping::RandomCells { .. } => usize::from(cell),
            _ => Axes::largest(cell),
        })
    }

    /// The places of the cell of a place in a round, ascending, this one among them.
    pub fn cell(&self, place: usize, round: Round) -> Vec<usize> {
        let pool: Vec<usize> = self.axes.cell(place, self.axes.axis_of(round.0)).collect();
        match self.shuffle {
            Some(shuffle) => shuffle.cell(&pool, place, round),
            None => pool,
        }
    }

    /// All places that a place may share a cell with, in some round.
    pub fn met_by(&self, place: usize) -> impl Iterator<Item = usize> {
        let along = move |axis| self.axes.cell(place, axis);
        let all = (0..self.axes.count()).flat_map(along);
        all.filter(move |other| *other != place)
    }

    /// Returns `true` if cells are random.
    pub const fn is_random(&self) -> bool {
        self.shuffle.is_some()
    }

    /// Along how many axes the places lie.
    pub const fn axes(&self) -> u32 {
        self.axes.count()
    }

    /// Places of the largest cells, at most.
    pub fn largest(&self) -> usize {
        let pools = (0..self.axes.count()).map(|axis| self.axes.cell(0, axis).count());
        let sizes = pools.map(|pool| match self.shuffle {
            Some(shuffle) if self.axes.count() == 1 => pool.div_ceil(shuffle.cells(pool)),
            // The last pools are smaller, and one of them may be a full cell.
            Some(shuffle) => pool.min(shuffle.cell),
            None => pool,
        });
        sizes.max().unwrap_or(1)
    }

    /// Rounds after which all places know what one of them knew.
    pub fn spread(&self) -> u64 {
        let Some(shuffle) = self.shuffle else {
            return u64::from(self.axes.count());
        };
        let pools = (0..self.axes.count()).map(|axis| self.axes.cell(0, axis).count());
        let longest = pools.map(|pool| shuffle.spread(pool)).max().unwrap_or(1);
        // One axis is dealt in a round.
        longest * u64::from(self.axes.count())
    }
}

/// Room on the last axis beyond the size of a cell: one in four.
const ROOM: usize = 4;

/// The places of a roll along several axes, and the cells that a round deals along one of them.
///
/// Place p has the digits of p to the base s, as many as there are axes; only the last digit may be
/// larger than s. The cell of a place along an axis is all places that differ from it in that digit
/// alone. A round deals cells along one axis, and the next round along the next. So peers that
/// average within their cells hold the mean over all after one round for each axis, if all `s^d`
/// places are taken and all peers are there.
///
/// The number of places alone decides. One place more or less moves no other place and changes one
/// cell of each axis, but for the few numbers at which the side s changes.
///
/// **Source:** Ryabinin et al. 2021, "Moshpit SGD", section 3.2, with places of a roll in place of
/// hashed keys, whose cells would have unequal sizes.
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

    fn random(cell: u16, places: usize) -> Dealing {
        let run = RunId::from_bytes([9; 32]);
        Dealing::new(Grouping::RandomCells { cell }, run, places).unwrap()
    }

    /// The cells of a round, each once.
    fn cells(dealing: &Dealing, places: usize, round: u64) -> SortedSet<Vec<usize>> {
        (0..places)
            .map(|place| dealing.cell(place, Round(round)))
            .collect()
    }

    #[test]
    fn every_round_parts_the_places_into_random_cells_whose_sizes_differ_by_at_most_one() {
        for places in (1..140).chain([1000]) {
            for cell in [2, 3, 4, 7, 64] {
                let dealing = random(cell, places);
                for round in 0..4 {
                    let cells = cells(&dealing, places, round);
                    let all: Vec<usize> = cells.iter().flatten().copied().collect();
                    assert_eq!(all.len(), places, "{places} in cells of {cell}: {cells:?}");
                    assert_eq!(SortedSet::from_iter(all).len(), places);
                    let most = cells.iter().map(Vec::len).max().unwrap();
                    let least = cells.iter().map(Vec::len).min().unwrap();
                    assert!(most <= usize::from(cell), "{places} in cells of {cell}");
                    assert!(most <= dealing.largest());
                    if places <= DEALT_POOL_MAX {
                        assert!(most <= least + 1, "{places} in cells of {cell}: {cells:?}");
                        assert_eq!(cells.len(), places.div_ceil(usize::from(cell)));
                    }
                }
            }
        }
    }

    #[test]
    fn a_cell_is_the_same_for_all_its_places_and_for_no_other_run_or_round() {
        let dealing = random(4, 64);
        for round in 0..50 {
            for place in 0..64 {
                let cell = dealing.cell(place, Round(round));
                assert!(cell.contains(&place) && cell.is_sorted());
                for other in &cell {
                    assert_eq!(dealing.cell(*other, Round(round)), cell);
                }
            }
            assert_ne!(cells(&dealing, 64, round), cells(&dealing, 64, round + 1));
        }
        let run = RunId::from_bytes([8; 32]);
        let other = Dealing::new(Grouping::RandomCells { cell: 4 }, run, 64).unwrap();
        assert_ne!(cells(&dealing, 64, 0), cells(&other, 64, 0));
    }

    #[test]
    fn every_two_places_of_a_pool_meet_equally_often() {
        let (places, rounds) = (16, 4000);
        for cell in [2, 4, 5] {
            let dealing = random(cell, places);
            let mut met = vec![vec![0_u32; places]; places];
            for round in 0..rounds {
                for cell in cells(&dealing, places, round) {
                    for one in &cell {
                        cell.iter().for_each(|other| met[*one][*other] += 1);
                    }
                }
            }
            let of_pairs = (0..places).flat_map(|i| (0..i).map(move |j| (i, j)));
            let counts: Vec<u32> = of_pairs.map(|(i, j)| met[i][j]).collect();
            let usual = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
            // Six standard deviations of a count of independent rounds; there are 120 pairs.
            let off = 6.0 * usual.sqrt();
            for count in counts {
                assert!(
                    (f64::from(count) - usual).abs() < off,
                    "{count}, not {usual}"
                );
            }
        }
    }

    #[test]
    fn larger_rolls_meet_in_pools_and_a_peer_has_links_with_few() {
        for places in [129, 500, 5000, 16_384] {
            let dealing = random(4, places);
            assert_eq!(dealing.axes(), 2);
            for place in [0, places / 2, places - 1] {
                let met: SortedSet<usize> = dealing.met_by(place).collect();
                assert!(met.len() <= 2 * DEALT_POOL_MAX, "{places}: {}", met.len());
                for round in 0..60 {
                    let cell = dealing.cell(place, Round(round));
                    let others = cell.into_iter().filter(|other| *other != place);
                    for other in others {
                        assert!(met.contains(&other), "{place} of {places} meets {other}");
                    }
                }
            }
            // Through others a peer reaches all.
            let mut reached = SortedSet::from([places - 1]);
            for _ in 0..2 {
                let next = reached.iter().flat_map(|place| dealing.met_by(*place));
                reached = next.chain(reached.iter().copied()).collect();
            }
            assert_eq!(reached.len(), places);
        }
    }

    #[test]
    fn what_one_place_knows_reaches_all_within_the_spread() {
        for (cell, places) in [(2, 16), (2, 128), (4, 8), (4, 128), (4, 500), (64, 70)] {
            let dealing = random(cell, places);
            let (mut slow, trials) = (0, 200);
            for trial in 0..trials {
                let mut knows = vec![false; places];
                knows[trial % places] = true;
                let first = 1000 * trial as u64;
                // What is in force has had two rounds more.
                for round in first..first + dealing.spread() + 2 {
                    for cell in cells(&dealing, places, round) {
                        let told = cell.iter().any(|place| knows[*place]);
                        cell.iter().for_each(|place| knows[*place] |= told);
                    }
                }
                slow += usize::from(knows.contains(&false));
            }
            println!(
                "{places} in cells of {cell}: {} rounds, {slow} of {trials} late",
                dealing.spread()
            );
            assert!(slow <= 1, "{slow} of {trials}: {places} in cells of {cell}");
        }
    }

    #[test]
    fn a_place_more_moves_one_other_but_where_a_cell_begins() {
        for places in 5..DEALT_POOL_MAX {
            let (before, after) = (random(4, places), random(4, places + 1));
            if places % 4 == 0 {
                continue;
            }
            for round in 0..8 {
                let changed = (0..places).filter(|place| {
                    before.cell(*place, Round(round)) != after.cell(*place, Round(round))
                });
                // The cell that it enters, and that of the place which moved.
                assert!(changed.count() <= 8, "{places}");
            }
        }
    }

    #[test]
    fn a_round_leaves_the_part_of_the_variance_that_the_law_says() {
        for (cell, places) in [(2, 8), (4, 8), (4, 16), (3, 10), (8, 64)] {
            let dealing = random(cell, places);
            let start: Vec<f64> = (0..places).map(|i| ((i * 37) % 11) as f64).collect();
            let mean = start.iter().sum::<f64>() / places as f64;
            let x: Vec<f64> = start.iter().map(|v| v - mean).collect();
            let before: f64 = x.iter().map(|v| v * v).sum();
            let rounds = 20_000;
            let mut left = Vec::new();
            for round in 0..rounds {
                let cells = cells(&dealing, places, round);
                let squares = cells.iter().map(|cell| {
                    let sum: f64 = cell.iter().map(|i| x[*i]).sum();
                    sum * sum / cell.len() as f64
                });
                left.push(squares.sum::<f64>() / before);
            }
            let found = left.iter().sum::<f64>() / rounds as f64;
            let spread = left.iter().map(|v| (v - found).powi(2)).sum::<f64>() / rounds as f64;
            let k = places.div_ceil(usize::from(cell)) as f64;
            let law = (k - 1.0) / (places as f64 - 1.0);
            // Five standard errors.
            let off = 5.0 * (spread / rounds as f64).sqrt();
            println!("{places} in cells of {cell}: {found:.5}, by the law {law:.5}");
            assert!((found - law).abs() < off, "{found}, not {law}");
        }
    }

    #[test]
    fn along_axes_it_deals_what_the_axes_do() {
        let run = RunId::from_bytes([9; 32]);
        let dealing = Dealing::new(Grouping::Cells { cell: 4 }, run, 64).unwrap();
        let axes = Axes::new(64, 4);
        for round in 0..6 {
            for place in 0..64 {
                let along: Vec<usize> = axes.cell(place, axes.axis_of(round)).collect();
                assert_eq!(dealing.cell(place, Round(round)), along);
            }
        }
        assert_eq!(
            (dealing.largest(), dealing.spread(), dealing.axes()),
            (4, 3, 3)
        );
        assert!(Dealing::new(Grouping::Flat, run, 64).is_none());
    }
}

#[cfg(test)]
mod axes_tests {
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
