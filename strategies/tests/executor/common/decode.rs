//! Decoders written from the codecs' documented layouts, in f64: nothing of `src` is called, so that
//! a mistake there cannot hide in the reference.

fn f32_at(bytes: &[u8], index: usize) -> f64 {
    let four = bytes[4 * index..4 * index + 4].try_into().unwrap();
    f64::from(f32::from_le_bytes(four))
}

/// The `len` values of an encoded slice.
pub fn decode(bytes: &[u8], len: usize) -> Vec<f64> {
    match bytes[0] {
        1 => (0..len).map(|i| f32_at(&bytes[1..], i)).collect(),
        2 => (0..len)
            .map(|i| {
                f64::from(f32::from_le_bytes([
                    0,
                    0,
                    bytes[1 + 2 * i],
                    bytes[2 + 2 * i],
                ]))
            })
            .collect(),
        5 => sparse(&bytes[1..], len),
        6 => {
            let block = usize::from(u16::from_le_bytes([bytes[1], bytes[2]]));
            let blocks = bytes[3..].chunks(4 + block);
            let levels = blocks.flat_map(|of| {
                of[4..]
                    .iter()
                    .map(|level| f32_at(of, 0) * f64::from(*level as i8))
            });
            levels.collect()
        }
        14 => {
            let (most, bucket) = (bytes[1], u16::from_le_bytes([bytes[2], bytes[3]]));
            assert!(most > 7, "only codes of a byte");
            let buckets = bytes[4..].chunks(4 + usize::from(bucket));
            let levels = buckets.flat_map(|of| {
                let level = f32_at(of, 0) / f64::from(most);
                let codes = of[4..].iter();
                codes.map(move |code| level * (f64::from(*code) - f64::from(most)))
            });
            levels.collect()
        }
        25 => top_k(&bytes[9..], len),
        61 if bytes[2] == 0 => vec![0.0; len],
        61 => decode(&bytes[3..], len),
        other => panic!("codec {other}"),
    }
}

/// Packed places, then the values as an encoding of their own.
fn top_k(body: &[u8], len: usize) -> Vec<f64> {
    let count = u32::from_le_bytes(body[1..5].try_into().unwrap()) as usize;
    let mut at = 40;
    let mut bit = || {
        at += 1;
        body[(at - 1) / 8] >> ((at - 1) % 8) & 1 == 1
    };
    let mut places = Vec::new();
    match body[0] {
        0 => places.extend(0..len),
        1 => places.extend((0..len).filter(|_| bit())),
        2 => {
            let mut number = |bits: u8| (0..bits).map(|i| usize::from(bit()) << i).sum::<usize>();
            let parameter = number(8) as u8;
            let mut next = 0;
            for _ in 0..count {
                let mut gap = 0;
                while number(1) == 0 {
                    gap += 1 << parameter;
                }
                places.push(next + gap + number(parameter));
                next = places[places.len() - 1] + 1;
            }
        }
        other => panic!("form {other}"),
    }
    assert_eq!(places.len(), count);
    let values = decode(&body[at.div_ceil(8)..], count);
    let mut out = vec![0.0; len];
    places
        .iter()
        .zip(values)
        .for_each(|(place, value)| out[*place] = value);
    out
}

fn sparse(body: &[u8], len: usize) -> Vec<f64> {
    let count = u32::from_le_bytes(body[1..5].try_into().unwrap()) as usize;
    let (places, values) = body[5..].split_at(body.len() - 5 - 4 * count);
    let mut out = vec![0.0; len];
    match body[0] {
        0 => {
            let (mut at, mut next) = (0, 0);
            for index in 0..count {
                let (mut gap, mut shift) = (0usize, 0);
                loop {
                    let byte = places[at];
                    at += 1;
                    gap |= usize::from(byte & 0x7f) << shift;
                    shift += 7;
                    if byte & 0x80 == 0 {
                        break;
                    }
                }
                out[next + gap] = f32_at(values, index);
                next += gap + 1;
            }
        }
        1 => {
            let set = (0..len).filter(|i| places[i / 8] >> (i % 8) & 1 == 1);
            set.enumerate()
                .for_each(|(index, place)| out[place] = f32_at(values, index));
        }
        2 => (0..len).for_each(|i| out[i] = f32_at(values, i)),
        other => panic!("form {other}"),
    }
    out
}
