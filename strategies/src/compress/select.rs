//! Which values are large: one pass over memory, with the delta folded into the residual on the way
//! where there is one. Magnitudes are compared as integers, which for finite f32 is the same order.

use super::random::Random;
use super::simd::{Kernel, vectorized};

/// The magnitude as bits.
#[inline(always)]
pub(super) fn magnitude(value: f32) -> u32 {
    value.to_bits() & 0x7fff_ffff
}

/// Values among which to select.
pub(super) enum Source<'a> {
    /// These.
    Values(&'a [f32]),
    /// `decay * residual + delta`, which the residual is to become.
    Feedback {
        /// The round's delta.
        delta: &'a [f32],
        /// What earlier rounds left out.
        residual: &'a mut [f32],
        /// What is kept of it.
        decay: f32,
        /// How many values of the residual, from the first on, are the sum already.
        folded: usize,
    },
}

impl Source<'_> {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Values(values) => values.len(),
            Self::Feedback { delta, .. } => delta.len(),
        }
    }

    /// One of them.
    pub(super) fn get(&self, at: usize) -> f32 {
        match self {
            Self::Values(values) => values[at],
            Self::Feedback {
                delta,
                residual,
                decay,
                folded,
            } if at >= *folded => decay * residual[at] + delta[at],
            Self::Feedback { residual, .. } => residual[at],
        }
    }

    /// All of them, folded.
    pub(super) fn values(&mut self) -> &[f32] {
        self.first(self.len())
    }

    /// The first of them, folded.
    fn first(&mut self, count: usize) -> &[f32] {
        match self {
            Self::Values(values) => &values[..count],
            Self::Feedback {
                delta,
                residual,
                decay,
                folded,
            } => {
                if *folded < count {
                    fold(
                        &delta[*folded..count],
                        &mut residual[*folded..count],
                        *decay,
                    );
                    *folded = count;
                }
                &residual[..count]
            }
        }
    }

    /// Folds chunk after chunk, and looks at each while it is in the first cache: its first place,
    /// its values, and what the round's delta has of them (the values themselves without feedback).
    pub(super) fn each_chunk(&mut self, chunk: usize, mut look: impl FnMut(u32, &[f32], &[f32])) {
        let len = self.len();
        for from in (0..len).step_by(chunk) {
            let to = (from + chunk).min(len);
            self.first(to);
            match self {
                Self::Values(values) => look(from as u32, &values[from..to], &values[from..to]),
                Self::Feedback {
                    delta, residual, ..
                } => look(from as u32, &residual[from..to], &delta[from..to]),
            }
        }
    }

    /// Leaves in `chosen` the places of magnitudes of `from` (as bits) and more, ascending. All
    /// values are folded after it.
    pub(super) fn select(&mut self, from: u32, chosen: &mut Vec<u32>) {
        chosen.clear();
        if let Self::Feedback {
            delta,
            residual,
            decay,
            folded: folded @ 0,
        } = self
        {
            *folded = delta.len();
            let decay = *decay;
            return vectorized(SelectFolding {
                delta,
                residual,
                decay,
                from,
                chosen,
            });
        }
        let values = self.values();
        vectorized(Select {
            values,
            first: 0,
            from,
            chosen,
        });
    }

    /// Magnitudes of `count` values spread over all, one at random in each of as many runs.
    pub(super) fn sample(&self, count: usize, seed: u64, out: &mut Vec<u32>) {
        let (len, random) = (self.len() as u64, Random::new(seed));
        // Both below 2^32: no product overflows.
        let cut = |at: usize| at as u64 * len / count.max(1) as u64;
        let mut first = 0;
        out.clear();
        out.extend((0..count).map(|at| {
            let last = cut(at + 1);
            let within = (u64::from(random.bits(at as u32)) * (last - first)) >> 32;
            let place = first + within;
            first = last;
            magnitude(self.get(place as usize))
        }));
    }
}

/// `residual = decay * residual + delta`.
pub(super) fn fold(delta: &[f32], residual: &mut [f32], decay: f32) {
    vectorized(Fold {
        delta,
        residual,
        decay,
    });
}

struct Fold<'a> {
    delta: &'a [f32],
    residual: &'a mut [f32],
    decay: f32,
}

impl Kernel for Fold<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (e, d) in self.residual.iter_mut().zip(self.delta) {
            *e = self.decay * *e + d;
        }
    }
}

/// Values that are looked at together. As many that the compiler makes a loop of vectors of them and
/// not a row of single steps, as it does of few.
const RUN: usize = 1024;

/// Which values of a run are large, a byte each.
struct Marks([u8; RUN]);

impl Marks {
    /// Marks those of magnitude `from` and more.
    #[inline(always)]
    fn set(&mut self, values: &[f32], from: u32) {
        for (mark, value) in self.0.iter_mut().zip(values) {
            *mark = u8::from(magnitude(*value) >= from);
        }
        self.0[values.len()..].fill(0);
    }

    /// Appends the places of those that are marked.
    #[inline(always)]
    fn append(&self, first: u32, chosen: &mut Vec<u32>) {
        for (first, marks) in (first..).step_by(32).zip(self.0.as_chunks::<32>().0) {
            if *marks == [0; 32] {
                continue;
            }
            for (first, marks) in (first..).step_by(8).zip(marks.as_chunks::<8>().0) {
                let mut left = u64::from_le_bytes(*marks);
                while left != 0 {
                    chosen.push(first + left.trailing_zeros() / 8);
                    left &= left - 1;
                }
            }
        }
    }
}

struct Select<'a> {
    values: &'a [f32],
    first: u32,
    from: u32,
    chosen: &'a mut Vec<u32>,
}

impl Kernel for Select<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let mut marks = Marks([0; RUN]);
        for (first, run) in (self.first..).step_by(RUN).zip(self.values.chunks(RUN)) {
            marks.set(run, self.from);
            marks.append(first, self.chosen);
        }
    }
}

struct SelectFolding<'a> {
    delta: &'a [f32],
    residual: &'a mut [f32],
    decay: f32,
    from: u32,
    chosen: &'a mut Vec<u32>,
}

impl Kernel for SelectFolding<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let mut marks = Marks([0; RUN]);
        let runs = self.residual.chunks_mut(RUN).zip(self.delta.chunks(RUN));
        for (first, (run, delta)) in (0..).step_by(RUN).zip(runs) {
            for (e, d) in run.iter_mut().zip(delta) {
                *e = self.decay * *e + d;
            }
            marks.set(run, self.from);
            marks.append(first, self.chosen);
        }
    }
}

/// Finds the largest exactly, without sorting: keeps its scratch.
#[derive(Clone, Debug, Default)]
pub(super) struct Largest {
    magnitudes: Vec<u32>,
}

/// Values that tell about all of them.
const SAMPLE: usize = 1 << 14;

impl Largest {
    /// The least magnitude among the `rank` largest of a sample, which stands for all; zero where
    /// the sample has fewer values.
    pub(super) fn estimate(
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
    /// A sample says where the threshold lies nearly; one pass collects what is above a little
    /// less, and among those few the exact one is found. Where the sample misled, the whole is
    /// searched.
    pub(super) fn choose(
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

    /// Appends the places of the `kept` values of largest magnitude of a chunk that lies at `first`.
    ///
    /// The values are parted into groups of sixteen. Of the largest of each, the `kept`-th is no
    /// more than the threshold, and not much less: few values are left to search.
    pub(super) fn choose_chunk(
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
    pub(super) fn keep(
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
            // Written whether it stays or not: nobody can foretell which.
            chosen[end] = place;
            end += usize::from(tie | (magnitude > threshold));
        }
        chosen.truncate(end);
    }
}

/// Magnitudes that are searched by bisection: of more, sorting in part has less to read.
const BISECTED: usize = 1 << 17;

/// The `rank`-th largest magnitude, counted from one. May change their order.
fn nth_largest(magnitudes: &mut [u32], rank: usize) -> u32 {
    if magnitudes.len() > BISECTED {
        let at = magnitudes.len() - rank;
        return *magnitudes.select_nth_unstable(at).1;
    }
    vectorized(NthLargest { magnitudes, rank })
}

/// Bit by bit the largest number that `rank` magnitudes reach: without a branch that depends on
/// them but one.
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
                let least = |least: u32, m: &u32| if *m >= tried { least.min(*m) } else { least };
                return self.magnitudes.iter().fold(u32::MAX, least);
            }
            if count > self.rank {
                reached = tried;
            }
        }
        reached
    }
}

/// The largest magnitude of every group: of values whose places are equal modulo their number.
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
