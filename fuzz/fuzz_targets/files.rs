//! Files of a daemon and of its data, and what bulk streams say of states: headers, manifests, IDX. The
//! first byte chooses the format. Their sources are read in by path, because the crates that they are
//! in would bring the network and the tensors along.
#![no_main]
#![allow(dead_code, reason = "each source has more than is called here")]

use libfuzzer_sys::fuzz_target;
use murmurate_protocol::wire::{decode_value, encode_value};
use murmurate_protocol::{Digest, Round, StateId};

#[path = "../../node/src/bulk/chunks.rs"]
mod chunks;
#[path = "../../node/src/bulk/headers.rs"]
mod headers;
#[path = "../../tasks/src/data/idx.rs"]
mod idx;
#[path = "../../node/src/store/checkpoint/manifest.rs"]
mod manifest;

#[path = "../../node/src/store/tensors/header.rs"]
mod tensor_header;

/// Where the sources look for each other.
mod store {
    pub(crate) mod tensors {
        pub(crate) use crate::tensor_header::TensorFile;
    }
}

/// Reads the header of a safetensors file. Entries that fit `data` bytes lie within them.
fn tensors(bytes: &[u8], data: u64) {
    if let Ok((metadata, entries)) = tensor_header::decode(bytes) {
        for entry in entries.values().filter(|entry| entry.dtype == "F32" || entry.dtype == "U8") {
            assert!(!entry.fits(data) || entry.bytes() <= data);
        }
        let again = tensor_header::encode(&metadata, &entries, 0);
        assert_eq!(tensor_header::decode(&again), Ok((metadata, entries)));
    }
}

fuzz_target!(|input: (u8, &[u8])| {
    let (which, bytes) = input;
    match which % 6 {
        0 => drop(idx::parse_images(bytes)),
        1 => drop(idx::parse_labels(bytes)),
        2 => tensors(bytes, bytes.len() as u64),
        3 => checkpoint(bytes),
        4 => {
            if let Ok(request) = decode_value::<headers::Request>(bytes) {
                assert_eq!(encode_value(&request), bytes);
            }
            if let Ok(reply) = decode_value::<headers::Reply>(bytes) {
                assert_eq!(encode_value(&reply), bytes);
            }
        }
        _ => state_manifest(bytes),
    }
});

fn checkpoint(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(manifest) = serde_json::from_str::<manifest::Manifest>(text) {
        let _ = (manifest.rounds(), manifest.snapshot(), manifest.is_whole(text));
    }
}

/// A manifest with its own root, for a state of the size that it is for and of others.
fn state_manifest(bytes: &[u8]) {
    let (size, manifest) = bytes.split_at(bytes.len().min(8));
    let mut eight = [0; 8];
    eight[..size.len()].copy_from_slice(size);
    let state = StateId { round: Round(1), root: Digest::of(manifest), bytes: u64::from_le_bytes(eight) };
    if let Ok(verified) = chunks::Manifest::verify(state, manifest) {
        for index in 0..verified.chunks().min(64) {
            assert!(verified.chunk_bytes(index).is_some());
            assert!(!verified.holds(index, &[]) || verified.chunk_bytes(index) == Some(0));
        }
        assert_eq!(verified.chunk_bytes(verified.chunks()), None);
    }
}
