//! The format of TensorBoard's event files, as far as single numbers need it.
//!
//! A file is a sequence of records: the length of the payload (u64, little-endian), the masked CRC-32C
//! of these eight bytes, the payload, its masked CRC-32C. A payload is a protobuf message `Event`:
//!
//! ```text
//! Event   { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; }
//! Summary { repeated Value value = 1; }
//! Value   { string tag = 1; float simple_value = 2; }
//! ```
//!
//! Sources: `tensorflow/core/lib/io/record_writer.cc`, `tensorflow/core/util/event.proto`,
//! `tensorflow/core/framework/summary.proto`; the CRC is RFC 3720, appendix B.4. These few lines take
//! the place of a protobuf library.

/// Version in the first record of a file.
const VERSION: &str = "brain.Event:2";

/// The polynomial of CRC-32C, reflected.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// The table of CRC-32C: the remainder of each byte.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut crc, mut bit) = (byte as u32, 0);
        while bit < 8 {
            crc = (crc >> 1) ^ (POLYNOMIAL * (crc & 1));
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

pub(super) fn crc(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| (crc >> 8) ^ TABLE[usize::from(crc as u8 ^ byte)];
    !bytes.iter().fold(!0, step)
}

/// The CRC as records have it: rotated and shifted, because a CRC of data with CRCs is weak.
pub(super) fn masked(bytes: &[u8]) -> u32 {
    crc(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

pub(super) fn record(payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u64).to_le_bytes();
    let mut out = Vec::with_capacity(payload.len() + 16);
    out.extend_from_slice(&length);
    out.extend_from_slice(&masked(&length).to_le_bytes());
    out.extend_from_slice(payload);
    out.extend_from_slice(&masked(payload).to_le_bytes());
    out
}

pub(super) fn opening(unix_s: f64) -> Vec<u8> {
    let mut event = Vec::new();
    double(&mut event, 1, unix_s);
    bytes(&mut event, 3, VERSION.as_bytes());
    event
}

pub(super) fn scalars(unix_s: f64, step: u64, values: &[(&str, f64)]) -> Vec<u8> {
    let mut summary = Vec::new();
    for (tag, value) in values {
        let mut one = Vec::new();
        bytes(&mut one, 1, tag.as_bytes());
        key(&mut one, 2, 5);
        one.extend_from_slice(&(*value as f32).to_le_bytes());
        bytes(&mut summary, 1, &one);
    }
    let mut event = Vec::new();
    double(&mut event, 1, unix_s);
    key(&mut event, 2, 0);
    varint(&mut event, step);
    bytes(&mut event, 5, &summary);
    event
}

/// The key of a field: its number and how its value is written.
fn key(out: &mut Vec<u8>, field: u64, wire: u64) {
    varint(out, field << 3 | wire);
}

fn double(out: &mut Vec<u8>, field: u64, value: f64) {
    key(out, field, 1);
    out.extend_from_slice(&value.to_le_bytes());
}

fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    key(out, field, 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
