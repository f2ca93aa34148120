//! Codecs `threshold` and `strom`: all values above a fixed threshold. Biased: needs error feedback.

use super::one_scale::OneScale;
use super::pick::{DECAY, Pick, Picked};
use super::select::{Source, magnitude};
use super::values::VALUES;
use crate::compress::raw::Header;
use crate::compress::{CodecProperties, CodecSpec, EncodeContext, Parameter, Range};

pub(in crate::compress) const SPEC: CodecSpec = CodecSpec {
    name: "threshold",
    tag: 33,
    summary: "all values above a fixed threshold",
    equation: "C(x)_i = x_i where |x_i| >= tau, else 0",
    source: "Dutta et al., NeurIPS 2021",
    parameters: &[THRESHOLD, VALUES, DECAY],
    build: |kind| Picked::of(kind, Threshold::new(kind.number("threshold"), false)),
};

pub(in crate::compress) const STROM_SPEC: CodecSpec = CodecSpec {
    name: "strom",
    tag: 34,
    summary: "for each value above a fixed threshold, the threshold with its sign",
    equation: "C(x)_i = tau sgn(x_i) where |x_i| >= tau, else 0",
    source: "Strom, Interspeech 2015",
    parameters: &[THRESHOLD, DECAY],
    build: |kind| {
        let pick = Threshold::new(kind.number("threshold"), true);
        Picked::with(kind, pick, Box::new(OneScale::<true>))
    },
};

const THRESHOLD: Parameter = Parameter {
    name: "threshold",
    range: Range::Closed(1e-30, 1e30),
    default: None,
    about: "the magnitude from which a value is sent, such as 0.001",
};

/// All values of at least a fixed magnitude tau.
///
/// ```text
/// threshold:  C(x)_i = x_i where |x_i| >= tau, 0 elsewhere
/// strom:      C(x)_i = tau sgn(x_i) there
/// ```
///
/// `||C(x) - x||^2 <= ||x||^2`, and for `threshold` `<= d tau^2`. That is no share of `||x||^2`, so
/// C is no contraction, but with error feedback the residual of `threshold` stays below tau in each
/// value. The size depends on how many values reach tau: up to 4.2 bytes for each value (`strom`:
/// 0.25). If none does, the slice has no values. Contributions are sent relative to the anchor.
///
/// Layout: the codec's byte, tau (f32), packed places, the values (`strom`: signs).
///
/// Source: Dutta et al., "Rethinking gradient sparsification as total error minimization" (NeurIPS
/// 2021); Strom, "Scalable distributed DNN training using commodity GPU cloud computing"
/// (Interspeech 2015).
#[derive(Clone, Copy, Debug)]
struct Threshold {
    tau: f32,
    signs: bool,
}

impl Threshold {
    const fn new(tau: f64, signs: bool) -> Self {
        let tau = tau as f32;
        Self { tau, signs }
    }
}

impl Pick for Threshold {
    fn properties(&self) -> CodecProperties {
        CodecProperties::biased(1.0)
    }

    fn parameters(&self, opening: Header) -> Header {
        opening.with(self.tau.to_le_bytes())
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
        source.select(magnitude(self.tau), chosen);
    }

    fn rescale(&self, _: &[u32], values: &mut [f32]) {
        if self.signs {
            values.iter_mut().for_each(|v| *v = self.tau.copysign(*v));
        }
    }
}
