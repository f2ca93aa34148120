//! The largest values exactly, without sorting. A first estimate bounds the threshold, and only the
//! values near it are searched.

use super::select::{Sign, Source, append_from, append_sign, magnitude};
use crate::compress::simd::kernel;

/// Finds the largest values exactly, without sorting. It keeps its scratch memory.
#[derive(Clone, Debug, Default)]
pub(in crate::compress) struct Largest {
    magnitudes: Vec<u32>,
}

/// Size of the sample from which the threshold is estimated.
const SAMPLE: usize = 1 << 14;

impl Largest {
    /// The least key among the `rank` largest of a sample of all values; zero if the sample has fewer values.
    pub(in crate::compress) fn estimate(
        &mut self,
        source: &Source<'_>,
        (density, slack): (f64, f64),
        seed: u64,
        key: impl Fn(f32) -> u32,
    ) -> u32 {
        let count = SAMPLE.min(source.len());
        source.sample((count, seed), key, &mut self.magnitudes);
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
        let near = self.near(source, density, seed, magnitude);
        source.select(near, chosen);
        if near > 1 && chosen.len() < kept {
            source.select(1, chosen);
        }
        self.keep(source.values(), 0, kept, 0, chosen);
    }

    /// A little less than the key that this share of the values reaches; one where a sample would not pay.
    fn near(
        &mut self,
        source: &Source<'_>,
        density: f64,
        seed: u64,
        key: impl Fn(f32) -> u32,
    ) -> u32 {
        if source.len() > 4 * SAMPLE && density < 0.3 {
            self.estimate(source, (density, 3.0), seed, key).max(1)
        } else {
            1
        }
    }

    /// As [`Largest::choose`], of the values of one sign.
    pub(in crate::compress) fn choose_sign(
        &mut self,
        values: &[f32],
        sign: Sign,
        kept: usize,
        seed: u64,
        chosen: &mut Vec<u32>,
    ) {
        let density = kept as f64 / values.len().max(1) as f64;
        let source = Source::Values(values);
        let mut from = self.near(&source, density, seed, |value| sign.magnitude(value));
        loop {
            chosen.clear();
            append_sign(values, sign, from, chosen);
            if from == 1 || chosen.len() >= kept {
                break;
            }
            from = 1;
        }
        self.keep(values, 0, kept, 0, chosen);
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
            maxima_of(chunk, &mut self.magnitudes);
            near = about_nth_largest(&self.magnitudes, kept).max(1);
        }
        let start = chosen.len();
        append_from(chunk, first, near, chosen);
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
    let more = 0;
    nth_by_bits(magnitudes, rank, more)
}

/// A magnitude that at least `rank` of them reach, and not many more.
fn about_nth_largest(magnitudes: &[u32], rank: usize) -> u32 {
    nth_by_bits(magnitudes, rank, rank / 8)
}

kernel! {
    /// Finds, bit by bit, the largest number that at least `rank` magnitudes reach; it stops at one that
    /// at most `more` than these reach. Only one branch depends on the magnitudes.
    fn nth_by_bits<'a>(magnitudes: &'a [u32], rank: usize, more: usize) -> u32 {
        // All have the bits in common that the least and the largest have.
        let (least, most) = magnitudes
            .iter()
            .fold((u32::MAX, 0), |(a, b), m| (a.min(*m), b.max(*m)));
        let differing = u32::BITS - (least ^ most).leading_zeros();
        if differing == 0 || magnitudes.is_empty() {
            return most;
        }
        let mut reached = most >> differing << differing;
        for bit in (0..differing).rev() {
            let tried = reached | 1 << bit;
            let those = magnitudes.iter().map(|m| u32::from(*m >= tried));
            let count = those.sum::<u32>() as usize;
            if (rank..=rank + more).contains(&count) {
                let those = magnitudes.iter();
                let those = those.map(|m| if *m >= tried { *m } else { u32::MAX });
                return those.fold(u32::MAX, u32::min);
            }
            if count > rank {
                reached = tried;
            }
        }
        reached
    }

    /// The largest magnitude of every group. A group has the values whose places are equal modulo the
    /// number of groups.
    fn maxima_of<'a>(values: &'a [f32], maxima: &'a mut [u32]) {
        for row in values.chunks(maxima.len()) {
            for (most, value) in maxima.iter_mut().zip(row) {
                *most = magnitude(*value).max(*most);
            }
        }
    }
}
