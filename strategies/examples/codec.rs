//! A codec from its equation to its measures: 16-bit fixed point with one step for the whole slice.
//!
//! ```text
//! cargo run -p murmurate-strategies --example codec
//! ```
//!
//! To make it a codec of the grid, see "How to add a codec" in CONTRIBUTING.md.

use murmurate_protocol::BytesBound;
use murmurate_strategies::compress::{Codec, CodecError, CodecProperties, EncodeContext};

/// The first byte of an encoding. A codec of the grid takes the next free one.
const TAG: u8 = 250;

/// The bytes before the values: the first byte and the step.
const HEADER_BYTES: usize = 5;

/// The largest integer that is written.
const LARGEST: f32 = 32_767.0;

/// `C(x) = s round(x / s)` with the step `s = max|x| / 32767`.
///
/// Each value moves by at most `s / 2`. Layout: [`TAG`], `s` as f32, each value's multiple of `s` as
/// i16; little-endian. All values zero: `s` is zero, and so are all multiples.
#[derive(Clone, Copy, Debug)]
struct Fixed16;

impl Codec for Fixed16 {
    fn properties(&self) -> CodecProperties {
        // ||C(x) - x||^2 is at most n (s / 2)^2, and ||x||^2 at least max|x|^2 = (32767 s)^2. The
        // ratio depends on the length; this bound is that of slices up to 10,000 values.
        CodecProperties::rounding(10_000.0 / (4.0 * f64::from(LARGEST) * f64::from(LARGEST)))
    }

    fn bytes_bound(&self) -> BytesBound {
        BytesBound {
            fixed: HEADER_BYTES as u64,
            per_1024: 2 * 1024,
        }
    }

    fn encode(&mut self, values: &[f32], _context: &mut EncodeContext<'_>, out: &mut Vec<u8>) {
        let largest = values.iter().fold(0.0f32, |most, v| most.max(v.abs()));
        let step = largest / LARGEST;
        out.push(TAG);
        out.extend_from_slice(&step.to_le_bytes());
        for value in values {
            let multiple = if step > 0.0 { value / step } else { 0.0 };
            out.extend_from_slice(&(multiple.round() as i16).to_le_bytes());
        }
    }

    fn decode_add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) -> Result<(), CodecError> {
        // Everything is checked before the accumulator changes: the bytes come from the network.
        let needed = HEADER_BYTES + 2 * acc.len();
        if bytes.len() != needed {
            return Err(CodecError::Length {
                field: "values",
                needed,
                found: bytes.len(),
            });
        }
        if bytes[0] != TAG {
            return Err(CodecError::Codec {
                expected: TAG,
                found: bytes[0],
            });
        }
        let step = f32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
        if !(step * LARGEST).is_finite() {
            return Err(CodecError::NotFinite { field: "step" });
        }
        let multiples = bytes[HEADER_BYTES..].chunks_exact(2);
        for (sum, multiple) in acc.iter_mut().zip(multiples) {
            *sum += weight * step * f32::from(i16::from_le_bytes([multiple[0], multiple[1]]));
        }
        Ok(())
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        Box::new(*self)
    }
}

fn main() -> Result<(), CodecError> {
    let values: Vec<f32> = (0..4096).map(|i| (i as f32 * 0.37).sin() * 0.01).collect();
    let mut codec = Fixed16;

    let (mut memory, mut bytes) = (Vec::new(), Vec::new());
    let mut context = EncodeContext::seeded(7, &mut memory);
    codec.encode(&values, &mut context, &mut bytes);
    let mut decoded = vec![0.0; values.len()];
    codec.decode_add(&bytes, 1.0, &mut decoded)?;

    let squares = |v: &[f32]| v.iter().map(|x| f64::from(x * x)).sum::<f64>();
    let lost: Vec<f32> = values.iter().zip(&decoded).map(|(x, y)| x - y).collect();
    let error = squares(&lost) / squares(&values);
    let bound = codec.bytes_bound().of(values.len() as u64);
    println!("fixed16: {} values of f32", values.len());
    println!("bytes      {} of at most {bound}", bytes.len());
    println!(
        "error      {error:.2e} of at most {:.2e}",
        codec.properties().error
    );
    assert!(bytes.len() as u64 <= bound);
    assert!(error <= codec.properties().error);

    // Damaged bytes are refused and leave the accumulator as it was.
    let before = decoded.clone();
    let refused = codec.decode_add(&bytes[1..], 1.0, &mut decoded);
    println!("damaged    {}", refused.expect_err("one byte is missing"));
    assert_eq!(before, decoded);
    Ok(())
}
