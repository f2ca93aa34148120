//! Every codec's decoder: an error leaves the accumulator alone, a success leaves it finite.
#![no_main]

use libfuzzer_sys::fuzz_target;
use murmurate_strategies::grid::Strategy;

const CODECS: [&str; 4] = [
    "codec = \"f32\"",
    "codec = \"bf16\"",
    "codec = \"int8\"",
    "codec = \"top-k\"\ndensity = 0.1\nerror_feedback = true",
];

fuzz_target!(|input: (u8, u16, &[u8])| {
    let (which, len, bytes) = input;
    let text = format!("[compression]\n{}", CODECS[usize::from(which) % CODECS.len()]);
    let strategy = Strategy::parse(&text, Some("local-sgd")).expect("these are valid");
    let codec = strategy.codec();
    for codec in [codec.aggregate(), codec] {
        let mut acc = vec![0.0; usize::from(len % 5000)];
        match codec.decode_add(bytes, 1.0, &mut acc) {
            Ok(()) => assert!(acc.iter().all(|v| v.is_finite())),
            Err(_) => assert!(acc.iter().all(|v| *v == 0.0)),
        }
    }
});
