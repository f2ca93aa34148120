//! Which module of `protocol` may name which other one.

use crate::files::{rust_files, text};
use crate::rust_text::{code_only, has_word, with_braces_written_out};

/// The files under `directory` whose code names one of `words`.
fn offenders(directory: &str, words: &[&str]) -> Vec<String> {
    let files = rust_files(&[directory]);
    assert!(!files.is_empty(), "{directory} has no Rust files");
    let mut found = Vec::new();
    for file in files {
        let code = with_braces_written_out(&code_only(&text(&file)));
        for word in words.iter().filter(|word| has_word(&code, word)) {
            found.push(format!("{file} names `{word}`"));
        }
    }
    found
}

#[test]
fn core_knows_neither_exchanges_nor_the_peer() {
    let above = [
        "crate::exchange",
        "crate::peer",
        "crate::Peer",
        "crate::Input",
    ];
    let bad = offenders("protocol/src/core", &above);
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn exchanges_never_name_the_peer_that_runs_them() {
    let above = ["crate::peer", "crate::Peer", "crate::Input"];
    let bad = offenders("protocol/src/exchange", &above);
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}
