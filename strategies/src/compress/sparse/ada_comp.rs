//! Codec `ada-comp`: of every bin, the values that the last delta makes the largest. Biased: needs
//! error feedback.

use super::pick::{DECAY, Pick, Picked};
use super::select::{Marks, RUN, Source};
use super::values::SIGNED_VALUES;
use crate::compress::raw::Header;
use crate::compress::simd::{kernel, largest};
use crate::compress::{CodecProperties, CodecSpec, EncodeContext, Parameter, Range};

pub(in crate::compress) const SPEC: CodecSpec = CodecSpec {
    name: "ada-comp",
    tag: 35,
    summary: "of every bin, the values that would be its largest with twice the delta",
    equation: "C(x)_i = G_i where |G_i + x_i| >= max |G| of the bin, G = e + x",
    source: "Chen et al., AAAI 2018",
    parameters: &[BIN, SIGNED_VALUES, DECAY],
    build: |kind| {
        let pick = AdaComp {
            bin: kind.count("bin"),
        };
        Picked::of(kind, pick)
    },
};

const BIN: Parameter = Parameter {
    name: "bin",
    range: Range::Whole(2, 16_384),
    default: Some(500.0),
    about: "the number of values in a bin, such as 50 for convolutions, else 500",
};

/// Adaptive residual compression.
///
/// ```text
/// G       = e + delta,   H = G + delta
/// C(x)_i  = G_i where |H_i| >= max |G| of the bin, 0 elsewhere
/// ```
///
/// The number of kept values adapts: at least one of each bin that is not all zero, or none if the
/// delta reverses every sign in it. The paper sends signs times the mean of the largest of the
/// bins, which may be longer than x. Here the default is signs times the mean magnitude of the kept
/// values, a projection: `||C(x) - x||^2 <= ||x||^2`. 2 to 9 bits for each kept value.
/// Contributions are sent relative to the anchor.
///
/// Layout: the codec's byte, the bin (u16), packed places, the values in a codec of their own.
/// Without error feedback `e = 0`. Zeros are never sent.
///
/// Source: Chen et al., "AdaComp: adaptive residual gradient compression for data-parallel
/// distributed training" (AAAI 2018), algorithm 2 (number not verified).
#[derive(Clone, Copy, Debug)]
struct AdaComp {
    bin: usize,
}

kernel! {
    fn choose_of_bins<'a>(
        values: &'a [f32],
        delta: &'a [f32],
        first: u32,
        bin: usize,
        chosen: &'a mut Vec<u32>,
    ) {
        let bins = values.chunks(bin).zip(delta.chunks(bin));
        // Short bins share a run, and long ones have several.
        let (mut marks, mut marked, mut first) = (Marks([0; RUN]), 0, first);
        for (values, delta) in bins {
            let most = largest(values);
            for (values, delta) in values.chunks(RUN).zip(delta.chunks(RUN)) {
                if marked + values.len() > RUN {
                    marks.0[marked..].fill(0);
                    marks.append(first, chosen);
                    (first, marked) = (first + marked as u32, 0);
                }
                let those = marks.0[marked..].iter_mut().zip(values.iter().zip(delta));
                for (mark, (g, d)) in those {
                    *mark = u8::from(((g + d).abs() >= most) & (*g != 0.0));
                }
                marked += values.len();
            }
        }
        marks.0[marked..].fill(0);
        marks.append(first, chosen);
    }
}

impl Pick for AdaComp {
    fn properties(&self) -> CodecProperties {
        CodecProperties::biased(1.0)
    }

    fn parameters(&self, opening: Header) -> Header {
        opening.with((self.bin as u16).to_le_bytes())
    }

    fn density_max(&self) -> f64 {
        1.0
    }

    fn choose(
        &mut self,
        source: &mut Source<'_>,
        _: &mut EncodeContext<'_>,
        chosen: &mut Vec<u32>,
    ) {
        chosen.clear();
        let bin = self.bin;
        source.each_chunk(bin * (RUN / bin).max(1), |first, values, delta| {
            choose_of_bins(values, delta, first, bin, chosen);
        });
    }
}
