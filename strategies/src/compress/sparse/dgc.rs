//! Codec `dgc`: top-k of momentum-corrected deltas. Biased: needs error feedback, which keeps the
//! sum of the velocities.

use super::largest::Largest;
use super::pick::{DENSITY, Pick, Picked, kept};
use super::select::Source;
use super::top_k;
use super::values::VALUES;
use crate::compress::raw::Header;
use crate::compress::simd::{kernel, sum_of_squares};
use crate::compress::{CodecProperties, CodecSpec, EncodeContext, Parameter, Range};

pub(in crate::compress) const SPEC: CodecSpec = CodecSpec {
    name: "dgc",
    tag: 38,
    summary: "the largest of the summed velocities of the deltas, denser in the first rounds",
    equation: "u' = mu u + x, v' = v + u', C = the k largest of v', u and v zero where sent",
    source: "Lin et al., ICLR 2018",
    parameters: &[DENSITY, MOMENTUM, CLIP, WARM_UP, VALUES],
    build: |kind| {
        let pick = Dgc {
            density: kind.number("density"),
            momentum: kind.number("momentum") as f32,
            clip: kind.number("clip"),
            warm_up: kind.count("warm_up") as u32,
            largest: Largest::default(),
        };
        Picked::of(kind, pick)
    },
};

const MOMENTUM: Parameter = Parameter {
    name: "momentum",
    range: Range::Closed(0.0, 0.999_999),
    default: Some(0.9),
    about: "the factor on the velocity in each round, such as 0.9",
};

const CLIP: Parameter = Parameter {
    name: "clip",
    range: Range::Closed(0.0, 1e30),
    default: Some(0.0),
    about: "the largest 2-norm of a delta; longer ones are shortened to it; 0 for no limit",
};

const WARM_UP: Parameter = Parameter {
    name: "warm_up",
    range: Range::Whole(0, 1_000_000),
    default: Some(0.0),
    about: "rounds with each of the densities 1/4, 1/16, 1/64, .. at the beginning; 0 for none",
};

/// Deep gradient compression.
///
/// ```text
/// g_t = delta_t min(1, clip / ||delta_t||)                     local clipping
/// u_t = m u_{t-1} + g_t,   v_t = v_{t-1} + u_t                 momentum correction
/// C_t = the k of v_t that are largest;  v = v - C_t, u = 0 at these places     factor masking
/// k   = ceil(density_t d),  density_t = max(density, 4^-(1 + floor(t / warm_up)))
/// ```
///
/// v is the residual, and u takes another value for each parameter. The sent values sum to the
/// velocities, not to the deltas, so the inner and the outer optimizer need no momentum of their
/// own. `||C(v) - v||^2 <= (1 - density) ||v||^2`. A void round returns v without what the masked u
/// would have added. Without error feedback it is `top-k`.
///
/// Layout: as `top-k`, with momentum (f32), clip (f64) and warm-up (u32) after the density.
///
/// Parameters: `density`, the share of the values that are kept, in (0, 1]; `momentum`, m, the
/// factor on the velocity in each round; `clip`, the largest 2-norm of a peer's delta, 0 for no
/// limit (the paper's threshold over the root of the number of peers); `warm_up`, the rounds with
/// each initial density; `values`, the codec that writes the kept values.
///
/// Source: Lin et al., "Deep gradient compression" (ICLR 2018), section 3 and its algorithms
/// (numbers not verified).
#[derive(Clone, Debug)]
struct Dgc {
    density: f64,
    momentum: f32,
    clip: f64,
    warm_up: u32,
    largest: Largest,
}

impl Dgc {
    fn density_at(&self, round: u64) -> f64 {
        let Some(quarters) = round.checked_div(self.warm_up.into()) else {
            return self.density;
        };
        0.25f64.powi(1 + quarters.min(60) as i32).max(self.density)
    }
}

kernel! {
    fn norm<'a>(values: &'a [f32]) -> f64 {
        sum_of_squares(values).sqrt()
    }

    fn accelerate<'a>(
        delta: &'a [f32],
        residual: &'a mut [f32],
        velocity: &'a mut [f32],
        momentum: f32,
        share: f32,
    ) {
        let all = velocity.iter_mut().zip(delta);
        for (e, (u, d)) in residual.iter_mut().zip(all) {
            *u = momentum * *u + share * d;
            *e += *u;
        }
    }
}

impl Pick for Dgc {
    fn properties(&self) -> CodecProperties {
        CodecProperties {
            lossless: false,
            planes: 1,
            ..top_k::properties(self.density)
        }
    }

    fn parameters(&self, opening: Header) -> Header {
        opening
            .with((self.density as f32).to_le_bytes())
            .with(self.momentum.to_le_bytes())
            .with(self.clip.to_le_bytes())
            .with(self.warm_up.to_le_bytes())
    }

    fn density_max(&self) -> f64 {
        self.density_at(0)
    }

    fn choose(
        &mut self,
        source: &mut Source<'_>,
        context: &mut EncodeContext<'_>,
        chosen: &mut Vec<u32>,
    ) {
        if let Source::Feedback {
            delta,
            residual,
            folded,
            ..
        } = source
            && context.planes[0].len() == delta.len()
        {
            let norm = if self.clip > 0.0 { norm(delta) } else { 0.0 };
            let share = if norm > self.clip {
                self.clip / norm
            } else {
                1.0
            };
            accelerate(
                delta,
                residual,
                context.planes[0],
                self.momentum,
                share as f32,
            );
            *folded = delta.len();
        }
        let kept = kept(self.density_at(context.round), source.len());
        self.largest.choose(source, kept, context.seed, chosen);
        for place in chosen {
            if let Some(velocity) = context.planes[0].get_mut(*place as usize) {
                *velocity = 0.0;
            }
        }
    }
}
