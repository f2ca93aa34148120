//! Methods that no exchange supports yet. The arithmetic of some is in this crate.

use super::{Later, later};

const CODEC: &str = "compression.codec";

/// All of them, by key and name.
pub const LATER: [Later; 2] = [
    later(
        "aggregation.rule",
        [
            "gauntlet",
            "only contributions that lower the loss on held-out data",
            "the mean of the `top` peers by rating max(mu, 0) among those that lower the held-out loss",
            "Lidin et al. 2025",
        ],
        "it needs an exchange in which every contribution is evaluated on held-out data",
        "use \"centered-clip\" or \"multi-krum\"",
    ),
    later(
        CODEC,
        [
            "moniqua",
            "parameters modulo a bound of their distance",
            "sent Q(x mod B), decoded next to the receiver's own x",
            "Lu and De Sa, ICML 2020",
        ],
        "a receiver decodes it relative to its own parameters, which decoders do not get",
        "use \"int8\"",
    ),
];
