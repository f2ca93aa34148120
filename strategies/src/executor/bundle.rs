//! Slices of bytes that no codec encodes: what the peer itself makes or reads, such as scores; a note behind an aggregate, and the decided
//! parts of a column's shard in one slice.
//!
//! A bundle is, little-endian: the number of parts (u16), the length of the note (u32), the note; then
//! for each part its length (u32) and its bytes.

use super::codecs::{bad_slice, bytes_of};
use super::host::{Host, WorkResult};
use bytes::Bytes;
use murmurate_protocol::limits::SCORES_BYTES_MAX;
use murmurate_protocol::{Digest, Done, SliceId, WorkError};

/// What a bundle holds.
#[derive(Debug, PartialEq)]
pub(super) struct Bundle<'a> {
    pub(super) note: &'a [u8],
    pub(super) parts: Vec<&'a [u8]>,
}

impl<'a> Bundle<'a> {
    /// Reads a bundle; `None` where its lengths do not add up.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (count, rest) = bytes.split_first_chunk::<2>()?;
        let (note, mut rest) = prefixed(rest)?;
        let count = usize::from(u16::from_le_bytes(*count));
        // Each part has its length, so a count that lies costs no memory.
        let mut parts = Vec::with_capacity(count.min(rest.len() / 4));
        for _ in 0..count {
            let (part, left) = prefixed(rest)?;
            parts.push(part);
            rest = left;
        }
        (rest.is_empty() && count > 0).then_some(Self { note, parts })
    }

    fn write(&self) -> Vec<u8> {
        let length: usize = self.parts.iter().map(|part| 4 + part.len()).sum();
        let mut out = Vec::with_capacity(6 + self.note.len() + length);
        out.extend_from_slice(&(self.parts.len() as u16).to_le_bytes());
        let all = std::iter::once(&self.note).chain(&self.parts);
        for bytes in all {
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            out.extend_from_slice(bytes);
        }
        out
    }
}

/// Bytes after their length.
fn prefixed(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    rest.split_at_checked(length)
}

/// Puts a note, and its length after it, behind a slice's bytes.
pub(super) fn append(slice: SliceId, note: &[u8], host: &dyn Host) -> WorkResult<Done> {
    let bytes = bytes_of(slice, host)?;
    let length = (note.len() as u32).to_le_bytes();
    Ok(put(slice, [&bytes, note, &length].concat(), host))
}

/// A slice's bytes and the note behind them.
fn split_note(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (rest, length) = bytes.split_last_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    rest.split_at_checked(rest.len().checked_sub(length)?)
}

pub(super) fn bundle(
    slice: SliceId,
    parts: &[SliceId],
    noted: bool,
    host: &dyn Host,
) -> WorkResult<Done> {
    let bytes = |part: &SliceId| bytes_of(*part, host);
    let bytes: Vec<Bytes> = parts.iter().map(bytes).collect::<Result<_, _>>()?;
    let mut parts: Vec<&[u8]> = bytes.iter().map(Bytes::as_ref).collect();
    let mut note: &[u8] = &[];
    if let Some(first) = parts.first_mut().filter(|_| noted) {
        let split = split_note(first);
        (*first, note) = split.ok_or_else(|| bad_slice(slice, "a malformed note".to_owned()))?;
    }
    Ok(put(slice, Bundle { note, parts }.write(), host))
}

pub(super) fn put(slice: SliceId, bytes: Vec<u8>, host: &dyn Host) -> Done {
    let done = Done::Encoded {
        bytes: bytes.len() as u64,
        digest: Some(Digest::of(&bytes)),
    };
    host.put(slice, Bytes::from(bytes));
    done
}

/// Reads a small slice back.
pub(super) fn read(slice: SliceId, host: &dyn Host) -> WorkResult<Done> {
    let bytes = host.get(&slice).ok_or(WorkError::Gone { slice })?;
    if bytes.len() as u64 > SCORES_BYTES_MAX {
        return Err(bad_slice(slice, "too long to be read back".to_owned()));
    }
    let bytes = bytes.to_vec();
    Ok(Done::Read { bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_comes_back_and_torn_ones_do_not() {
        let bundle = Bundle {
            note: b"note",
            parts: vec![b"one", b"", b"three"],
        };
        let bytes = bundle.write();
        assert_eq!(Bundle::read(&bytes), Some(bundle));
        for end in 0..bytes.len() {
            assert_eq!(Bundle::read(&bytes[..end]), None, "{end}");
        }
        assert_eq!(Bundle::read(&[bytes, vec![0]].concat()), None);
        assert_eq!(Bundle::read(&[0, 0, 0, 0, 0, 0]), None, "no parts");
        assert_eq!(Bundle::read(&[255, 255, 255, 255, 255, 255]), None);
    }

    #[test]
    fn a_note_is_split_off_again() {
        assert_eq!(
            split_note(b"abcno\x02\0\0\0"),
            Some((&b"abc"[..], &b"no"[..]))
        );
        assert_eq!(split_note(b"\0\0\0\0"), Some((&b""[..], &b""[..])));
        assert_eq!(split_note(b"ab\x03\0\0\0"), None);
        assert_eq!(split_note(b"abc"), None);
    }
}
