//! Codec `sparse`: all values that are not zero, exactly. Reductions of sparse contributions return
//! in it, and it is the body of `top-k`.

use super::places::{check_bitmap, gaps, write_bitmap};
use crate::compress::raw::{add_f32s, expect_finite, expect_len, expect_tag, push_f32s, take};
use crate::compress::{Codec, CodecError, CodecProperties, EncodeContext};
use murmurate_protocol::BytesBound;

/// `C(x) = x`, with zeros left out.
///
/// Layout: the codec's byte, then the body: the form of the places (a byte: 0 gaps, 1 bitmap, 2
/// dense), the count of values (u32, little-endian), the places, the values (f32, little-endian).
/// Gaps are LEB128 numbers, each the distance from the place after the previous one; a bitmap has a
/// bit for each place, lowest first; dense has no places and all values. The writer takes the
/// shortest form, so the body is at most five bytes longer than the values themselves.
#[derive(Clone, Debug, Default)]
pub struct Sparse {
    chosen: Vec<u32>,
}

/// The opening byte. Only reductions are written with it, so it has no entry in the list of codecs.
const TAG: u8 = 5;

const GAPS: u8 = 0;
const BITMAP: u8 = 1;
const DENSE: u8 = 2;
const HEADER: usize = 1 + 4;

impl Codec for Sparse {
    fn properties(&self) -> CodecProperties {
        CodecProperties::LOSSLESS
    }

    fn bytes_bound(&self) -> BytesBound {
        let BytesBound { fixed, per_1024 } = bound(1.0);
        BytesBound {
            fixed: fixed + 1,
            per_1024,
        }
    }

    fn encode(&mut self, values: &[f32], _: &mut EncodeContext<'_>, out: &mut Vec<u8>) {
        self.chosen.clear();
        let places = values
            .iter()
            .enumerate()
            .filter(|(_, value)| **value != 0.0);
        self.chosen.extend(places.map(|(index, _)| index as u32));
        out.push(TAG);
        write(values, &self.chosen, out);
    }

    fn decode_add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) -> Result<(), CodecError> {
        add(expect_tag(bytes, TAG)?, acc.len(), weight, acc)
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        Box::new(Self::default())
    }
}

/// Bound of a body with `ceil(density * len)` values: the least bound of the three forms.
///
/// A gap costs a byte and one more for each seven bits. The gaps sum to less than `len`, so at most
/// `len / 128` of them cost a second byte, `len / 16384` a third, and so on: under 9 in 1024.
pub(in crate::compress) fn bound(density: f64) -> BytesBound {
    let kept = density * 1024.0;
    let gaps = (5.0 * kept).ceil() as u64 + 9;
    let bitmap = (4.0 * kept).ceil() as u64 + 128;
    let dense = 4096;
    // One value more by rounding up, with its gap, and a bitmap's last byte.
    BytesBound {
        fixed: HEADER as u64 + 4 + 1 + 1,
        per_1024: gaps.min(bitmap).min(dense),
    }
}

/// Bytes of a gap in LEB128.
fn gap_bytes(gap: u32) -> usize {
    (32 - (gap | 1).leading_zeros()).div_ceil(7) as usize
}

/// Appends the values at `chosen` (ascending, not zero) in the shortest form.
///
/// # Panics
/// If there are 2^32 values or more: places are u32.
pub(in crate::compress) fn write(values: &[f32], chosen: &[u32], out: &mut Vec<u8>) {
    assert!(
        u32::try_from(values.len()).is_ok(),
        "a slice of 2^32 values or more"
    );
    let gaps_len = gaps(chosen).map(gap_bytes).sum::<usize>();
    let bitmap_len = values.len().div_ceil(8);
    let places = gaps_len.min(bitmap_len);
    if places + 4 * chosen.len() >= 4 * values.len() && !values.is_empty() {
        out.push(DENSE);
        out.extend_from_slice(&(values.len() as u32).to_le_bytes());
        // The values that were not chosen are zero here or the form would not be the shortest.
        return write_dense(values, chosen, out);
    }
    out.reserve(HEADER + places + 4 * chosen.len());
    out.push(if gaps_len <= bitmap_len { GAPS } else { BITMAP });
    out.extend_from_slice(&(chosen.len() as u32).to_le_bytes());
    if gaps_len <= bitmap_len {
        for mut gap in gaps(chosen) {
            while gap >= 0x80 {
                out.push(gap as u8 | 0x80);
                gap >>= 7;
            }
            out.push(gap as u8);
        }
    } else {
        write_bitmap(chosen, values.len(), out);
    }
    for place in chosen {
        out.extend_from_slice(&values[*place as usize].to_le_bytes());
    }
}

/// Appends all values, zero where not chosen.
fn write_dense(values: &[f32], chosen: &[u32], out: &mut Vec<u8>) {
    if chosen.len() == values.len() {
        return push_f32s(values, out);
    }
    let start = out.len();
    out.resize(start + 4 * values.len(), 0);
    let (dense, _) = out[start..].as_chunks_mut::<4>();
    for place in chosen {
        dense[*place as usize] = values[*place as usize].to_le_bytes();
    }
}

/// `acc += weight * body`, with at most `count_max` values in it (for the dense form: not zero).
///
/// # Errors
/// Which field is wrong; `acc` is then unchanged.
pub(in crate::compress) fn add(
    body: &[u8],
    count_max: usize,
    weight: f32,
    acc: &mut [f32],
) -> Result<(), CodecError> {
    let ([form], rest) = take(body, "form")?;
    let (count, rest) = take(rest, "count")?;
    let count = u32::from_le_bytes(count) as usize;
    let value_bytes = count.saturating_mul(4);
    if form == DENSE {
        return add_dense(rest, count, count_max, weight, acc);
    }
    if count > count_max {
        return Err(CodecError::OutOfRange { field: "count" });
    }
    let place_bytes = rest
        .len()
        .checked_sub(value_bytes)
        .ok_or(CodecError::Length {
            field: "values",
            needed: value_bytes,
            found: rest.len(),
        })?;
    let (places, values) = rest.split_at(place_bytes);
    let (values, _) = values.as_chunks::<4>();
    for value in values {
        let value = f32::from_le_bytes(*value);
        if !value.is_finite() {
            return Err(CodecError::NotFinite { field: "values" });
        }
        if value == 0.0 {
            return Err(CodecError::OutOfRange { field: "values" });
        }
    }
    match form {
        GAPS => {
            check_gaps(places, count, acc.len())?;
            add_gaps(places, values, weight, acc);
        }
        BITMAP => {
            expect_len(places, acc.len().div_ceil(8), "places")?;
            check_bitmap(places, count, acc.len())?;
            add_bitmap(places, values, weight, acc);
        }
        _ => return Err(CodecError::OutOfRange { field: "form" }),
    }
    Ok(())
}

fn add_dense(
    values: &[u8],
    count: usize,
    count_max: usize,
    weight: f32,
    acc: &mut [f32],
) -> Result<(), CodecError> {
    if count != acc.len() {
        return Err(CodecError::OutOfRange { field: "count" });
    }
    expect_len(values, 4 * count, "values")?;
    expect_finite(values, "values")?;
    if count_max < count {
        let not_zero = |b: &&[u8; 4]| u32::from_le_bytes(**b) << 1 != 0;
        if values.as_chunks::<4>().0.iter().filter(not_zero).count() > count_max {
            return Err(CodecError::OutOfRange { field: "count" });
        }
    }
    add_f32s(values, weight, acc);
    Ok(())
}

/// Reads one LEB128 number of at most 32 bits in its shortest form.
fn read_gap(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let mut gap = 0u64;
    for (at, byte) in bytes.iter().take(5).enumerate() {
        gap |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            let shortest = *byte != 0 || at == 0;
            let gap = u32::try_from(gap).ok().filter(|_| shortest)?;
            return Some((gap, bytes.get(at + 1..)?));
        }
    }
    None
}

fn check_gaps(mut places: &[u8], count: usize, len: usize) -> Result<(), CodecError> {
    let mut next = 0u64;
    for _ in 0..count {
        let (gap, rest) = read_gap(places).ok_or(CodecError::OutOfRange { field: "places" })?;
        let place = next + u64::from(gap);
        if place >= len as u64 {
            return Err(CodecError::OutOfRange { field: "places" });
        }
        next = place + 1;
        places = rest;
    }
    expect_len(places, 0, "places")
}

/// Places and values have been checked.
fn add_gaps(mut places: &[u8], values: &[[u8; 4]], weight: f32, acc: &mut [f32]) {
    let mut next = 0usize;
    for value in values {
        let Some((gap, rest)) = read_gap(places) else {
            return;
        };
        let place = next + gap as usize;
        acc[place] += weight * f32::from_le_bytes(*value);
        next = place + 1;
        places = rest;
    }
}

/// Places and values have been checked.
fn add_bitmap(places: &[u8], values: &[[u8; 4]], weight: f32, acc: &mut [f32]) {
    let mut values = values.iter();
    for (byte, run) in places.iter().zip(acc.chunks_mut(8)) {
        let mut left = *byte;
        while left != 0 {
            let bit = left.trailing_zeros() as usize;
            let Some(value) = values.next() else { return };
            run[bit] += weight * f32::from_le_bytes(*value);
            left &= left - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_holds_where_gaps_are_as_long_as_they_get() {
        for distance in [1usize, 2, 127, 128, 129, 130, 1000, 16_384, 16_385, 16_386] {
            let len = 200_000;
            let chosen: Vec<u32> = (0..len as u32)
                .skip(distance - 1)
                .step_by(distance)
                .collect();
            let values = vec![1.0f32; len];
            let mut body = Vec::new();
            write(&values, &chosen, &mut body);
            let bound = bound(chosen.len() as f64 / len as f64).of(len as u64);
            assert!(
                body.len() as u64 <= bound,
                "{distance}: {} > {bound}",
                body.len()
            );
            let mut back = vec![0.0; len];
            add(&body, chosen.len(), 1.0, &mut back).unwrap();
            assert_eq!(back.iter().filter(|v| **v == 1.0).count(), chosen.len());
            assert!(chosen.iter().all(|place| back[*place as usize] == 1.0));
        }
    }

    /// A body with one value and these bytes as its place.
    fn gap_body(place: &[u8]) -> Vec<u8> {
        let mut body = vec![GAPS, 1, 0, 0, 0];
        body.extend_from_slice(place);
        body.extend_from_slice(&1.0f32.to_le_bytes());
        body
    }

    #[test]
    fn a_place_has_one_encoding_only() {
        let mut acc = [0.0; 200];
        assert!(add(&gap_body(&[7]), 200, 1.0, &mut acc).is_ok());
        assert!(
            add(&gap_body(&[0x87, 0x01]), 200, 1.0, &mut acc).is_ok(),
            "place 135"
        );
        for bad in [
            &[0x87, 0x00][..],                     // 7, a byte longer than it needs
            &[0x87],                               // unfinished
            &[0xc8, 0x01],                         // 200: beyond the end
            &[0xff, 0xff, 0xff, 0xff, 0x7f],       // beyond 32 bits
            &[0x80, 0x80, 0x80, 0x80, 0x80, 0x01], // longer than any
            &[7, 7],                               // a place without a value
        ] {
            let before = acc;
            assert!(add(&gap_body(bad), 200, 1.0, &mut acc).is_err(), "{bad:?}");
            assert_eq!(acc, before);
        }
    }

    #[test]
    fn a_bitmap_must_match_its_count_and_end() {
        let body = |bits: [u8; 2], count: u8| {
            let mut body = vec![BITMAP, count, 0, 0, 0, bits[0], bits[1]];
            (0..count).for_each(|_| body.extend_from_slice(&1.0f32.to_le_bytes()));
            body
        };
        let mut acc = [0.0; 10];
        assert!(add(&body([0b101, 0b10], 3), 10, 1.0, &mut acc).is_ok());
        assert_eq!(acc, [1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
        assert!(add(&body([0b101, 0b10], 2), 10, 1.0, &mut acc).is_err());
        assert!(
            add(&body([0b101, 0b100], 3), 10, 1.0, &mut acc).is_err(),
            "a bit after the end"
        );
    }
}
