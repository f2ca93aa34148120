//! Records of a peer's inputs: any bytes, and headers and inputs in valid frames. The reader refuses
//! them or gives entries out, and what it accepts as a header makes a peer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use murmurate_protocol::record::{Entry, Framer, RecordHeader, RecordReader, Recorder};
use murmurate_protocol::wire::decode_value;
use murmurate_protocol::{Input, Time};
use murmurate_strategies::topology::TopologyKind;

const BINARY: &str = "fuzz";

fn read(bytes: &[u8]) -> u64 {
    let mut reader = RecordReader::new(BINARY);
    let mut entries = 0;
    for some in bytes.chunks(97) {
        reader.push(some);
        loop {
            match reader.entry() {
                Ok(Some(Entry::Header(header))) => {
                    entries += 1;
                    if let Some(topology) = &header.topology {
                        let _ = decode_value::<TopologyKind>(topology);
                    }
                }
                Ok(Some(_)) => entries += 1,
                Ok(None) => break,
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    return entries;
                }
            }
        }
    }
    entries
}

fuzz_target!(|input: (bool, &[u8], Vec<(u32, &[u8])>)| {
    let (framed, bytes, inputs) = input;
    if !framed {
        read(bytes);
        return;
    }
    let Ok(header) = decode_value::<RecordHeader>(bytes) else {
        return;
    };
    let Ok((mut framer, mut record)) = Framer::start(BINARY, &header) else {
        return;
    };
    let mut recorder = Recorder::new();
    for (at, bytes) in inputs {
        if let Ok(input) = decode_value::<Input>(bytes)
            && let Ok(entry) = recorder.input(Time::from_nanos(u64::from(at)), &input)
        {
            framer.frame(&entry, &mut record);
        }
    }
    read(&record);
});
