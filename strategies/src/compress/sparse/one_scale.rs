//! One magnitude for all values, with a sign for each or one sign for all. Ternary and binary
//! sparsifiers write their values in it. It is not in the list of codecs, because it does not
//! contract by itself.

use crate::compress::raw::{expect_len, expect_tag, take};
use crate::compress::simd::{kernel, sum_of_magnitudes, to_finite};
use crate::compress::{Codec, CodecError, CodecProperties, EncodeContext, F32};
use murmurate_protocol::BytesBound;

/// The name of the variant with a sign for each value.
pub(in crate::compress) const SIGNED: &str = "sign-mean";

/// `C(x)_i = mu sgn(x_i)` with `mu = mean |x|` over all values. Without signs, all have the sign of
/// the first value.
///
/// It is the projection of x onto its signs: `||C(x) - x||^2 = ||x||^2 - d mu^2 <= ||x||^2`.
/// Layout: the codec's byte, the magnitude (f32; without signs it has the sign of all), signs in
/// bits, lowest first. Without values mu is zero.
#[derive(Clone, Copy, Debug)]
pub(in crate::compress) struct OneScale<const SIGNS: bool>;

/// The opening byte of `values = "sign-mean"`.
const SIGN_MEAN_TAG: u8 = 43;

/// The opening byte of the values of `sbc`.
const MEAN_TAG: u8 = 44;

impl<const SIGNS: bool> OneScale<SIGNS> {
    const TAG: u8 = if SIGNS { SIGN_MEAN_TAG } else { MEAN_TAG };
}

kernel! {
    /// `sum |x|`, in f64.
    pub(in crate::compress) fn magnitudes<'a>(values: &'a [f32]) -> f64 {
        sum_of_magnitudes(values)
    }
}

impl<const SIGNS: bool> Codec for OneScale<SIGNS> {
    fn properties(&self) -> CodecProperties {
        CodecProperties::biased(1.0)
    }

    fn bytes_bound(&self) -> BytesBound {
        BytesBound {
            fixed: 1 + 4 + 1,
            per_1024: if SIGNS { 128 } else { 0 },
        }
    }

    fn encode(&mut self, values: &[f32], _: &mut EncodeContext<'_>, out: &mut Vec<u8>) {
        let mean = to_finite(magnitudes(values) / values.len().max(1) as f64);
        let negative = values.first().is_some_and(|value| value.is_sign_negative());
        let mean = if !SIGNS && negative { -mean } else { mean };
        out.push(Self::TAG);
        out.extend_from_slice(&mean.to_le_bytes());
        if SIGNS {
            out.extend(values.chunks(8).map(|eight| {
                let bits = eight.iter().enumerate();
                bits.fold(0u8, |byte, (at, value)| {
                    byte | u8::from(value.is_sign_negative()) << at
                })
            }));
        }
    }

    fn decode_add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) -> Result<(), CodecError> {
        let (mean, signs) = take(expect_tag(bytes, Self::TAG)?, "scale")?;
        let mean = f32::from_le_bytes(mean);
        if !mean.is_finite() {
            return Err(CodecError::NotFinite { field: "scale" });
        }
        if SIGNS && mean.is_sign_negative() {
            return Err(CodecError::OutOfRange { field: "scale" });
        }
        let needed = if SIGNS { acc.len().div_ceil(8) } else { 0 };
        expect_len(signs, needed, "signs")?;
        if let (true, Some(last), used @ 1..) = (SIGNS, signs.last(), acc.len() % 8)
            && last >> used != 0
        {
            return Err(CodecError::OutOfRange { field: "signs" });
        }
        for (at, value) in acc.iter_mut().enumerate() {
            let negative = SIGNS && signs[at / 8] >> (at % 8) & 1 == 1;
            *value += weight * if negative { -mean } else { mean };
        }
        Ok(())
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        Box::new(F32)
    }
}
