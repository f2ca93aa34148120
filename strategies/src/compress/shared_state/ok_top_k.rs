//! The rule of `ok-top-k`: all values above a threshold that is used for many rounds.

use crate::compress::header::Header;
use crate::compress::sparse::largest::Largest;
use crate::compress::sparse::pick::{Pick, kept};
use crate::compress::sparse::select::{Source, magnitude};
use crate::compress::sparse::top_k;
use crate::compress::spec::{CodecSpec, Parameter, Range};
use crate::compress::{CodecProperties, EncodeContext};

/// Rounds between computations of a threshold.
pub(in crate::compress) const EVERY: Parameter = Parameter {
    name: "every",
    range: Range::Whole(1, 1_000_000),
    default: Some(32.0),
    about: "rounds between computations of a threshold, such as 32",
};

/// A threshold that is used for several rounds.
///
/// ```text
/// C(x)_i = x_i where |x_i| >= t, 0 elsewhere;   t: the k-th largest when it was last computed
/// ```
///
/// It is computed once in `every` exchanges, and whenever more than 2 k or fewer than k / 2 values
/// are above it: `||C(x) - x||^2 <= (1 - density / 2) ||x||^2` for all values. It keeps two
/// numbers. Zeros are never sent.
///
/// Source: Li and Hoefler, "Near-optimal sparse allreduce for distributed deep learning" (PPoPP
/// 2022), section 3.1.3 (number not verified).
#[derive(Clone, Debug)]
pub(in crate::compress) struct OkTopK {
    spec: &'static CodecSpec,
    density: f64,
    every: u64,
    largest: Largest,
}

impl OkTopK {
    pub(in crate::compress) fn new(spec: &'static CodecSpec, density: f64, every: u64) -> Self {
        Self {
            spec,
            density,
            every,
            largest: Largest::default(),
        }
    }
}

impl Pick for OkTopK {
    fn name(&self) -> &'static str {
        self.spec.name
    }

    fn properties(&self) -> CodecProperties {
        match self.density == 1.0 {
            true => CodecProperties::LOSSLESS,
            false => top_k::properties(0.5 * self.density),
        }
    }

    fn header(&self) -> Header {
        let every = (self.every as u32).to_le_bytes();
        let density = self.density.to_le_bytes();
        Header::new(self.spec.tag).with(density).with(every)
    }

    fn density_max(&self) -> f64 {
        (2.0 * self.density).min(1.0)
    }

    fn most(&self, len: usize) -> usize {
        (2 * kept(self.density, len)).min(len)
    }

    fn beyond(&self) -> usize {
        2
    }

    fn choose(
        &mut self,
        source: &mut Source<'_>,
        context: &mut EncodeContext<'_>,
        chosen: &mut Vec<u32>,
    ) {
        let count = kept(self.density, source.len());
        if let Some([held, age]) = context.memory.first_chunk_mut()
            && (*age as u64) + 1 < self.every
        {
            *age += 1.0;
            source.select(magnitude(*held).max(1), chosen);
            if (count.div_ceil(2)..=2 * count).contains(&chosen.len()) {
                return;
            }
        }
        self.largest.choose(source, count, context.seed, chosen);
        let values = source.values();
        let those = chosen
            .iter()
            .map(|place| magnitude(values[*place as usize]));
        context.memory.clear();
        let least = those.min().map(f32::from_bits);
        context
            .memory
            .extend(least.into_iter().flat_map(|t| [t, 0.0]));
    }
}
