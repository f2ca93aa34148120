//! What strangers and files say about membership: messages at the gate, chains of certificates,
//! invites, registers and proofs. None of them panics, none of them lets anybody in, and what was read is
//! written as the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use murmurate_protocol::limits::PROOF_BYTES_MAX;
use murmurate_protocol::{PeerId, Proof};
use murmurate_trust::gate::Message;
use murmurate_trust::{Chain, Invite, Register, RunKey};

const NOW: u64 = 1_700_000_000;

fuzz_target!(|input: (u8, &[u8])| {
    let (which, bytes) = input;
    let run = RunKey::from_seed("fuzz".to_owned(), [1; 32]).run();
    let peer = PeerId::from_bytes([2; 32]);
    match which % 5 {
        0 => {
            if let Ok(message) = Message::decode(bytes) {
                assert_eq!(message.encode(), bytes);
                if let Message::News(news) = message {
                    assert!(Register::new(run).learn(news, &peer, NOW).fresh.is_empty());
                }
            }
        }
        1 => {
            if let Some(chain) = Chain::from_bytes(bytes) {
                assert_eq!(chain.to_bytes(), bytes);
                assert!(Register::new(run).admit(&chain, &peer, NOW).is_err());
            }
        }
        4 => {
            if let Some(proof) = Proof::from_bytes(bytes) {
                assert_eq!(proof.to_bytes(), bytes);
                assert!(bytes.len() <= PROOF_BYTES_MAX);
                assert!(!proof.what().is_empty());
                assert_ne!(Register::new(run).ban(proof), Some(true));
            }
        }
        2 => {
            if let Ok(invite) = Invite::from_line(&String::from_utf8_lossy(bytes)) {
                let _ = invite.accept(peer, NOW);
            }
        }
        _ => {
            if let Ok(register) = Register::from_bytes(run, bytes) {
                assert_eq!(register.members().count(), 0);
            }
        }
    }
});
