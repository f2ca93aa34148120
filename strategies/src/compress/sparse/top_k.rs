//! Codecs `top-k` and `stc`: the largest values with their places. Biased: needs error feedback.

use super::largest::Largest;
use super::one_scale::OneScale;
use super::pick::{DECAY, DENSITY, Pick, Picked, kept};
use super::select::Source;
use super::values::VALUES;
use crate::compress::{CodecProperties, CodecSpec, EncodeContext};

pub(in crate::compress) const SPEC: CodecSpec = CodecSpec {
    name: "top-k",
    tag: 25,
    summary: "the largest values: about 5 bytes for each",
    equation: "C(x)_i = x_i where |x_i| is among the density * len largest, else 0",
    source: "Aji and Heafield, EMNLP 2017; Stich et al., NeurIPS 2018",
    parameters: &[DENSITY, VALUES, DECAY],
    build: |kind| Picked::of(kind, TopK::new(kind.number("density"))),
};

pub(in crate::compress) const STC_SPEC: CodecSpec = CodecSpec {
    name: "stc",
    tag: 37,
    summary: "the largest values as signs of one magnitude: about 9 bits for each",
    equation: "C(x)_i = mu sgn(x_i) where |x_i| is among the k largest, mu their mean magnitude",
    source: "Sattler et al., IEEE Trans. Neural Netw. Learn. Syst. 2020",
    parameters: &[DENSITY, DECAY],
    build: |kind| {
        let pick = TopK::new(kind.number("density"));
        Picked::with(kind, pick, Box::new(OneScale::<true>))
    },
};

/// The k values of largest magnitude, exactly.
///
/// ```text
/// k       = ceil(density * len)
/// C(x)_i  = x_i where |x_i| is among the k largest (ties: the lowest index), 0 elsewhere
/// stc:      mu sgn(x_i) there, with mu the mean of those k magnitudes
/// ```
///
/// `top-k`: `||C(x) - x||^2 <= (1 - k / len) ||x||^2`. `stc` is a projection, so its error is never
/// longer than x; no constant is published. Zeros are never sent, even if fewer than k values are
/// not zero. `density = 1` with exact values is lossless. Contributions are sent relative to the
/// anchor.
///
/// Layout: the codec's byte, the density (f64, little-endian), packed [places](super::places), the
/// values in a codec of their own; about 8.1 bits for a place at a density of 0.01.
///
/// Source: Aji and Heafield, "Sparse communication for distributed gradient descent" (EMNLP 2017);
/// contraction: Stich, Cordonnier and Jaggi, "Sparsified SGD with memory" (NeurIPS 2018), lemma
/// A.1; with a quantizer for the values: Basu et al., "Qsparse-local-SGD" (NeurIPS 2019); `stc`:
/// Sattler et al., "Robust and communication-efficient federated learning from non-iid data" (IEEE
/// TNNLS 2020), algorithm 1 (number not verified).
#[derive(Clone, Debug)]
pub(in crate::compress) struct TopK {
    density: f64,
    largest: Largest,
}

impl TopK {
    pub(in crate::compress) fn new(density: f64) -> Self {
        let largest = Largest::default();
        Self { density, largest }
    }
}

/// Properties of a codec that keeps at least this share of the values, the largest of them.
pub(in crate::compress) fn properties(density: f64) -> CodecProperties {
    if density == 1.0 {
        return CodecProperties::LOSSLESS;
    }
    CodecProperties::biased(1.0 - density)
}

impl Pick for TopK {
    fn properties(&self) -> CodecProperties {
        properties(self.density)
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
        let kept = kept(self.density, source.len());
        self.largest.choose(source, kept, context.seed, chosen);
    }
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;
    use crate::compress::{Codec, CodecError, CodecKind};

    fn top_k(density: f64) -> Box<dyn Codec> {
        CodecKind::new("top-k", &[("density", density)])
            .unwrap()
            .build()
    }

    fn encoded(codec: &mut dyn Codec, values: &[f32]) -> Vec<u8> {
        let (mut bytes, mut memory) = (Vec::new(), Vec::new());
        let mut context = EncodeContext::seeded(0, &mut memory);
        codec.encode(values, &mut context, &mut bytes);
        bytes
    }

    fn decoded(codec: &mut dyn Codec, values: &[f32]) -> Vec<f32> {
        let (bytes, mut acc) = (encoded(codec, values), vec![0.0; values.len()]);
        codec.decode_add(&bytes, 1.0, &mut acc).unwrap();
        acc
    }

    #[test]
    fn keeps_the_largest_and_of_equals_the_first() {
        let values = [0.5, -3.0, 1.0, -1.0, 1.0, 0.0, 2.0, 1.0];
        let kept = decoded(&mut *top_k(0.5), &values);
        assert_eq!(kept, [0.0, -3.0, 1.0, -1.0, 0.0, 0.0, 2.0, 0.0]);
    }

    #[test]
    fn keeps_what_a_full_sort_keeps() {
        // Few values, many ties; many values, so that a sample leads; and one that it misleads,
        // because all that is large lies at one place.
        let hash = |i: u32| i.wrapping_mul(2_654_435_761) >> 7;
        let ties: Vec<f32> = (0..4097).map(|i| (hash(i) % 101) as f32 - 50.0).collect();
        let many: Vec<f32> = (0..200_001).map(|i| hash(i) as f32 - 1.6e7).collect();
        let mut lump = many.clone();
        lump[77_000..79_000].iter_mut().for_each(|v| *v *= 1e3);
        for values in [ties, many, lump] {
            for density in [0.001, 0.03, 0.25, 0.5, 0.99] {
                let mut order: Vec<usize> = (0..values.len()).collect();
                order.sort_by(|&a, &b| values[b].abs().total_cmp(&values[a].abs()).then(a.cmp(&b)));
                let mut expected = vec![0.0; values.len()];
                for &i in &order[..kept(density, values.len())] {
                    expected[i] = values[i];
                }
                let found = decoded(&mut *top_k(density), &values);
                assert!(found == expected, "density {density}");
            }
        }
    }

    #[test]
    fn zeros_are_not_sent() {
        let mut values = vec![0.0; 1000];
        values[500] = 1.0;
        let bytes = encoded(&mut *top_k(0.5), &values);
        assert!(bytes.len() <= 9 + 5 + 3 + 5, "{} bytes", bytes.len());
        assert_eq!(decoded(&mut *top_k(0.5), &values), values);
    }

    #[test]
    fn more_values_than_the_density_allows_are_refused() {
        let mut body = vec![SPEC.tag];
        body.extend_from_slice(&0.1f64.to_le_bytes());
        places::write(&(0..11).collect::<Vec<_>>(), 100, &mut body);
        let refused = top_k(0.1).decode_add(&body, 1.0, &mut [0.0; 100]);
        assert_eq!(refused, Err(CodecError::OutOfRange { field: "count" }));
    }
}
