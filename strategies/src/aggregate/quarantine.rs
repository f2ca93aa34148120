//! Quarantine: checks of values from a peer before they are used.

/// Root mean square above which values are refused. Parameters, deltas and gradients of a model
/// that trains stay orders of magnitude below.
pub const RMS_MAX: f64 = 1e6;

/// Why values are refused.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Quarantined {
    /// NaN or infinity among them.
    #[error("a value is not finite")]
    NotFinite,
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
    let (chunks, rest) = values.as_chunks::<8>();
    let mut lanes = [0.0f64; 8];
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += f64::from(*value) * f64::from(*value);
        }
    }
    let rest = rest
        .iter()
        .map(|value| f64::from(*value) * f64::from(*value));
    lanes.into_iter().chain(rest).sum::<f64>().sqrt()
}

/// Refuses NaN, infinity, and norms above `rms_max * sqrt(len)`; [`RMS_MAX`] if the method has
/// no tighter limit. Returns the norm.
///
/// # Errors
/// What is wrong with the values.
pub fn quarantine(values: &[f32], rms_max: f64) -> Result<f64, Quarantined> {
    let norm = norm(values);
    let limit = rms_max * (values.len() as f64).sqrt();
    if !norm.is_finite() {
        return Err(Quarantined::NotFinite);
    }
    if norm > limit {
        Err(Quarantined::Norm { norm, limit })
    } else {
        Ok(norm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sound_values_pass_with_their_norm() {
        let values = vec![3.0f32; 100];
        assert_eq!(quarantine(&values, RMS_MAX), Ok(30.0));
        assert_eq!(quarantine(&[], RMS_MAX), Ok(0.0));
    }

    #[test]
    fn one_bad_value_anywhere_is_enough() {
        for place in 0..19 {
            for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let mut values = vec![1.0f32; 19];
                values[place] = bad;
                assert_eq!(quarantine(&values, RMS_MAX), Err(Quarantined::NotFinite));
            }
        }
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
