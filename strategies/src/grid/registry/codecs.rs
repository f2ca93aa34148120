//! Codecs by name: name, line, source and keys from the list of codecs itself, equations from here.

use super::Entry;
use crate::compress;

/// Values of `compression.codec`, from the list of codecs itself.
pub const CODECS: [Entry; compress::CODECS.len()] = {
    let mut entries = [Entry::new("", "", "", ""); compress::CODECS.len()];
    let mut at = 0;
    while at < entries.len() {
        let spec = compress::CODECS[at];
        entries[at] = Entry::new(spec.name, spec.summary, equation(spec.name), spec.source);
        at += 1;
    }
    entries
};

/// What each codec computes, by name. A test refuses a codec that is not here.
const EQUATIONS: &[(&str, &str)] = &[
    ("f32", "C(x) = x"),
    (
        "bf16",
        "C(x) = x rounded to 8 significant bits, ties to even",
    ),
    ("fp16", "C(x) = 2^e half(x / 2^e), e of the block's largest"),
    (
        "fp8-e4m3",
        "C(x) = 2^e E4M3(x / 2^e), e of the block's largest",
    ),
    (
        "fp8-e5m2",
        "C(x) = 2^e E5M2(x / 2^e), e of the block's largest",
    ),
    (
        "fp4-e3m0",
        "C(x) = s sgn(x) 2^j, j in {-6 .. 0}, or 0, whichever is nearest; s = max |x| of the block",
    ),
    (
        "int8",
        "C(x) = s round(x / s), s = max |x| / 127 of the block",
    ),
    (
        "int4",
        "C(x) = s round(x / s), s = max |x| / 7 of the block",
    ),
    (
        "int8-min-max",
        "C(x) = l + s round((x - l) / s), s = (h - l) / 255, l and h the block's least and largest",
    ),
    (
        "int4-min-max",
        "C(x) = l + s round((x - l) / s), s = (h - l) / 15, l and h the block's least and largest",
    ),
    (
        "qsgd",
        "C(x) = ||x|| sgn(x) xi / s, xi = floor(s |x| / ||x||) or one more, E C(x) = x",
    ),
    (
        "nuqsgd",
        "C(x) = ||x|| sgn(x) h, h one of 0, 2^-6 .. 1 around |x| / ||x||, E C(x) = x",
    ),
    (
        "tern-grad",
        "C(x) = s sgn(x) b, b = 1 with probability |x| / s, else 0; s = max |x| of the block",
    ),
    (
        "natural",
        "C(x) = sgn(x) 2^(a + 1) with probability |x| / 2^a - 1, else sgn(x) 2^a, a = floor(log2 |x|)",
    ),
    (
        "one-bit",
        "C(x) = mean of the block's values of the same sign",
    ),
    (
        "two-bit",
        "C(x) = mean of its bucket: two signs, each parted at 0.9816 of the block's root mean square",
    ),
    (
        "sign-sgd",
        "C(x) = sgn(x), the reduction: the majority's sign",
    ),
    ("ef-sign", "C(x) = (||x||_1 / d) sgn(x), blocks of d values"),
    (
        "rotated",
        "C(x) = R^-1 Q(R x), R = H D / sqrt(d) a random rotation, Q stochastic levels",
    ),
    ("drive", "C(x) = R^-1 (S sgn(R x)), S = ||R x||_1 / d"),
    (
        "eden",
        "C(x) = R^-1 (S Q(R x)), S = ||x||^2 / <R x, Q(R x)>",
    ),
    (
        "top-k",
        "C(x)_i = x_i where |x_i| is among the density * len largest, else 0",
    ),
    (
        "top-k-sampled",
        "C(x)_i = x_i where |x_i| >= tau, tau the density's quantile of a sample of |x|",
    ),
    (
        "gaussian-k",
        "C(x)_i = x_i where |x_i| >= tau, tau = Phi^-1(1 - density / 2) sigma + mu, corrected three times",
    ),
    (
        "sidco",
        "C(x)_i = x_i where |x_i| >= eta_M, eta_m = eta_{m-1} + ln(1 / delta_m) mean(|x| - eta_{m-1} above it)",
    ),
    (
        "chunk-top-k",
        "e' = decay e + x, C = the density * chunk largest of every chunk of e', written by `values`",
    ),
    (
        "random-k",
        "C(x)_i = x_i at k random places that all peers draw alike, else 0",
    ),
    (
        "random-k-unbiased",
        "C(x)_i = d / k x_i at k random places that all peers draw alike, else 0",
    ),
    (
        "wangni",
        "C(x)_i = x_i / p_i with probability p_i = min(1, lambda |x_i|), else 0, E C(x) = x",
    ),
    ("threshold", "C(x)_i = x_i where |x_i| >= tau, else 0"),
    ("strom", "C(x)_i = tau sgn(x_i) where |x_i| >= tau, else 0"),
    (
        "ada-comp",
        "C(x)_i = G_i where |G_i + x_i| >= max |G| of the bin, G = e + x",
    ),
    (
        "sbc",
        "C(x)_i = mu at the k largest of one sign, mu their mean, else 0",
    ),
    (
        "stc",
        "C(x)_i = mu sgn(x_i) where |x_i| is among the k largest, mu their mean magnitude",
    ),
    (
        "dgc",
        "u' = mu u + x, v' = v + u', C = the k largest of v', u and v zero where sent",
    ),
    (
        "de-mo",
        "C(x) = D' (the k largest of D m, tile by tile), m = beta e + x, D the cosine transform",
    ),
    (
        "power-sgd",
        "P = orth(M Q), Q' = M' P, C(M) = P Q'', Q' warm-starts the next round",
    ),
    (
        "atomo",
        "C(M) = sum of s_i / p_i u_i v_i' over the singular triples kept, each with chance p_i",
    ),
    (
        "sufficient-factors",
        "C(M) = sum_{k < s} u_k v_k', u_k the longest column of what is left, v_k = what is left' u_k",
    ),
    (
        "double-squeeze",
        "up: C(x_i + e_i), down: C(mean + e_0), each end keeps what it left out",
    ),
    (
        "ef21",
        "q_i = C(x_i - h_i), moved = mean (h_i + q_i), h_i' = h_i + q_i at every member",
    ),
    (
        "diana",
        "q_i = C(x_i - h_i), moved = mean (h_i + q_i), h_i' = h_i + q_i / (1 + omega) at every member",
    ),
    (
        "lag",
        "as ef21; nothing is sent where ||x_i - h_i||^2 <= xi sum_{d=1..10} ||moved_d||^2",
    ),
    (
        "g-top-k",
        "moved = top_k(mean top_k(v_i)), e_i = v_i - top_k(v_i) where it moved, v_i elsewhere",
    ),
    (
        "ok-top-k",
        "as g-top-k, with |x| >= t for top_k, t looked for every `every` rounds",
    ),
    (
        "clt-k",
        "C(x)_i = x_i at the places of the k largest of the leader's residual, the leader being round mod n",
    ),
    (
        "acp-sgd",
        "P_i = M_i Q in odd rounds, Q_i = M_i' P in even ones, C(M_i) = P_i Q' or P Q_i', each orthogonalized after its mean",
    ),
    (
        "fetch-sgd",
        "S_u = rho S_u + mean S(x_i), S_e = S_e + S_u, moved = top-k of U(S_e), S_e = S_e - S(moved)",
    ),
    (
        "by-size",
        "C(x) = (L(x_large), S(x_rest)), x_large the matrices of at least `below` values",
    ),
    (
        "count-sketch",
        "S_{j, h_j(i)} += g_j(i) x_i, C(x)_i = median over j of g_j(i) S_{j, h_j(i)} at the k largest",
    ),
];

const fn equation(name: &str) -> &'static str {
    let mut at = 0;
    while at < EQUATIONS.len() {
        if same(EQUATIONS[at].0, name) {
            return EQUATIONS[at].1;
        }
        at += 1;
    }
    ""
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}
