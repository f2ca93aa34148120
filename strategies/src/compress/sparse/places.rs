//! Places of kept values, packed. All sparsifiers send them beside their values, except for those
//! whose places follow from a seed.

use crate::compress::CodecError;
use crate::compress::raw::take;
use murmurate_protocol::BytesBound;

/// Every value is kept: nothing follows.
const ALL: u8 = 0;
/// A bit a place, lowest first.
const BITMAP: u8 = 1;
/// Rice-coded gaps.
const RICE: u8 = 2;
/// For each run of 4096 places how many are kept (u16), then 12 bits for each.
const LOCAL: u8 = 3;

/// Places that share the upper bits of the form `LOCAL`.
const RUN: usize = 4096;

/// Bytes of the form and the count.
const HEADER: usize = 1 + 4;

/// Bytes of a bitmap, of Rice codes with their parameter, and of runs.
struct Sizes {
    bitmap: usize,
    rice: (u32, usize),
    local: usize,
}

/// The Rice parameter b that minimizes `count (1 + b) + len / 2^b`, a bound of the bits.
fn parameter(count: usize, len: usize) -> u32 {
    let bits = |b: u32| count as u64 * (1 + u64::from(b)) + (len as u64 >> b);
    (0..32).min_by_key(|b| bits(*b)).unwrap_or(0)
}

/// The gaps before ascending places.
pub(super) fn gaps(chosen: &[u32]) -> impl Iterator<Item = u32> {
    let mut next = 0;
    chosen.iter().map(move |place| {
        let gap = place - next;
        next = place + 1;
        gap
    })
}

fn sizes(chosen: &[u32], len: usize) -> Sizes {
    // The best parameter for these gaps is the one that bounds them best or a neighbour.
    let first = parameter(chosen.len(), len).saturating_sub(1);
    let mut quotients = [0u64; 3];
    for gap in gaps(chosen) {
        for (at, sum) in (0..).zip(&mut quotients) {
            *sum += u64::from(gap.checked_shr(first + at).unwrap_or(0));
        }
    }
    let bits = (first..).zip(quotients);
    let bits = bits.map(|(b, q)| (b, q + chosen.len() as u64 * u64::from(1 + b)));
    let (b, bits) = bits.min_by_key(|(_, bits)| *bits).unwrap_or((0, 0));
    Sizes {
        bitmap: len.div_ceil(8),
        rice: (b.min(31), 1 + bits.div_ceil(8) as usize),
        local: 2 * len.div_ceil(RUN) + (12 * chosen.len()).div_ceil(8),
    }
}

/// Bits, lowest first.
struct Writer<'a> {
    out: &'a mut Vec<u8>,
    bits: u64,
    have: u32,
}

impl Writer<'_> {
    /// At most 32 bits.
    fn put(&mut self, bits: u32, count: u32) {
        self.bits |= u64::from(bits) << self.have;
        self.have += count;
        if self.have >= 32 {
            self.out
                .extend_from_slice(&(self.bits as u32).to_le_bytes());
            self.bits >>= 32;
            self.have -= 32;
        }
    }

    fn finish(self) {
        let bytes = self.have.div_ceil(8) as usize;
        self.out
            .extend_from_slice(&self.bits.to_le_bytes()[..bytes]);
    }
}

/// Bits, lowest first, of bytes that may end too early.
struct Reader<'a> {
    bytes: &'a [u8],
    /// Bytes that have been read into `bits`.
    at: usize,
    bits: u64,
    have: u32,
}

impl<'a> Reader<'a> {
    const fn new(bytes: &'a [u8]) -> Self {
        let (at, bits, have) = (0, 0, 0);
        Self {
            bytes,
            at,
            bits,
            have,
        }
    }

    fn fill(&mut self) {
        while self.have <= 56
            && let Some(byte) = self.bytes.get(self.at)
        {
            self.bits |= u64::from(*byte) << self.have;
            (self.have, self.at) = (self.have + 8, self.at + 1);
        }
    }

    /// At most 32 bits.
    fn get(&mut self, count: u32) -> Option<u32> {
        if self.have < count {
            self.fill();
        }
        self.have = self.have.checked_sub(count)?;
        let bits = self.bits & ((1u64 << count) - 1);
        self.bits >>= count;
        Some(bits as u32)
    }

    /// How many zeros come before the next one, which is taken too.
    fn unary(&mut self) -> Option<u64> {
        let mut zeros = 0;
        while self.bits == 0 {
            zeros += u64::from(self.have);
            self.have = 0;
            self.fill();
            if self.have == 0 {
                return None;
            }
        }
        // Bits beyond those there are zero, so the one is among them.
        let run = self.bits.trailing_zeros();
        self.bits = self.bits >> run >> 1;
        self.have -= run + 1;
        Some(zeros + u64::from(run))
    }

    /// What follows; the rest of the byte that was begun must be zeros.
    fn finish(self) -> Option<&'a [u8]> {
        let begun = self.bits & ((1 << (self.have % 8)) - 1);
        let rest = self.bytes.get(self.at - self.have as usize / 8..)?;
        (begun == 0).then_some(rest)
    }
}

/// Appends ascending places below `len` in the shortest form.
///
/// # Panics
///
/// If there are 2^32 places or more.
pub(in crate::compress) fn write(chosen: &[u32], len: usize, out: &mut Vec<u8>) {
    assert!(u32::try_from(len).is_ok(), "a slice of 2^32 values or more");
    let head = |form: u8, out: &mut Vec<u8>| {
        out.push(form);
        out.extend_from_slice(&(chosen.len() as u32).to_le_bytes());
    };
    if chosen.len() == len {
        return head(ALL, out);
    }
    let sizes = sizes(chosen, len);
    if sizes.bitmap <= sizes.rice.1.min(sizes.local) {
        head(BITMAP, out);
        write_bitmap(chosen, len, out);
    } else if sizes.rice.1 <= sizes.local {
        head(RICE, out);
        out.reserve(sizes.rice.1);
        write_rice(chosen, sizes.rice.0, out);
    } else {
        head(LOCAL, out);
        out.reserve(sizes.local);
        write_local(chosen, len, out);
    }
}

/// Appends a bit for each of `len` places, lowest first.
pub(super) fn write_bitmap(chosen: &[u32], len: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + len.div_ceil(8), 0);
    let bitmap = &mut out[start..];
    for place in chosen {
        bitmap[*place as usize / 8] |= 1 << (place % 8);
    }
}

/// Refuses a bitmap of `len` places that has not `count` of them, or bits beyond the last.
pub(super) fn check_bitmap(bitmap: &[u8], count: usize, len: usize) -> Result<(), CodecError> {
    let set = bitmap.iter().map(|byte| byte.count_ones() as usize);
    let spare = match (bitmap.last(), len % 8) {
        (Some(last), used @ 1..) => last >> used,
        _ => 0,
    };
    if set.sum::<usize>() != count || spare != 0 {
        return Err(CodecError::OutOfRange { field: "places" });
    }
    Ok(())
}

fn write_rice(chosen: &[u32], b: u32, out: &mut Vec<u8>) {
    out.push(b as u8);
    let (bits, have) = (0, 0);
    let mut writer = Writer { out, bits, have };
    for gap in gaps(chosen) {
        let mut quotient = gap >> b;
        while quotient >= 16 {
            writer.put(0, 16);
            quotient -= 16;
        }
        writer.put(1 << quotient, quotient + 1);
        writer.put(gap & ((1 << b) - 1), b);
    }
    writer.finish();
}

fn write_local(chosen: &[u32], len: usize, out: &mut Vec<u8>) {
    let mut left = chosen;
    for run in 1..=len.div_ceil(RUN) {
        let count = left.partition_point(|place| (*place as usize) < run * RUN);
        out.extend_from_slice(&(count as u16).to_le_bytes());
        left = &left[count..];
    }
    let (bits, have) = (0, 0);
    let mut writer = Writer { out, bits, have };
    chosen
        .iter()
        .for_each(|place| writer.put(place & (RUN as u32 - 1), 12));
    writer.finish();
}

/// Reads places below `len`, at most `most`, into `chosen`. Returns the bytes after them.
///
/// # Errors
///
/// Which field is wrong.
pub(in crate::compress) fn read<'a>(
    bytes: &'a [u8],
    len: usize,
    most: usize,
    chosen: &mut Vec<u32>,
) -> Result<&'a [u8], CodecError> {
    chosen.clear();
    let bad = |field| CodecError::OutOfRange { field };
    let ([form], rest) = take(bytes, "form")?;
    let (count, rest) = take(rest, "count")?;
    let count = u32::from_le_bytes(count) as usize;
    if count > most || count > len {
        return Err(bad("count"));
    }
    let places = bad("places");
    match form {
        ALL if count == len => {
            chosen.extend(0..len as u32);
            Ok(rest)
        }
        ALL => Err(bad("count")),
        BITMAP => read_bitmap(rest, len, count, chosen),
        RICE => {
            let ([b], rest) = take(rest, "places")?;
            read_rice(rest, b, len, count, chosen).ok_or(places)
        }
        LOCAL => read_local(rest, len, count, chosen).ok_or(places),
        _ => Err(bad("form")),
    }
}

fn read_bitmap<'a>(
    bytes: &'a [u8],
    len: usize,
    count: usize,
    chosen: &mut Vec<u32>,
) -> Result<&'a [u8], CodecError> {
    let needed = len.div_ceil(8);
    let found = bytes.len();
    let short = CodecError::Length {
        field: "places",
        needed,
        found,
    };
    let (bitmap, rest) = bytes.split_at_checked(needed).ok_or(short)?;
    check_bitmap(bitmap, count, len)?;
    chosen.reserve(count);
    for (first, byte) in (0u32..).step_by(8).zip(bitmap) {
        let mut left = *byte;
        while left != 0 {
            chosen.push(first + left.trailing_zeros());
            left &= left - 1;
        }
    }
    Ok(rest)
}

fn read_rice<'a>(
    bytes: &'a [u8],
    b: u8,
    len: usize,
    count: usize,
    chosen: &mut Vec<u32>,
) -> Option<&'a [u8]> {
    let b = u32::from(b);
    // Every code has a bit at least: no more is reserved than the bytes can hold.
    if b > 31 || count > bytes.len().saturating_mul(8) {
        return None;
    }
    let mut reader = Reader::new(bytes);
    chosen.reserve(count);
    let mut next = 0u64;
    for _ in 0..count {
        let quotient = reader.unary()?;
        if quotient > len as u64 >> b {
            return None;
        }
        let place = next + (quotient << b | u64::from(reader.get(b)?));
        if place >= len as u64 {
            return None;
        }
        chosen.push(place as u32);
        next = place + 1;
    }
    reader.finish()
}

fn read_local<'a>(
    bytes: &'a [u8],
    len: usize,
    count: usize,
    chosen: &mut Vec<u32>,
) -> Option<&'a [u8]> {
    let (counts, packed) = bytes.split_at_checked(2 * len.div_ceil(RUN))?;
    let counts = counts.as_chunks::<2>().0.iter();
    if counts
        .clone()
        .map(|two| usize::from(u16::from_le_bytes(*two)))
        .sum::<usize>()
        != count
        || (12 * count).div_ceil(8) > packed.len()
    {
        return None;
    }
    let mut reader = Reader::new(packed);
    chosen.reserve(count);
    let mut next = 0;
    for (first, two) in (0..).step_by(RUN).zip(counts) {
        for _ in 0..u16::from_le_bytes(*two) {
            let place = first as u32 + reader.get(12)?;
            if place < next || place as usize >= len {
                return None;
            }
            chosen.push(place);
            next = place + 1;
        }
    }
    reader.finish()
}

/// Bound of the places of `ceil(density * len)` values.
pub(in crate::compress) fn bound(density: f64) -> BytesBound {
    let kept = density * 1024.0;
    let rice = |b: i32| kept * f64::from(1 + b) + 1024.0 / 2f64.powi(b);
    let rice = (0..32).map(rice).fold(f64::INFINITY, f64::min);
    // One more by rounding up, with its code; the parameter, and last bytes that are not full.
    BytesBound {
        fixed: HEADER as u64 + 4 + 1 + 2,
        per_1024: ((rice / 8.0).ceil() as u64).min(128),
    }
}

/// As [`bound`], with values at the places that another codec encodes: the fixed bytes, and those for each 1024 values.
pub(in crate::compress) fn bound_with(density: f64, values: BytesBound) -> (u64, u64) {
    let places = bound(density);
    let kept = (values.per_1024 as f64 * density).ceil() as u64;
    (places.fixed + values.fixed, places.per_1024 + kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(chosen: &[u32], len: usize) -> Vec<u8> {
        let (mut bytes, mut back) = (Vec::new(), Vec::new());
        write(chosen, len, &mut bytes);
        let bound = bound(chosen.len() as f64 / len.max(1) as f64).of(len as u64);
        assert!(bytes.len() as u64 <= bound, "{} > {bound}", bytes.len());
        bytes.extend_from_slice(&[0xab, 0xcd]);
        let rest = read(&bytes, len, chosen.len(), &mut back).expect("its own bytes");
        assert_eq!(rest, [0xab, 0xcd]);
        assert_eq!(back, chosen);
        bytes.truncate(bytes.len() - 2);
        bytes
    }

    /// Places that are kept with this probability each.
    fn random(density: f64, len: usize) -> Vec<u32> {
        let mut state = 5u64;
        let mut draw = move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as f64 / (1u64 << 31) as f64
        };
        (0..len as u32).filter(|_| draw() < density).collect()
    }

    #[test]
    fn a_place_costs_little_more_than_its_entropy() {
        let len = 1 << 20;
        // Entropy of a place, H(p) / p: 11.4, 8.08, 4.69, 2.00 bits.
        for (density, form, least, most) in [
            (0.001, RICE, 11.3, 11.6),
            (0.01, RICE, 8.0, 8.2),
            (0.1, RICE, 4.6, 4.9),
            (0.5, BITMAP, 1.9, 2.1),
        ] {
            let chosen = random(density, len);
            let bytes = round_trip(&chosen, len);
            let bits = 8.0 * bytes.len() as f64 / chosen.len() as f64;
            assert_eq!(bytes[0], form, "{density}");
            assert!((least..most).contains(&bits), "{density}: {bits} bits");
        }
    }

    #[test]
    fn clusters_go_by_runs_of_twelve_bits() {
        // Few full clusters far from one another: Rice codes suit none of their gaps.
        let len = 40 * RUN;
        let chosen = (0..40u32).flat_map(|run| {
            let first = run * RUN as u32;
            (0..8u32).map(move |i| first + i * if run % 2 == 0 { 1 } else { 500 })
        });
        let chosen: Vec<u32> = chosen.collect();
        round_trip(&chosen, len);
        let mut bytes = Vec::new();
        bytes.push(LOCAL);
        bytes.extend_from_slice(&(chosen.len() as u32).to_le_bytes());
        write_local(&chosen, len, &mut bytes);
        let mut back = Vec::new();
        assert_eq!(read(&bytes, len, 400, &mut back), Ok(&[][..]));
        assert_eq!(back, chosen);
    }

    #[test]
    fn places_come_back_at_every_length() {
        for len in [0, 1, 7, 8, 9, 4095, 4096, 4097, 100_000] {
            for density in [0.0, 1e-4, 0.01, 0.3, 0.9, 1.0] {
                round_trip(&random(density, len), len);
            }
            round_trip(&(0..len as u32).take(1).collect::<Vec<_>>(), len);
            round_trip(&(0..len as u32).rev().take(1).collect::<Vec<_>>(), len);
        }
    }

    #[test]
    fn what_was_not_written_is_refused() {
        let refused = |bytes: &[u8], len: usize| read(bytes, len, 9, &mut Vec::new()).is_err();
        assert!(
            refused(&[RICE, 1, 0, 0, 0, 32, 1], 100),
            "a parameter of 32 bits"
        );
        assert!(refused(&[RICE, 1, 0, 0, 0, 0, 0], 100), "no one in sight");
        assert!(
            refused(&[RICE, 1, 0, 0, 0, 0, 0, 0x80], 15),
            "the place 15 of 15"
        );
        assert!(!refused(&[RICE, 1, 0, 0, 0, 0, 0, 0x80], 16));
        assert!(
            refused(&[RICE, 1, 0, 0, 0, 0, 3], 100),
            "a bit after the last"
        );
        assert!(
            refused(&[RICE, 255, 0, 0, 0, 0, 3], 4),
            "more than there are"
        );
        assert!(refused(&[ALL, 1, 0, 0, 0], 2));
        assert!(refused(&[9, 0, 0, 0, 0], 2));
        assert!(
            refused(&[BITMAP, 1, 0, 0, 0, 0b100], 2),
            "a bit beyond the end"
        );
        assert!(
            refused(&[LOCAL, 2, 0, 0, 0, 2, 0, 1, 0x10, 0], 100),
            "a place twice"
        );
        assert!(!refused(&[LOCAL, 2, 0, 0, 0, 2, 0, 1, 0x20, 0], 100));
    }
}
