//! Presets that no exchange, codec or schedule allows yet.

use super::{Later, RELAY, later};

const fn preset(
    [name, summary, equation, source]: [&'static str; 4],
    reason: &'static str,
    remedy: &'static str,
) -> Later {
    later("preset", [name, summary, equation, source], reason, remedy)
}

const D_PSGD: &str = "use \"d-psgd\" with topology = \"base-k\"";

/// All of them, by name.
pub const LATER_PRESETS: [Later; 1] = [preset(
    [
        "relaysgd",
        "gossip by sums relayed along a tree",
        "m_ij = x_i + sum_{l != j} m_li",
        "Vogels et al., NeurIPS 2021",
    ],
    RELAY,
    D_PSGD,
)];
