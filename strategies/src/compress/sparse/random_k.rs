//! Codecs `random-k` and `random-k-unbiased`: values at random places that a seed names.

use super::pick::{DECAY, DENSITY, Pick, Picked, kept};
use super::select::Source;
use super::values::VALUES;
use crate::compress::random::Random;
use crate::compress::raw::take;
use crate::compress::{CodecError, CodecProperties, CodecSpec, EncodeContext, Reduction};

pub(in crate::compress) const SPEC: CodecSpec = CodecSpec {
    name: "random-k",
    tag: 30,
    summary: "values at random places, the same at all peers: no places are sent",
    equation: "C(x)_i = x_i at k random places that all peers draw alike, else 0",
    source: "Stich et al., NeurIPS 2018",
    parameters: &[DENSITY, VALUES, DECAY],
    build: |kind| Picked::of(kind, RandomK::new(kind.number("density"), false)),
};

pub(in crate::compress) const UNBIASED_SPEC: CodecSpec = CodecSpec {
    name: "random-k-unbiased",
    tag: 31,
    summary: "values at random places, scaled so that their mean is right",
    equation: "C(x)_i = d / k x_i at k random places that all peers draw alike, else 0",
    source: "Konecny et al., arXiv 1610.05492",
    parameters: &[DENSITY, VALUES],
    build: |kind| Picked::of(kind, RandomK::new(kind.number("density"), true)),
};

/// k of d values, at places that follow from a seed that all peers share.
///
/// ```text
/// k        = ceil(density d)
/// C(x)_i   = x_i at the k places, 0 elsewhere          random-k
/// C(x)_i   = d / k x_i there                           random-k-unbiased
/// ```
///
/// The d places, shifted by a random offset, are cut into k runs, and one place of each run is
/// drawn. Every value is kept with probability k / d, so `E||C(x) - x||^2 = (1 - k / d) ||x||^2`;
/// scaled, it is `(d / k - 1) ||x||^2` with `E C(x) = x`. The papers draw k places of all; each
/// value has the same probability there, so both equations hold too.
///
/// It is linear: with the same seed, encoded contributions may be summed. 4 bytes for each kept
/// value and 17. `random-k` needs error feedback, `random-k-unbiased` does not.
///
/// Layout: the codec's byte, the density (f64), the seed (u64), the values in a codec of their own.
/// Scaled values beyond f32 become the largest f32.
///
/// Source: Stich, Cordonnier and Jaggi, "Sparsified SGD with memory" (NeurIPS 2018), definition 2.2
/// (number not verified); scaled: the random masks of Konecny et al., "Federated learning:
/// strategies for improving communication efficiency" (arXiv 1610.05492).
#[derive(Clone, Copy, Debug)]
pub(in crate::compress) struct RandomK {
    density: f64,
    scaled: bool,
    scale: f32,
}

impl RandomK {
    pub(in crate::compress) const fn new(density: f64, scaled: bool) -> Self {
        Self {
            density,
            scaled,
            scale: 1.0,
        }
    }

    /// The places of a seed, ascending.
    pub(in crate::compress) fn places(&self, len: usize, seed: u64, chosen: &mut Vec<u32>) {
        chosen.clear();
        let count = kept(self.density, len);
        if count == 0 {
            return;
        }
        let random = Random::new(seed);
        let below = |index: u32, most: usize| (u64::from(random.bits(index)) * most as u64) >> 32;
        let offset = below(u32::MAX, len) as usize;
        let (run, longer) = (len / count, len % count);
        // Runs are one longer as often as the remainder asks, spread evenly.
        let (mut first, mut owed, mut ahead) = (0, 0, 0);
        chosen.reserve(count);
        for at in 0..count {
            owed += longer;
            let more = usize::from(owed >= count);
            owed -= more * count;
            let place = first + below(at as u32, run + more) as usize + offset;
            ahead += usize::from(place < len);
            chosen.push(if place < len { place } else { place - len } as u32);
            first += run + more;
        }
        chosen.rotate_left(ahead);
    }
}

impl Pick for RandomK {
    fn properties(&self) -> CodecProperties {
        let properties = match self.scaled {
            _ if self.density == 1.0 => CodecProperties::LOSSLESS,
            true => CodecProperties::random(1.0 / self.density - 1.0),
            false => CodecProperties::biased(1.0 - self.density),
        };
        CodecProperties {
            dense: self.density == 1.0,
            stochastic: true,
            shared_seed: true,
            masks: !self.scaled && self.density < 1.0,
            reduction: Reduction::WhileEncoded,
            ..properties
        }
    }

    fn density_max(&self) -> f64 {
        self.density
    }

    fn choose(
        &mut self,
        source: &mut Source<'_>,
        context: &mut EncodeContext<'_>,
        chosen: &mut Vec<u32>,
    ) {
        let len = source.values().len();
        self.places(len, context.shared_seed, chosen);
        self.scale = len as f32 / chosen.len().max(1) as f32;
    }

    fn rescale(&self, _: &[u32], values: &mut [f32]) {
        if self.scaled {
            for value in values {
                *value = (*value * self.scale).clamp(f32::MIN, f32::MAX);
            }
        }
    }

    fn write_places(&self, _: &[u32], _: usize, context: &EncodeContext<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(&context.shared_seed.to_le_bytes());
    }

    fn read_places<'a>(
        &self,
        bytes: &'a [u8],
        len: usize,
        chosen: &mut Vec<u32>,
    ) -> Result<&'a [u8], CodecError> {
        let (seed, rest) = take(bytes, "seed")?;
        self.places(len, u64::from_le_bytes(seed), chosen);
        Ok(rest)
    }
}
