//! The largest values exactly, without sorting. A first estimate bounds the threshold, and only the
//! values near it are searched.

use super::select::{Select, Source, magnitude};
use crate::compress::simd::{Kernel, vectorized};

/// Finds the largest values exactly, without sorting. It keeps its scratch memory.
#[derive(Clone, Debug, Default)]
pub(in crate::compress) struct Largest {
    magnitudes: Vec<u32>,
}

/// Size of the sample from which the threshold is estimated.
const SAMPLE: usize = 1 << 14;

impl Largest {
    /// The least magnitude among the `rank` largest of a sample of all values; zero if
    /// the sample has fewer values.
    pub(in crate::compress) fn estimate(
        &mut self,
        source: &Source<'_>,
        density: f64,
        slack: f64,
        seed: u64,
    ) -> u32 {
        let count = SAMPLE.min(source.len());
        source.sample(count, seed, &mut self.magnitudes);
        let rank = density * count as f64;
        let rank = (rank + slack * (rank.sqrt() + 1.0)).round().max(1.0) as usize;
        if rank > count {
            return 0;
        }
        nth_largest(&mut self.magnitudes, rank)
    }

    /// Leaves in `chosen` the places of the `kept` values of largest magnitude (ties: the lowest
    /// place), ascending, without zeros.
    ///
    /// A sample gives an estimate of the threshold; one pass collects the values above a little
    /// less, and among those few the exact one is found. Where the sample misled, the whole is
    /// searched.
    pub(in crate::compress) fn choose(
        &mut self,
        source: &mut Source<'_>,
        kept: usize,
        seed: u64,
        chosen: &mut Vec<u32>,
    ) {
        chosen.clear();
        let len = source.len();
        if kept == 0 {
            source.values();
            return;
        }
        let density = kept as f64 / len as f64;
        let near = match len > 4 * SAMPLE && density < 0.3 {
            true => self.estimate(source, density, 3.0, seed).max(1),
            false => 1,
        };
        source.select(near, chosen);
        if near > 1 && chosen.len() < kept {
            source.select(1, chosen);
        }
        self.keep(source.values(), 0, kept, 0, chosen);
    }

    /// Appends the places of the `kept` values of largest magnitude of a chunk that lies at
    /// `first`.
    ///
    /// The values are parted into groups of sixteen. Of the largest of each, the `kept`-th is no
    /// more than the threshold, and not much less: few values are left to search.
    pub(in crate::compress) fn choose_chunk(
        &mut self,
        chunk: &[f32],
        first: u32,
        kept: usize,
        chosen: &mut Vec<u32>,
    ) {
        const GROUP: usize = 16;
        let groups = chunk.len() / GROUP;
        let mut near = 1;
        if kept > 0 && 4 * kept <= groups {
            self.magnitudes.clear();
            self.magnitudes.resize(groups, 0);
            vectorized(Maxima {
                values: chunk,
                maxima: &mut self.magnitudes,
            });
            near = nth_largest(&mut self.magnitudes, kept).max(1);
        }
        let start = chosen.len();
        vectorized(Select {
            values: chunk,
            first,
            from: near,
            chosen,
        });
        self.keep(chunk, first, kept, start, chosen);
    }

    /// Leaves the `kept` largest of those that are chosen from the `start`-th on; the place of the
    /// first of `values` is `first`.
    pub(in crate::compress) fn keep(
        &mut self,
        values: &[f32],
        first: u32,
        kept: usize,
        start: usize,
        chosen: &mut Vec<u32>,
    ) {
        let found = chosen.len() - start;
        if found <= kept {
            return;
        }
        if kept == 0 {
            return chosen.truncate(start);
        }
        let magnitude = |place: u32| magnitude(values[(place - first) as usize]);
        self.magnitudes.clear();
        let those = chosen[start..].iter();
        self.magnitudes.extend(those.map(|place| magnitude(*place)));
        let threshold = nth_largest(&mut self.magnitudes, kept);
        let above = self.magnitudes.iter().filter(|m| **m > threshold).count();
        let (mut ties, mut end) = (kept - above, start);
        for at in start..chosen.len() {
            let place = chosen[at];
            let magnitude = magnitude(place);
            let tie = magnitude == threshold && ties > 0;
            ties -= usize::from(tie);
            // Written in any case and kept by moving the end: a branch would be mispredicted.
            chosen[end] = place;
            end += usize::from(tie | (magnitude > threshold));
        }
        chosen.truncate(end);
    }
}

/// The most magnitudes that are searched by bisection. For more, partial sorting reads less.
const BISECTED: usize = 1 << 17;

/// The `rank`-th largest magnitude, counted from one. May change the order of the magnitudes.
fn nth_largest(magnitudes: &mut [u32], rank: usize) -> u32 {
    if magnitudes.len() > BISECTED {
        let at = magnitudes.len() - rank;
        return *magnitudes.select_nth_unstable(at).1;
    }
    vectorized(NthLargest { magnitudes, rank })
}

/// Finds, bit by bit, the largest number that at least `rank` magnitudes reach. Only one branch
/// depends on the magnitudes.
struct NthLargest<'a> {
    magnitudes: &'a [u32],
    rank: usize,
}

impl Kernel for NthLargest<'_> {
    type Output = u32;

    #[inline(always)]
    fn run(self) -> u32 {
        let mut reached = 0;
        for bit in (0..31).rev() {
            let tried = reached | 1 << bit;
            let those = self.magnitudes.iter().map(|m| u32::from(*m >= tried));
            let count = those.sum::<u32>() as usize;
            if count == self.rank {
                let those = self.magnitudes.iter();
                let those = those.map(|m| if *m >= tried { *m } else { u32::MAX });
                return those.fold(u32::MAX, u32::min);
            }
            if count > self.rank {
                reached = tried;
            }
        }
        reached
    }
}

/// The largest magnitude of every group. A group has the values whose places are equal modulo the
/// number of groups.
struct Maxima<'a> {
    values: &'a [f32],
    maxima: &'a mut [u32],
}

impl Kernel for Maxima<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for row in self.values.chunks(self.maxima.len()) {
            for (most, value) in self.maxima.iter_mut().zip(row) {
                *most = magnitude(*value).max(*most);
            }
        }
    }
}
