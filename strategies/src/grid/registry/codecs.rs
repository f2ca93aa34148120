//! Codecs as entries of the registry, from the list of codecs.

use super::Entry;
use crate::compress;

/// Values of `compression.codec`.
pub const CODECS: [Entry; compress::CODECS.len()] = {
    let mut entries = [Entry::new("", "", "", ""); compress::CODECS.len()];
    let mut at = 0;
    while at < entries.len() {
        let spec = compress::CODECS[at];
        entries[at] = Entry::new(spec.name, spec.summary, spec.equation, spec.source);
        at += 1;
    }
    entries
};
