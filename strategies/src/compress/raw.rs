//! What the codecs share: little-endian runs of f32, checks before anything is added. The loops go
//! over arrays of a fixed size, so that the compiler turns them into vector instructions.

use super::CodecError;

/// The byte that opens an encoding and names its codec. Never reused for another layout.
pub(super) mod tag {
    pub(in crate::compress) const F32: u8 = 1;
    pub(in crate::compress) const BF16: u8 = 2;
    pub(in crate::compress) const SPARSE: u8 = 5;
    // 3 was int8 with all scales first, 4 was top-k with a body of `sparse`.
    pub(in crate::compress) const INT8: u8 = 6;
    pub(in crate::compress) const INT4: u8 = 7;
    pub(in crate::compress) const INT8_MIN_MAX: u8 = 8;
    pub(in crate::compress) const INT4_MIN_MAX: u8 = 9;
    pub(in crate::compress) const FP16: u8 = 10;
    pub(in crate::compress) const FP8_E4M3: u8 = 11;
    pub(in crate::compress) const FP8_E5M2: u8 = 12;
    pub(in crate::compress) const FP4_E3M0: u8 = 13;
    pub(in crate::compress) const QSGD: u8 = 14;
    pub(in crate::compress) const NUQSGD: u8 = 15;
    pub(in crate::compress) const TERN_GRAD: u8 = 16;
    pub(in crate::compress) const NATURAL: u8 = 17;
    pub(in crate::compress) const ONE_BIT: u8 = 18;
    pub(in crate::compress) const TWO_BIT: u8 = 19;
    pub(in crate::compress) const SIGN_SGD: u8 = 20;
    pub(in crate::compress) const EF_SIGN: u8 = 21;
    pub(in crate::compress) const ROTATED: u8 = 22;
    pub(in crate::compress) const DRIVE: u8 = 23;
    pub(in crate::compress) const EDEN: u8 = 24;
    pub(in crate::compress) const TOP_K: u8 = 25;
    pub(in crate::compress) const TOP_K_SAMPLED: u8 = 26;
    pub(in crate::compress) const GAUSSIAN_K: u8 = 27;
    pub(in crate::compress) const SIDCO: u8 = 28;
    pub(in crate::compress) const CHUNK_TOP_K: u8 = 29;
    pub(in crate::compress) const RANDOM_K: u8 = 30;
    pub(in crate::compress) const RANDOM_K_UNBIASED: u8 = 31;
    pub(in crate::compress) const WANGNI: u8 = 32;
    pub(in crate::compress) const THRESHOLD: u8 = 33;
    pub(in crate::compress) const STROM: u8 = 34;
    pub(in crate::compress) const ADA_COMP: u8 = 35;
    pub(in crate::compress) const SBC: u8 = 36;
    pub(in crate::compress) const STC: u8 = 37;
    pub(in crate::compress) const DGC: u8 = 38;
    pub(in crate::compress) const DE_MO: u8 = 39;
    pub(in crate::compress) const POWER_SGD: u8 = 40;
    pub(in crate::compress) const ATOMO: u8 = 41;
    pub(in crate::compress) const COUNT_SKETCH: u8 = 42;
    pub(in crate::compress) const SIGN_MEAN: u8 = 43;
    pub(in crate::compress) const MEAN: u8 = 44;
    pub(in crate::compress) const BY_SIZE: u8 = 45;
    pub(in crate::compress) const EF21: u8 = 47;
    pub(in crate::compress) const DIANA: u8 = 48;
    pub(in crate::compress) const LAG: u8 = 49;
    pub(in crate::compress) const G_TOP_K: u8 = 50;
    pub(in crate::compress) const OK_TOP_K: u8 = 51;
    pub(in crate::compress) const CLT_K: u8 = 52;
    pub(in crate::compress) const ACP_SGD: u8 = 53;
    pub(in crate::compress) const FETCH_SGD: u8 = 54;
    pub(in crate::compress) const DOUBLE_SQUEEZE: u8 = 55;
    pub(in crate::compress) const SUFFICIENT_FACTORS: u8 = 56;
}

/// Values that are converted on the stack before they are appended: small enough for the first
/// cache, so that the output is written to memory once and never zeroed first.
pub(super) const BATCH: usize = 1024;

/// Takes the opening byte off, if it is the right one.
pub(super) fn expect_tag(bytes: &[u8], expected: u8) -> Result<&[u8], CodecError> {
    match bytes.split_first() {
        None => Err(CodecError::Length {
            field: "codec",
            needed: 1,
            found: 0,
        }),
        Some((&found, rest)) if found == expected => Ok(rest),
        Some((&found, _)) => Err(CodecError::Codec { expected, found }),
    }
}

/// Takes the first `N` bytes off.
pub(super) fn take<'a, const N: usize>(
    bytes: &'a [u8],
    field: &'static str,
) -> Result<([u8; N], &'a [u8]), CodecError> {
    let found = bytes.len();
    let (head, rest) = bytes.split_first_chunk().ok_or(CodecError::Length {
        field,
        needed: N,
        found,
    })?;
    Ok((*head, rest))
}

/// Refuses any other number of bytes than `needed`.
pub(super) fn expect_len(
    bytes: &[u8],
    needed: usize,
    field: &'static str,
) -> Result<(), CodecError> {
    let found = bytes.len();
    if found == needed {
        Ok(())
    } else {
        Err(CodecError::Length {
            field,
            needed,
            found,
        })
    }
}

/// Appends values as little-endian f32.
pub(super) fn push_f32s(values: &[f32], out: &mut Vec<u8>) {
    let mut batch = [0u8; 4 * BATCH];
    for run in values.chunks(BATCH) {
        for (bytes, value) in batch.as_chunks_mut::<4>().0.iter_mut().zip(run) {
            *bytes = value.to_le_bytes();
        }
        out.extend_from_slice(&batch[..4 * run.len()]);
    }
}

/// Whether all little-endian f32 are finite. Adding one to a full exponent carries into the sign
/// bit, which needs no branch.
pub(super) fn all_finite(bytes: &[u8]) -> bool {
    let carried = bytes.as_chunks::<4>().0.iter().fold(0u32, |seen, b| {
        seen | ((u32::from_le_bytes(*b) & 0x7fff_ffff) + 0x0080_0000)
    });
    carried & 0x8000_0000 == 0
}

/// Refuses little-endian f32 that are not all finite.
pub(super) fn expect_finite(bytes: &[u8], field: &'static str) -> Result<(), CodecError> {
    if all_finite(bytes) {
        Ok(())
    } else {
        Err(CodecError::NotFinite { field })
    }
}

/// `acc += weight * values`, with values as little-endian f32.
pub(super) fn add_f32s(bytes: &[u8], weight: f32, acc: &mut [f32]) {
    for (a, b) in acc.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *a += weight * f32::from_le_bytes(*b);
    }
}
