//! Laws that every codec keeps: round trips, bounds, and strictness against hostile bytes.

use crate::slice::Slice;
use murmurate_strategies::compress::{CODECS, Codec, CodecKind, Sparse};
use proptest::prelude::*;

/// Every codec with its defaults, and more of those that have parameters.
fn kinds() -> Vec<CodecKind> {
    let widths = [
        ("int8", vec![("block", 64.0)]),
        ("int4", vec![("block", 128.0)]),
        ("int4-min-max", vec![("block", 16.0)]),
        ("qsgd", vec![("levels", 1.0), ("bucket", 64.0)]),
        ("qsgd", vec![("levels", 127.0)]),
        ("rotated", vec![("bits", 1.0)]),
        ("rotated", vec![("bits", 8.0)]),
        ("eden", vec![("bits", 1.0)]),
        ("eden", vec![("bits", 4.0)]),
    ];
    let widths = widths
        .iter()
        .map(|(name, given)| CodecKind::new(name, given).expect("parameters within their ranges"));
    let plain = CODECS.iter().map(|spec| crate::slice::kind(spec, 0.03));
    plain.chain(widths).chain(crate::slice::sparse()).collect()
}

/// All codecs, and those that their reductions go back in.
fn codecs() -> Vec<Box<dyn Codec>> {
    let mut all: Vec<Box<dyn Codec>> = kinds().iter().map(CodecKind::build).collect();
    all.push(Box::new(Sparse::default()));
    all
}

fn top_k(density: f64) -> Box<dyn Codec> {
    CodecKind::new("top-k", &[("density", density)])
        .expect("a density within its range")
        .build()
}

fn encoded(codec: &mut dyn Codec, values: &[f32]) -> Vec<u8> {
    let mut bytes = vec![0xee];
    let mut slice = Slice::new(codec, values.len());
    codec.encode(values, &mut slice.context(7), &mut bytes);
    assert_eq!(bytes.remove(0), 0xee, "encode must append");
    bytes
}

fn norm_squared(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|v| v * v).sum()
}

fn finite() -> impl Strategy<Value = f32> + Clone {
    any::<u32>()
        .prop_map(f32::from_bits)
        .prop_filter("finite", |v| v.is_finite())
}

fn usual() -> impl Strategy<Value = f32> + Clone {
    prop_oneof![4 => -1.0f32..1.0, 1 => Just(0.0f32), 1 => -100.0f32..100.0]
}

fn len() -> impl Strategy<Value = usize> {
    prop_oneof![
        Just(0usize),
        Just(1),
        Just(7),
        Just(8),
        Just(9),
        Just(4095),
        Just(4096),
        Just(4097),
        0usize..3000
    ]
}

fn values(of: impl Strategy<Value = f32> + Clone) -> impl Strategy<Value = Vec<f32>> {
    len().prop_flat_map(move |len| proptest::collection::vec(of.clone(), len))
}

/// Checks all that holds for any finite values; gives the decoded ones. Messages name the codec by the byte
/// that opens its encodings.
fn round_trip(codec: &mut dyn Codec, values: &[f32]) -> Vec<f32> {
    let bytes = encoded(codec, values);
    let bound = codec.bytes_bound().of(values.len() as u64);
    assert!(
        bytes.len() as u64 <= bound,
        "{}: {} values gave {} bytes, the bound is {bound}",
        bytes[0],
        values.len(),
        bytes.len()
    );
    assert_eq!(
        bytes,
        encoded(codec, values),
        "the same values must give the same bytes"
    );
    let mut decoded = vec![0.0; values.len()];
    codec
        .decode_add(&bytes, 1.0, &mut decoded)
        .expect("what a codec wrote, it reads");
    assert!(
        decoded.iter().all(|v| v.is_finite()),
        "{}: decoded to infinity",
        bytes[0]
    );
    if codec.properties().lossless {
        assert!(
            decoded.iter().zip(values).all(|(d, v)| d == v),
            "{} lost",
            bytes[0]
        );
    }
    decoded
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_finite_values_come_back_within_the_bound(values in values(finite())) {
        for codec in &mut codecs() {
            round_trip(&mut **codec, &values);
        }
    }

    #[test]
    fn codecs_contract_as_they_claim(values in values(usual())) {
        // What holds in the mean over seeds only is looked at in `statistics`.
        for codec in &mut codecs() {
            let properties = codec.properties();
            if properties.stochastic || properties.error.is_infinite() {
                continue;
            }
            let decoded = round_trip(&mut **codec, &values);
            let lost = norm_squared(values.iter().zip(&decoded).map(|(v, d)| f64::from(v - d)));
            let all = norm_squared(values.iter().map(|v| f64::from(*v)));
            let quiet = properties.quiet.powi(2) * values.len() as f64;
            let claimed = (properties.error * all).max(quiet);
            // Rounding of the f32 arithmetic inside the codec.
            prop_assert!(lost <= claimed * (1.0 + 1e-5), "{properties:?}: {lost} > {claimed}");
        }
    }

    #[test]
    fn decoding_adds_weighted_values(values in values(usual()), weight in 0.1f32..4.0) {
        for codec in &mut codecs() {
            let decoded = round_trip(&mut **codec, &values);
            let mut acc: Vec<f32> = (0..values.len()).map(|i| i as f32).collect();
            let bytes = encoded(&mut **codec, &values);
            codec.decode_add(&bytes, weight, &mut acc).unwrap();
            for (i, (a, d)) in acc.iter().zip(&decoded).enumerate() {
                prop_assert_eq!(*a, i as f32 + weight * d);
            }
        }
    }

    #[test]
    fn damaged_bytes_are_refused_or_harmless(
        values in values(usual()),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), 0u8..8), 1..4),
        cut in any::<prop::sample::Index>(),
        tail in proptest::collection::vec(any::<u8>(), 1..9),
    ) {
        for codec in &mut codecs() {
            let good = encoded(&mut **codec, &values);
            let untouched = vec![1.5f32; values.len()];
            let refuse = |bytes: &[u8], what: &str| {
                let mut acc = untouched.clone();
                prop_assert!(codec.decode_add(bytes, 1.0, &mut acc).is_err(), "{what} accepted");
                prop_assert_eq!(&acc, &untouched, "{} wrote before it refused", what);
                Ok(())
            };
            refuse(&good[..cut.index(good.len())], "truncated")?;
            refuse(&[&good[..], &tail].concat(), "extended")?;
            refuse(&[&[0u8], &good[1..]].concat(), "another codec's")?;
            let mut bad = good.clone();
            for (at, bit) in &flips {
                let at = at.index(bad.len());
                bad[at] ^= 1 << bit;
            }
            let mut acc = untouched.clone();
            match codec.decode_add(&bad, 1.0, &mut acc) {
                Ok(()) => prop_assert!(acc.iter().all(|v| v.is_finite())),
                Err(_) => prop_assert_eq!(&acc, &untouched),
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        tag in 0u8..48,
        len in 0usize..100,
    ) {
        for codec in &codecs() {
            let mut acc = vec![0.0; len];
            let tagged = [&[tag], &bytes[..]].concat();
            for bytes in [&bytes, &tagged] {
                if codec.decode_add(bytes, 1.0, &mut acc).is_err() {
                    prop_assert!(acc.iter().all(|v| *v == 0.0));
                }
                acc.fill(0.0);
            }
        }
    }
}

#[test]
fn what_is_not_finite_is_refused_wherever_it_stands() {
    for place in [0, 5, 4095, 4096] {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut values = vec![1.0f32; 4097];
            values[place] = bad;
            let codec = CodecKind::new("f32", &[]).unwrap().build();
            let mut bytes = vec![1u8];
            bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
            let mut acc = vec![0.0; 4097];
            assert!(codec.decode_add(&bytes, 1.0, &mut acc).is_err());
            assert!(acc.iter().all(|v| *v == 0.0));

            let mut half = vec![2u8];
            half.extend(
                values
                    .iter()
                    .flat_map(|v| ((v.to_bits() >> 16) as u16).to_le_bytes()),
            );
            assert!(
                CodecKind::new("bf16", &[])
                    .unwrap()
                    .build()
                    .decode_add(&half, 1.0, &mut acc)
                    .is_err()
            );
        }
    }
}

#[test]
fn a_reduction_of_sparse_contributions_is_exact_and_short() {
    let len = 10_000;
    let mut kept = top_k(0.01);
    let mut sum = vec![0.0f32; len];
    for peer in 0..4usize {
        let values: Vec<f32> = (0..len)
            .map(|i| ((i * 7919 + peer * 31) % 997) as f32)
            .collect();
        let bytes = encoded(&mut *kept, &values);
        kept.decode_add(&bytes, 0.25, &mut sum).unwrap();
    }
    let mut aggregate = kept.aggregate();
    let bytes = encoded(&mut *aggregate, &sum);
    let mut back = vec![0.0; len];
    aggregate.decode_add(&bytes, 1.0, &mut back).unwrap();
    assert_eq!(back, sum);
    assert!(
        bytes.len() < 4 * 100 * 6 + 10,
        "{} bytes for at most 400 values",
        bytes.len()
    );
}

#[test]
fn kinds_keep_their_names_in_toml() {
    for kind in kinds() {
        let text = toml::to_string(&kind).unwrap();
        assert!(
            text.contains(&format!("codec = \"{}\"", kind.name())),
            "{text}"
        );
        assert_eq!(toml::from_str::<CodecKind>(&text).unwrap(), kind);
    }
}
