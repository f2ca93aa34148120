//! Codes of 1, 2, 4 or 8 bits in bytes, in planes: byte j holds codes j, j + n, j + 2 n and so on,
//! lowest bits first, with n the number of bytes. All bytes then need the same operation, which
//! suits vector instructions. Codes beyond the last are zero.

use crate::compress::CodecError;

/// The bytes that this number of codes takes.
#[inline(always)]
pub(super) const fn bytes_for(len: usize, bits: u32) -> usize {
    len.div_ceil((8 / bits) as usize)
}

/// The place of plane `plane` among `len` codes in `stride` bytes.
#[inline(always)]
fn plane_range(plane: u32, stride: usize, len: usize) -> core::ops::Range<usize> {
    let start = plane as usize * stride;
    start.min(len)..(start + stride).min(len)
}

/// Writes `code(index, value)`, a number below `2^bits`, for every value. Indices and codes are as
/// wide as the values, so that they share vectors.
#[inline(always)]
pub(super) fn write(values: &[f32], bits: u32, bytes: &mut [u8], code: impl Fn(u32, f32) -> u32) {
    bytes.fill(0);
    for plane in 0..8 / bits {
        let range = plane_range(plane, bytes.len(), values.len());
        let (indices, shift) = (range.start as u32.., plane * bits);
        for (index, (byte, value)) in indices.zip(bytes.iter_mut().zip(&values[range])) {
            *byte |= (code(index, *value) << shift) as u8;
        }
    }
}

/// `acc += weight * value(code)`.
#[inline(always)]
pub(super) fn add(
    bytes: &[u8],
    bits: u32,
    weight: f32,
    acc: &mut [f32],
    value: impl Fn(u32) -> f32,
) {
    let (stride, len) = (bytes.len(), acc.len());
    let mask = 0xffu32 >> (8 - bits);
    for plane in 0..8 / bits {
        let shift = plane * bits;
        let run = &mut acc[plane_range(plane, stride, len)];
        for (a, byte) in run.iter_mut().zip(bytes) {
            *a += weight * value((u32::from(*byte) >> shift) & mask);
        }
    }
}

/// Refuses codes above `most`, and codes beyond the last of `len` that are not zero.
#[inline(always)]
pub(super) fn check(bytes: &[u8], bits: u32, len: usize, most: u8) -> Result<(), CodecError> {
    let mask = (0xffu32 >> (8 - bits)) as u8;
    let mut bad = false;
    for plane in 0..8 / bits {
        let shift = plane * bits;
        if most < mask {
            bad |= bytes
                .iter()
                .fold(false, |seen, byte| seen | ((byte >> shift) & mask > most));
        }
        let used = plane_range(plane, bytes.len(), len).len();
        bad |= bytes[used..].iter().any(|byte| (byte >> shift) & mask != 0);
    }
    if bad {
        Err(CodecError::OutOfRange { field: "values" })
    } else {
        Ok(())
    }
}
