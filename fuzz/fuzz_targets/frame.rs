//! Control frames: any bytes give an error, or a message that encodes to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use murmurate_protocol::wire;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(message) = wire::decode(bytes) {
        let again = wire::decode(&wire::encode(&message)).expect("what was decoded encodes");
        // NaN weights are refused, so equality holds for every message.
        assert_eq!(again, message);
    }
});
