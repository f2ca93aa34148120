//! Helpers of several codecs: little-endian runs of f32, and checks before values are added. The
//! loops go over arrays of a fixed size, so that the compiler turns them into vector instructions.
//!
//! An encoding begins with a header: the codec's byte, then its parameters.

use super::{Codec, CodecError, CodecKind, EncodeContext};
use core::ops::Range;
use murmurate_protocol::BytesBound;
use std::ops::Deref;

/// Values that are converted on the stack before they are appended. They fit into the first-level
/// cache, so the output is written to memory once and never zeroed first.
const BATCH: usize = 1024;

/// Splits the opening byte off, if it is the right one.
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

/// Splits the first `N` bytes off.
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

/// Splits the first `len` values off, and leaves the others.
pub(super) fn front<'a, T>(rest: &mut &'a [T], len: usize) -> &'a [T] {
    let (first, after) = rest.split_at(len);
    *rest = after;
    first
}

/// Splits `N` little-endian u32 off, which are `BYTES` bytes.
pub(super) fn take_u32s<'a, const N: usize, const BYTES: usize>(
    bytes: &'a [u8],
    field: &'static str,
) -> Result<([usize; N], &'a [u8]), CodecError> {
    let (head, rest) = take::<BYTES>(bytes, field)?;
    let four = |at: usize| {
        [
            head[4 * at],
            head[4 * at + 1],
            head[4 * at + 2],
            head[4 * at + 3],
        ]
    };
    let number = |at| u32::from_le_bytes(four(at)) as usize;
    Ok((core::array::from_fn(number), rest))
}

/// The runs between ascending ones of `len` values.
pub(super) fn between(
    runs: impl Iterator<Item = Range<usize>> + Clone,
    len: usize,
) -> impl Iterator<Item = Range<usize>> {
    let starts = core::iter::once(0).chain(runs.clone().map(|run| run.end));
    let ends = runs.map(|run| run.start).chain(core::iter::once(len));
    starts.zip(ends).map(|(start, end)| start..end)
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

/// Little-endian f32.
pub(super) fn f32s(bytes: &[u8]) -> impl Iterator<Item = f32> {
    let values = bytes.as_chunks::<4>().0.iter();
    values.map(|four| f32::from_le_bytes(*four))
}

/// Refuses magnitudes beyond `most`.
pub(super) fn expect_within(
    bytes: &[u8],
    most: f32,
    field: &'static str,
) -> Result<(), CodecError> {
    if f32s(bytes).all(|value| value.abs() <= most) {
        Ok(())
    } else {
        Err(CodecError::OutOfRange { field })
    }
}

/// Appends counts and places as little-endian u32.
pub(super) fn push_u32s<const N: usize>(numbers: [usize; N], out: &mut Vec<u8>) {
    for number in numbers {
        out.extend_from_slice(&(number as u32).to_le_bytes());
    }
}

/// FNV-1a over values, which are four bytes each.
pub(super) fn hash(values: impl IntoIterator<Item = [u8; 4]>) -> u64 {
    let bytes = values.into_iter().flatten();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

pub(super) fn hash_f32s(values: &[f32]) -> u64 {
    hash(values.iter().map(|value| value.to_le_bytes()))
}

/// A place or a count below 2^32 as two digits, which f32 represent exactly.
pub(super) const fn to_digits(number: usize) -> [f32; 2] {
    [(number >> 16) as f32, (number & 0xffff) as f32]
}

/// The number of two digits.
pub(super) const fn of_digits([high, low]: [f32; 2]) -> usize {
    (high as usize)
        .saturating_mul(1 << 16)
        .saturating_add(low as usize)
}

/// Appends values as little-endian f32.
pub(super) fn push_f32s(values: &[f32], out: &mut Vec<u8>) {
    if cfg!(target_endian = "little") {
        // They are so in memory.
        return out.extend_from_slice(bytemuck::cast_slice(values));
    }
    let mut batch = [0u8; 4 * BATCH];
    for run in values.chunks(BATCH) {
        for (bytes, value) in batch.as_chunks_mut::<4>().0.iter_mut().zip(run) {
            *bytes = value.to_le_bytes();
        }
        out.extend_from_slice(&batch[..4 * run.len()]);
    }
}

/// Set if all little-endian f32 are finite. Adding one to a full exponent carries into the sign
/// bit, which needs no branch.
#[inline(always)]
pub(super) fn all_finite(bytes: &[u8]) -> bool {
    let carried = bytes.as_chunks::<4>().0.iter().fold(0u32, |seen, b| {
        seen | ((u32::from_le_bytes(*b) & 0x7fff_ffff) + 0x0080_0000)
    });
    carried & 0x8000_0000 == 0
}

/// Refuses little-endian f32 that are not all finite.
#[inline(always)]
pub(super) fn expect_finite(bytes: &[u8], field: &'static str) -> Result<(), CodecError> {
    if all_finite(bytes) {
        Ok(())
    } else {
        Err(CodecError::NotFinite { field })
    }
}

/// `acc += weight * values`, with values as little-endian f32.
#[inline(always)]
pub(super) fn add_f32s(bytes: &[u8], weight: f32, acc: &mut [f32]) {
    for (a, b) in acc.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *a += weight * f32::from_le_bytes(*b);
    }
}

/// Codec and parameters as bytes. Two codecs that read each other's bytes have the same header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    bytes: [u8; Self::MOST],
    len: usize,
}

impl Header {
    /// The most bytes that codec and parameters take.
    const MOST: usize = 24;

    /// A codec without parameters.
    pub(super) const fn new(tag: u8) -> Self {
        let mut bytes = [0; Self::MOST];
        bytes[0] = tag;
        Self { bytes, len: 1 }
    }

    /// One parameter more, in little-endian bytes.
    pub(super) const fn with<const N: usize>(mut self, parameter: [u8; N]) -> Self {
        let mut at = 0;
        while at < N {
            self.bytes[self.len] = parameter[at];
            (self.len, at) = (self.len + 1, at + 1);
        }
        self
    }

    /// The bound of an encoding with this many bytes behind the header.
    pub(super) const fn bound(&self, more: u64, per_1024: u64) -> BytesBound {
        let fixed = self.len as u64 + more;
        BytesBound { fixed, per_1024 }
    }

    /// The bytes that open an encoding.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Takes itself off, if it is there.
    pub(super) fn expect<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8], CodecError> {
        let needed = self.len;
        let found = bytes.len();
        let short = |field| CodecError::Length {
            field,
            needed,
            found,
        };
        let tag = *bytes.first().ok_or(short("codec"))?;
        if tag != self.bytes[0] {
            return Err(CodecError::Codec {
                expected: self.bytes[0],
                found: tag,
            });
        }
        let (head, rest) = bytes.split_at_checked(needed).ok_or(short("parameters"))?;
        if head != self.bytes() {
            return Err(CodecError::OutOfRange {
                field: "parameters",
            });
        }
        Ok(rest)
    }
}

/// The codec of what another one passes on. It knows the seeds and the round, and keeps nothing between rounds.
pub(super) struct Inner {
    codec: Box<dyn Codec>,
    memory: Vec<f32>,
}

impl Inner {
    pub(super) const fn new(codec: Box<dyn Codec>) -> Self {
        let memory = Vec::new();
        Self { codec, memory }
    }

    /// The bound of its encoding with this many bytes before it.
    pub(super) fn bound_behind(&self, before: u64) -> BytesBound {
        let BytesBound { fixed, per_1024 } = self.bytes_bound();
        BytesBound {
            fixed: fixed + before,
            per_1024,
        }
    }

    /// The codec that a parameter of the outer one names, with those of its other parameters that both have.
    pub(super) fn named(kind: &CodecKind, parameter: &str) -> Self {
        Self::new(kind.sibling(kind.choice(parameter)).build())
    }

    pub(super) fn encode(
        &mut self,
        values: &[f32],
        context: &EncodeContext<'_>,
        out: &mut Vec<u8>,
    ) {
        let mut inner = EncodeContext {
            shared_seed: context.shared_seed,
            round: context.round,
            ..EncodeContext::seeded(context.seed, &mut self.memory)
        };
        self.codec.encode(values, &mut inner, out);
    }
}

impl Deref for Inner {
    type Target = dyn Codec;

    fn deref(&self) -> &Self::Target {
        self.codec.as_ref()
    }
}

/// The encoding behind a byte that says that there is one; `None` where nothing was sent.
pub(super) fn sent(bytes: &[u8]) -> Result<Option<&[u8]>, CodecError> {
    let ([sent], rest) = take::<1>(bytes, "sent")?;
    match sent {
        1 => Ok(Some(rest)),
        0 if rest.is_empty() => Ok(None),
        _ => Err(CodecError::OutOfRange { field: "sent" }),
    }
}
