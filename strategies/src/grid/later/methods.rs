//! Methods that no exchange supports yet. The arithmetic of some is in this crate.

use super::{Later, later};

const CORRECTION: &str = "inner.correction";
const CODEC: &str = "compression.codec";
const FORKS: &str = "its replicas are the parameters themselves, and they differ after one neighbour misses a slice";
const PLAIN: &str = "leave the key out";

/// All of them, by key and name.
pub const LATER: [Later; 5] = [
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
            "dcd",
            "differences to replicas",
            "q = C(x_{t+1/2} - x_t), x_{t+1} = x_t + q, with x_{t+1/2} = sum_j w_ij x_j - eta g",
            "Tang et al., NeurIPS 2018",
        ],
        FORKS,
        "use exchange = \"replicas\"",
    ),
    later(
        CODEC,
        [
            "ecd",
            "extrapolated differences to replicas",
            "z = (1 - t/2) x_t + (t/2) x_{t+1}, neighbours keep h' = (1 - 2/t) h + (2/t) C(z)",
            "Tang et al., NeurIPS 2018",
        ],
        FORKS,
        "use exchange = \"replicas\"",
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
    later(
        CORRECTION,
        [
            "fed-nova",
            "deltas normalized by their inner steps",
            "D = tau_eff sum_i p_i d_i / ||a_i||_1, tau_eff = sum_i p_i ||a_i||_1",
            "Wang et al., NeurIPS 2020",
        ],
        "it needs an exchange that sends the members' counts of inner steps",
        PLAIN,
    ),
];
