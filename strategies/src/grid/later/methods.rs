//! Methods that no exchange carries yet. The arithmetic of some is in this crate.

use super::{Later, PAIRS, RELAY, later};

const TOPOLOGY: &str = "architecture.topology";
const CORRECTION: &str = "inner.correction";
const OUTER: &str = "outer.optimizer";
const CODEC: &str = "compression.codec";
const SHIFTS: &str = "the group must keep the mean of every member's shift, and members that come, go or lose a round break it";
const FORKS: &str =
    "its replicas are the parameters themselves, and a slice that one neighbour lacks forks them";
const FEEDBACK: &str = "use \"top-k\" with error feedback";
const PLAIN: &str = "leave the key out";

/// All of them, by key and name.
pub const LATER: [Later; 17] = [
    later(
        "aggregation.rule",
        [
            "gauntlet",
            "only what lowers the loss on held data",
            "the mean of the `top` peers by rating max(mu, 0) among those that lower the held loss",
            "Lidin et al. 2025",
        ],
        "it needs an exchange in which every contribution is evaluated on held data",
        "use \"centered-clip\" or \"multi-krum\"",
    ),
    later(
        CODEC,
        [
            "acp-sgd",
            "one factor of a matrix a round, in turn",
            "P = M Q in even rounds, Q = M' P in odd ones, each orthogonalized after its mean",
            "Zhang et al., ICDCS 2023",
        ],
        "each round starts from the mean of the factor before, and codecs do not see what becomes of theirs",
        "use \"power-sgd\"",
    ),
    later(
        CODEC,
        [
            "clt-k",
            "the places that one peer chooses in turn, the same for all",
            "places = top-k of the leader's e + g, the leader being round mod n; all send their values there",
            "Chen et al., NeurIPS 2020",
        ],
        "it needs an exchange in which a leader sends its places before others encode",
        "use \"random-k\" or \"chunk-top-k\"",
    ),
    later(
        CODEC,
        [
            "diana",
            "differences to a shift that learns",
            "m = Q(g - h), h' = h + alpha m, applied: h + mean m",
            "Mishchenko et al., arXiv 1901.09269",
        ],
        SHIFTS,
        FEEDBACK,
    ),
    later(
        CODEC,
        [
            "ef21",
            "differences to what was sent last",
            "m = C(g - h), h' = h + m, applied: mean h'",
            "Richtarik et al., NeurIPS 2021",
        ],
        SHIFTS,
        FEEDBACK,
    ),
    later(
        CODEC,
        [
            "double-squeeze",
            "error feedback at those who reduce too",
            "up: C(g + e), down: C(mean + e_0), each keeps what it left out",
            "Tang et al., ICML 2019",
        ],
        "who reduces a shard changes from round to round, and what a reduction leaves out with it",
        FEEDBACK,
    ),
    later(
        CODEC,
        [
            "fetch-sgd",
            "momentum and error inside a sum of sketches",
            "S_u = rho S_u + mean S(g), S_e = S_e + eta S_u, applied: top-k of U(S_e)",
            "Rothchild et al., ICML 2020",
        ],
        "it needs an exchange that sums what is encoded, and keeps state where it is summed",
        "use \"count-sketch\"",
    ),
    later(
        CODEC,
        [
            "g-top-k",
            "the largest of the sum, found along a tree",
            "top-k of the sum of two sparse vectors at every node of a tree",
            "Shi et al., ICDCS 2019",
        ],
        "it needs an exchange that merges along a tree, and tells every member what was dropped",
        FEEDBACK,
    ),
    later(
        CODEC,
        [
            "ok-top-k",
            "the largest of the sum, by regions of equal load",
            "threshold t with k values above it in the sum; regions cut so that each owner reduces as many",
            "Li and Hoefler, PPoPP 2022",
        ],
        "it needs an exchange whose shards follow where the largest values lie",
        "use \"chunk-top-k\"",
    ),
    later(
        CODEC,
        [
            "lag",
            "nothing where little has changed",
            "sent only where ||g - g_last||^2 > (1/n^2 eta^2) sum_d xi_d ||x_{k+1-d} - x_{k-d}||^2",
            "Chen et al., NeurIPS 2018",
        ],
        "it needs an exchange in which a member may say that its last contribution still holds",
        FEEDBACK,
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
        "its receiver decodes relative to its own parameters, which decoders do not see",
        "use \"int8\"",
    ),
    later(
        TOPOLOGY,
        [
            "bandwidth-matching",
            "pairs over the fastest links",
            "W_ii = W_ij = 1/2 for the pairs of a greedy matching by link rate",
            "Tang et al., ICDCS 2020",
        ],
        "it needs link rates that all peers agree on, which no exchange carries",
        "use \"random-matching\"",
    ),
    later(
        TOPOLOGY,
        [
            "relay-sum",
            "sums along a spanning tree",
            "m_ij = x_i + sum_{l != j} m_li, x_i' = (x_i + sum_j m_ji + (n - 1 - sum_j c_ji) x_i) / n",
            "Vogels et al., NeurIPS 2021",
        ],
        RELAY,
        "use \"base-k\"",
    ),
    later(
        CORRECTION,
        [
            "fed-nova",
            "deltas by the count of inner steps",
            "D = tau_eff sum_i p_i d_i / ||a_i||_1, tau_eff = sum_i p_i ||a_i||_1",
            "Wang et al., NeurIPS 2020",
        ],
        "it needs an exchange that tells the members' counts of inner steps",
        PLAIN,
    ),
    later(
        OUTER,
        [
            "no-lo-co",
            "momentum on random pairs",
            "m' = alpha m + beta mean_j (x_j - a_j) + gamma (mean_j a_j - a_i), a' = a + m'",
            "Kolehmainen et al., arXiv 2506.10911",
        ],
        PAIRS,
        "use \"nesterov\" with exchange = \"all-reduce\"",
    ),
];
