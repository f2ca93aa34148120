//! Codec `sbc`: the largest values of one sign, all replaced by their mean. Biased: needs error feedback.

use super::largest::Largest;
use super::one_scale::{OneScale, magnitudes};
use super::pick::{DECAY, DENSITY, Pick, Picked, kept};
use super::select::{Sign, Source};
use crate::compress::{CodecProperties, CodecSpec, EncodeContext};

pub(in crate::compress) const SPEC: CodecSpec = CodecSpec {
    name: "sbc",
    tag: 36,
    summary: "the largest values of one sign, all as their mean: about 8 bits for each",
    equation: "C(x)_i = mu at the k largest of one sign, mu their mean, else 0",
    source: "Sattler et al., IJCNN 2019",
    parameters: &[DENSITY, DECAY],
    build: |kind| {
        let pick = Sbc {
            density: kind.number("density"),
            largest: Largest::default(),
            positive: Vec::new(),
            kept: Vec::new(),
        };
        Picked::with(kind, pick, Box::new(OneScale::<false>))
    },
};

/// Sparse binary compression.
///
/// ```text
/// k       = ceil(density d)
/// mu+     = mean of the k largest of the positive values, mu- that of the k least of the others
/// C(x)_i  = mu+ at those places, 0 elsewhere, where mu+ >= mu-; else -mu- at the others
/// ```
///
/// A projection: `||C(x) - x||^2 = ||x||^2 - k mu^2 <= ||x||^2`; no constant is published. About
/// 8.1 bits for each kept value at a density of 0.01, all of them for its place. With fewer than k
/// values of a sign, all of them are kept. Contributions are sent relative to the anchor.
///
/// Layout: the codec's byte, the density (f64), packed places, the mean (f32).
///
/// Source: Sattler et al., "Sparse binary compression" (IJCNN 2019), algorithm 2 (number not
/// verified).
#[derive(Clone, Debug)]
struct Sbc {
    density: f64,
    largest: Largest,
    positive: Vec<u32>,
    kept: Vec<f32>,
}

impl Sbc {
    fn mean(&mut self, values: &[f32], chosen: &[u32]) -> f64 {
        self.kept.clear();
        let kept = chosen.iter().map(|place| values[*place as usize]);
        self.kept.extend(kept);
        magnitudes(&self.kept) / chosen.len().max(1) as f64
    }
}

impl Pick for Sbc {
    fn properties(&self) -> CodecProperties {
        CodecProperties::biased(1.0)
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
        let values = source.values();
        let kept = kept(self.density, values.len());
        let mut positive = core::mem::take(&mut self.positive);
        let (largest, seed) = (&mut self.largest, context.seed);
        largest.choose_sign(values, Sign::PLUS, kept, seed, &mut positive);
        largest.choose_sign(values, Sign::MINUS, kept, seed, chosen);
        if self.mean(values, &positive) >= self.mean(values, chosen) {
            core::mem::swap(&mut positive, chosen);
        }
        self.positive = positive;
    }
}
