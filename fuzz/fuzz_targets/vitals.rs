//! Messages that carry vitals. What decodes is within its bounds, and is written as the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use murmurate_protocol::limits::{VITALS_BYTES_MAX, VITALS_NAME_BYTES_MAX};
use murmurate_protocol::vitals::VitalsMessage;

fuzz_target!(|bytes: &[u8]| {
    let Ok(message) = VitalsMessage::decode(bytes) else {
        return;
    };
    assert_eq!(message.encode(), bytes);
    let VitalsMessage::Vitals(all) = message else {
        return;
    };
    for heard in all {
        assert!(heard.signed.wire_bytes() <= VITALS_BYTES_MAX);
        if let Some(name) = heard.signed.vitals.name {
            assert!(name.as_str().len() <= VITALS_NAME_BYTES_MAX);
        }
    }
});
