//! Quarantine: checks of values from a peer before they are used.

use crate::compress::simd::{Kernel, vectorized};

/// Root mean square above which values are refused. Parameters, deltas and gradients of a model
/// that trains stay orders of magnitude below.
pub const RMS_MAX: f64 = 1e6;

/// How many times larger than the parameters the change of one round may be.
const CHANGE_MAX: f64 = 100.0;

/// Changes up to this root mean square are never refused: parameters may begin near zero.
const CHANGE_SMALL: f64 = 10.0;

/// Values that an estimate of a root mean square looks at.
const SAMPLED: usize = 4096;

/// Why values are refused.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Quarantined {
    /// NaN or infinity among them.
    #[error("a value is not finite")]
    NotFinite,
    /// They would change the parameters beyond recognition.
    #[error(
        "it would change the parameters by {change:.1e} where they are {parameters:.1e} (root mean square): the \
         training has diverged, or another model was loaded"
    )]
    Change {
        /// Root mean square of the change.
        change: f64,
        /// Root mean square of the parameters.
        parameters: f64,
    },
    /// Their norm is absurd.
    #[error("the norm {norm:.3e} is above the limit of {limit:.3e}")]
    Norm {
        /// Their norm.
        norm: f64,
        /// The limit.
        limit: f64,
    },
}

/// `||values||_2`, in f64: not finite exactly if some value is not. Summed in eight lanes and then
/// across them, the same on every machine.
pub fn norm(values: &[f32]) -> f64 {
    let mut norm = Norm::default();
    norm.take(values);
    norm.finish()
}

/// The number of lanes in which squares are summed.
const LANES: usize = 8;

/// [`norm`] of values that come in runs. All but the last are a multiple of eight values long.
#[derive(Clone, Debug, Default)]
pub struct Norm {
    lanes: [f64; LANES],
    /// What the last run had beyond whole lanes.
    rest: [f64; LANES],
    values: usize,
}

impl Norm {
    /// Takes in the next run.
    ///
    /// # Panics
    /// If the run before it was not whole lanes.
    pub fn take(&mut self, values: &[f32]) {
        assert!(self.values.is_multiple_of(LANES), "runs are whole lanes");
        self.values += values.len();
        let (lanes, rest) = values.as_chunks::<LANES>();
        self.lanes = vectorized(Squares {
            sums: self.lanes,
            lanes,
        });
        for (sum, value) in self.rest.iter_mut().zip(rest) {
            *sum = f64::from(*value) * f64::from(*value);
        }
    }

    /// The norm of all values taken in.
    pub fn finish(&self) -> f64 {
        let rest = &self.rest[..self.values % LANES];
        self.lanes.iter().chain(rest).sum::<f64>().sqrt()
    }

    /// As [`quarantine`] of all values taken in.
    ///
    /// # Errors
    /// [`Quarantined::NotFinite`] for NaN or infinity, [`Quarantined::Norm`] for a norm above the limit.
    pub fn quarantine(&self, rms_max: f64) -> Result<f64, Quarantined> {
        let norm = self.finish();
        let limit = rms_max * (self.values as f64).sqrt();
        if !norm.is_finite() {
            return Err(Quarantined::NotFinite);
        }
        if norm > limit {
            Err(Quarantined::Norm { norm, limit })
        } else {
            Ok(norm)
        }
    }
}

struct Squares<'a> {
    sums: [f64; LANES],
    lanes: &'a [[f32; LANES]],
}

impl Kernel for Squares<'_> {
    type Output = [f64; LANES];

    #[inline(always)]
    fn run(self) -> [f64; LANES] {
        let mut sums = self.sums;
        for values in self.lanes {
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum += f64::from(*value) * f64::from(*value);
            }
        }
        sums
    }
}

/// Check that all values are finite: a quarter of the work of their [`norm`].
pub fn all_finite(values: &[f32]) -> bool {
    vectorized(Finite(values))
}

struct Finite<'a>(&'a [f32]);

impl Kernel for Finite<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        // Adding one to a full exponent carries into the sign bit, which needs no branch.
        let carried = self.0.iter().fold(0u32, |seen, value| {
            seen | ((value.to_bits() & 0x7fff_ffff) + 0x0080_0000)
        });
        carried & 0x8000_0000 == 0
    }
}

/// Refuses NaN, infinity, and norms above `rms_max * sqrt(len)`; [`RMS_MAX`] if the method has
/// no tighter limit. Returns the norm.
///
/// # Errors
/// [`Quarantined::NotFinite`] for NaN or infinity, [`Quarantined::Norm`] for a norm above the limit.
pub fn quarantine(values: &[f32], rms_max: f64) -> Result<f64, Quarantined> {
    let mut norm = Norm::default();
    norm.take(values);
    norm.quarantine(rms_max)
}

/// Refuses a change that is absurd beside the parameters that all members hold: more than a hundred times as
/// large, and above 10. Looks at some thousand values; of the parameters, which only give a scale, at cache lines.
///
/// # Errors
/// [`Quarantined::Change`].
pub fn quarantine_change(change: &[f32], parameters: &[f32]) -> Result<(), Quarantined> {
    let rms = |values: &[f32], line: usize| {
        let step = values.len().div_ceil(SAMPLED).max(1);
        let some = values.chunks(line).step_by(step).flatten();
        let count = some.clone().count() as f64;
        (some.map(|v| f64::from(*v).powi(2)).sum::<f64>() / count).sqrt()
    };
    let (change, parameters) = (rms(change, 1), rms(parameters, 16));
    let absurd = parameters > 0.0 && change > (CHANGE_MAX * parameters).max(CHANGE_SMALL);
    if absurd {
        Err(Quarantined::Change { change, parameters })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_judged_by_the_parameters_that_it_changes() {
        let parameters = vec![0.05f32; 10_000];
        for (change, fits) in [(1e5, false), (10.1, false), (9.9, true), (0.0, true)] {
            let judged = quarantine_change(&vec![change; 10_000], &parameters);
            assert_eq!(judged.is_ok(), fits, "{change}: {judged:?}");
        }
        // Parameters that begin at zero, or near it, may go anywhere at first.
        assert!(quarantine_change(&[50.0; 9], &[0.0; 9]).is_ok());
        assert!(quarantine_change(&[9.0; 9], &[1e-9; 9]).is_ok());
        assert!(quarantine_change(&[], &[]).is_ok());
        // A stretch of the change is found that is longer than the places that are looked at lie apart.
        let mut change = vec![0.0; 1_000_000];
        change[400_100..400_400].fill(1e9);
        assert!(quarantine_change(&change, &vec![0.05; 1_000_000]).is_err());
    }

    #[test]
    fn sound_values_pass_with_their_norm() {
        let values = vec![3.0f32; 100];
        assert_eq!(quarantine(&values, RMS_MAX), Ok(30.0));
        assert_eq!(quarantine(&[], RMS_MAX), Ok(0.0));
        assert!(all_finite(&values) && all_finite(&[f32::MAX, f32::MIN, 0.0]));
    }

    #[test]
    fn one_bad_value_anywhere_is_enough() {
        for place in 0..19 {
            for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let mut values = vec![1.0f32; 19];
                values[place] = bad;
                assert_eq!(quarantine(&values, RMS_MAX), Err(Quarantined::NotFinite));
                assert!(!all_finite(&values));
            }
        }
    }

    #[test]
    fn a_norm_in_runs_has_the_same_bits() {
        let values: Vec<f32> = (0..1003).map(|at| (at as f32).sin() * 1e3).collect();
        let mut sums = [0.0f64; 8];
        for (at, value) in values[..1000].iter().enumerate() {
            sums[at % 8] += f64::from(*value).powi(2);
        }
        let rest = values[1000..].iter().map(|v| f64::from(*v).powi(2));
        let expected: f64 = sums.into_iter().chain(rest).sum::<f64>().sqrt();
        let mut norm = Norm::default();
        for run in values.chunks(64) {
            norm.take(run);
        }
        assert_eq!(norm.finish().to_bits(), expected.to_bits());
        assert_eq!(super::norm(&values).to_bits(), expected.to_bits());
    }

    #[test]
    fn absurd_norms_are_refused_even_where_squares_overflow_f32() {
        assert!(matches!(
            quarantine(&[f32::MAX; 9], RMS_MAX),
            Err(Quarantined::Norm { .. })
        ));
        assert!(quarantine(&[1.0, 7.0], 5.0).is_ok());
        assert!(quarantine(&[1.0, 7.1], 5.0).is_err());
    }
}
