//! Every codec's decoder: after an error the accumulator is unchanged, after a success it is
//! finite. Every other input gets a valid header, so that the fuzzer reaches the code behind it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use murmurate_strategies::compress::{CODECS, CodecKind, EncodeContext};

fuzz_target!(|input: (u8, u16, bool, &[u8])| {
    let (which, len, with_header, bytes) = input;
    let spec = CODECS[usize::from(which) % CODECS.len()];
    let required = spec.parameters.iter().filter(|p| p.default.is_none());
    let given: Vec<_> = required.map(|p| (p.name, 0.1)).collect();
    let kind = CodecKind::new(spec.name, &given).expect("0.1 is a density");
    let codec = kind.build();
    for mut codec in [codec.aggregate(), codec] {
        let mut input = Vec::new();
        if with_header {
            // The encoding of zero values consists of the header.
            let mut memory = Vec::new();
            codec.encode(&[], &mut EncodeContext::seeded(0, &mut memory), &mut input);
        }
        input.extend_from_slice(bytes);
        let mut acc = vec![0.0; usize::from(len % 5000)];
        match codec.decode_add(&input, 1.0, &mut acc) {
            Ok(()) => assert!(acc.iter().all(|v| v.is_finite())),
            Err(_) => assert!(acc.iter().all(|v| *v == 0.0)),
        }
    }
});
