//! Which values are large: one pass over memory, which also adds the delta to the residual if there
//! is one. Magnitudes are compared as integers, which for finite f32 is the same order.

use crate::compress::random::Random;
use crate::compress::simd::kernel;

/// The magnitude as bits.
#[inline(always)]
pub(in crate::compress) fn magnitude(value: f32) -> u32 {
    value.to_bits() & 0x7fff_ffff
}

/// Values among which to select.
pub(in crate::compress) enum Source<'a> {
    /// These.
    Values(&'a [f32]),
    /// `decay * residual + delta`, which the residual is to become.
    Feedback {
        /// The round's delta.
        delta: &'a [f32],
        /// What earlier rounds left out.
        residual: &'a mut [f32],
        /// The factor on the residual.
        decay: f32,
        /// The number of values at the front of the residual that are the sum already.
        folded: usize,
    },
}

impl Source<'_> {
    pub(in crate::compress) fn len(&self) -> usize {
        match self {
            Self::Values(values) => values.len(),
            Self::Feedback { delta, .. } => delta.len(),
        }
    }

    pub(in crate::compress) fn get(&self, at: usize) -> f32 {
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
    pub(in crate::compress) fn values(&mut self) -> &[f32] {
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
    pub(in crate::compress) fn each_chunk(
        &mut self,
        chunk: usize,
        mut look: impl FnMut(u32, &[f32], &[f32]),
    ) {
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
    pub(in crate::compress) fn select(&mut self, from: u32, chosen: &mut Vec<u32>) {
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
            return append_folding(delta, residual, decay, from, chosen);
        }
        let values = self.values();
        append_from(values, 0, from, chosen);
    }

    /// Keys of `count` values spread over all, one at random in each of as many runs.
    pub(in crate::compress) fn sample(
        &self,
        (count, seed): (usize, u64),
        key: impl Fn(f32) -> u32,
        out: &mut Vec<u32>,
    ) {
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
            key(self.get(place as usize))
        }));
    }
}

kernel! {
    /// `residual = decay * residual + delta`.
    pub(in crate::compress) fn fold<'a>(delta: &'a [f32], residual: &'a mut [f32], decay: f32) {
        for (e, d) in residual.iter_mut().zip(delta) {
            *e = decay * *e + d;
        }
    }
}

/// Values that are compared together: enough for the compiler to make a loop of vector instructions.
pub(in crate::compress) const RUN: usize = 1024;

/// Which values of a run are chosen, a byte each.
pub(in crate::compress) struct Marks(pub(in crate::compress) [u8; RUN]);

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
    pub(in crate::compress) fn append(&self, first: u32, chosen: &mut Vec<u32>) {
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

kernel! {
    /// Appends the places of magnitudes (as bits) that are at least `from`. The place of the first
    /// value is `first`.
    pub(in crate::compress) fn append_from<'a>(
        values: &'a [f32],
        first: u32,
        from: u32,
        chosen: &'a mut Vec<u32>,
    ) {
        let mut marks = Marks([0; RUN]);
        for (first, run) in (first..).step_by(RUN).zip(values.chunks(RUN)) {
            marks.set(run, from);
            marks.append(first, chosen);
        }
    }
}

/// Values of one sign. The flip of the sign bit makes it the plus.
#[derive(Clone, Copy, Debug)]
pub(in crate::compress) struct Sign(u32);

impl Sign {
    /// Those above zero.
    pub(in crate::compress) const PLUS: Self = Self(0);
    /// Those below zero.
    pub(in crate::compress) const MINUS: Self = Self(0x8000_0000);

    /// The magnitude as bits; zero of the other sign.
    #[inline(always)]
    pub(in crate::compress) fn magnitude(self, value: f32) -> u32 {
        ((value.to_bits() ^ self.0) as i32).max(0) as u32
    }
}

kernel! {
    /// As [`append_from`], of one sign and of all values; `from` is at least one.
    pub(in crate::compress) fn append_sign<'a>(
        values: &'a [f32],
        sign: Sign,
        from: u32,
        chosen: &'a mut Vec<u32>,
    ) {
        let mut marks = Marks([0; RUN]);
        for (first, run) in (0..).step_by(RUN).zip(values.chunks(RUN)) {
            for (mark, value) in marks.0.iter_mut().zip(run) {
                *mark = u8::from(sign.magnitude(*value) >= from);
            }
            marks.0[run.len()..].fill(0);
            marks.append(first, chosen);
        }
    }

    fn append_folding<'a>(
        delta: &'a [f32],
        residual: &'a mut [f32],
        decay: f32,
        from: u32,
        chosen: &'a mut Vec<u32>,
    ) {
        let mut marks = Marks([0; RUN]);
        let runs = residual.chunks_mut(RUN).zip(delta.chunks(RUN));
        for (first, (run, delta)) in (0..).step_by(RUN).zip(runs) {
            for (e, d) in run.iter_mut().zip(delta) {
                *e = decay * *e + d;
            }
            marks.set(run, from);
            marks.append(first, chosen);
        }
    }
}
