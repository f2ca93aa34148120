//! Methods that no exchange supports yet. The arithmetic of some is in this crate.

use super::{Later, later};

const CODEC: &str = "compression.codec";

/// All of them, by key and name.
pub const LATER: [Later; 1] = [later(
    CODEC,
    [
        "moniqua",
        "parameters modulo a bound of their distance",
        "sent Q(x mod B), decoded next to the receiver's own x",
        "Lu and De Sa, ICML 2020",
    ],
    "a receiver decodes it relative to its own parameters, which decoders do not get",
    "use \"int8\"",
)];
