//! Outer and inner optimizers and corrections by name.

use super::{Entry, Key, key};

const POSITIVE: &str = "a number above 0";
const BELOW_ONE: &str = "in [0, 1)";
const NOT_NEGATIVE: &str = "0 or a number above";

const fn outer_lr(default: &'static str) -> Key {
    key("outer.lr", POSITIVE, default, "how far along the aggregate")
}

const fn outer_momentum(default: &'static str) -> Key {
    key(
        "outer.momentum",
        BELOW_ONE,
        default,
        "the factor on the momentum in each step",
    )
}

const OUTER_BETAS: Key = key(
    "outer.betas",
    BELOW_ONE,
    "[0.9, 0.99]",
    "decay of the two moments",
);

const OUTER_EPS: Key = key(
    "outer.eps",
    POSITIVE,
    "0.001",
    "the degree of adaptivity, tau in the paper",
);

const EVERY: Key = key(
    "outer.every",
    "from 1 to 1000",
    "4",
    "arrivals for which momentum is applied once",
);

const SPREAD: Key = key(
    "outer.spread",
    "in [0, 1/every]",
    "0.0",
    "how much of the momentum is spread over the arrivals between",
);

const ALPHA: Key = key(
    "outer.alpha",
    "in (0, 1)",
    "0.225",
    "how much of the distance goes each way",
);

const PULL: Key = key(
    "outer.pull",
    "above the momentum mu and below sqrt(2 + mu^2)",
    "0.7",
    "how far towards the pair's mean anchor, gamma in the paper",
);

const PENALTY: Key = key(
    "outer.penalty",
    NOT_NEGATIVE,
    "1.0",
    "strength of the penalty on a late delta, by how far the anchor has moved since",
);

const CLIP: Key = key(
    "outer.clip",
    POSITIVE,
    "1.0",
    "the largest momentum of a value",
);

const STATE: Key = key(
    "outer.state",
    "f32, bf16",
    "\"f32\"",
    "how the momentum is kept; bf16 takes half the memory, checkpoints keep f32",
);

/// Values of `outer.optimizer`. D is the aggregated delta.
pub const OUTERS: [Entry; 10] = [
    Entry::new(
        "average",
        "the anchor becomes the mean",
        "a' = a + D",
        "McMahan et al., AISTATS 2017",
    ),
    Entry::new(
        "co2",
        "heavy-ball momentum for late deltas, with a penalty of the staleness gap and a clip",
        "u' = clip(mu u - D / (1 + penalty lr ||u|| / ||D||)), a' = a - lr u'",
        "Sun et al., ICLR 2024",
    )
    .with(&[outer_lr("1.0"), outer_momentum("0.5"), PENALTY, CLIP]),
    Entry::new(
        "delayed-nesterov",
        "momentum with every N-th arrival",
        "b' = b - D; every N-th: m' = mu m + b' / N, a' = a - lr ((1 - c N + c) mu m' - D / N); else a' = a - lr (c mu m - D / N)",
        "Liu et al., arXiv 2401.09135",
    )
    .with(&[outer_lr("0.7"), outer_momentum("0.9"), EVERY, SPREAD]),
    Entry::new(
        "easgd",
        "elastic averaging with a center",
        "x' = x - alpha (x - c), c' = c + alpha (x - c)",
        "Zhang et al., NeurIPS 2015",
    )
    .with(&[ALPHA]),
    Entry::new(
        "fed-adagrad",
        "an adaptive step with the sum of all squares",
        "m' = b m + (1 - b) D, v' = v + D^2, a' = a + lr m' / (sqrt(v') + eps)",
        "Reddi et al., ICLR 2021",
    )
    .with(&[outer_lr("0.01"), outer_momentum("0.0"), OUTER_EPS]),
    Entry::new(
        "fed-adam",
        "an adaptive step, as Adam's",
        "m' = b1 m + (1 - b1) D, v' = b2 v + (1 - b2) D^2, a' = a + lr m' / (sqrt(v') + eps)",
        "Reddi et al., ICLR 2021",
    )
    .with(&[outer_lr("0.01"), OUTER_BETAS, OUTER_EPS]),
    Entry::new(
        "fed-yogi",
        "an adaptive step that shrinks slowly",
        "m' = b1 m + (1 - b1) D, v' = v - (1 - b2) D^2 sign(v - D^2), a' = a + lr m' / (sqrt(v') + eps)",
        "Reddi et al., ICLR 2021",
    )
    .with(&[outer_lr("0.01"), OUTER_BETAS, OUTER_EPS]),
    Entry::new(
        "nesterov",
        "momentum on the pseudo-gradient",
        "m' = mu m - D, a' = a - lr (mu m' - D)",
        "Douillard et al., arXiv 2311.08105",
    )
    .with(&[outer_lr("0.7"), outer_momentum("0.9"), STATE]),
    Entry::new(
        "no-lo-co",
        "momentum on random pairs, each with an anchor of its own",
        "m' = mu m + lr mean_j (x_j - a_j) + pull (mean_j a_j - a_i), a' = a + m', j the pair",
        "Kolehmainen et al., arXiv 2506.10911",
    )
    .with(&[outer_lr("0.7"), outer_momentum("0.5"), PULL]),
    Entry::new(
        "slow-mo",
        "heavy-ball momentum on the pseudo-gradient (BMUF)",
        "u' = mu u - D, a' = a - lr u'",
        "Wang et al., ICLR 2020",
    )
    .with(&[outer_lr("1.0"), outer_momentum("0.5"), STATE]),
];

const fn lr(default: &'static str) -> Key {
    key("inner.lr", POSITIVE, default, "the learning rate")
}

const fn momentum(default: &'static str) -> Key {
    key(
        "inner.momentum",
        BELOW_ONE,
        default,
        "the factor on the momentum in each step",
    )
}

const fn decay(default: &'static str) -> Key {
    key(
        "inner.weight_decay",
        NOT_NEGATIVE,
        default,
        "pull towards zero",
    )
}

const fn freeze(default: &'static str, about: &'static str) -> Key {
    key("inner.freeze", "from 1 to 1000000000", default, about)
}

const SENDS: Key = key(
    "inner.sends",
    "gradients, momenta",
    "\"gradients\"",
    "what peers send of an inner step",
);

const BETAS: Key = key(
    "inner.betas",
    BELOW_ONE,
    "[0.9, 0.999]",
    "decay of the two moments",
);

const EPS: Key = key(
    "inner.eps",
    POSITIVE,
    "1e-8",
    "keeps the denominator above zero",
);

/// Values of `inner.optimizer`. g is the gradient.
pub const INNERS: [Entry; 7] = [
    Entry::new(
        "adam-w",
        "Adam with decoupled decay",
        "m' = b1 m + (1 - b1) g, v' = b2 v + (1 - b2) g^2, x' = x - lr (m^ / (sqrt(v^) + eps) + decay x), ^: over 1 - b^t",
        "Loshchilov and Hutter, ICLR 2019",
    )
    .with(&[lr("0.001"), BETAS, EPS, decay("0.01")]),
    Entry::new(
        "lamb",
        "Adam with steps proportional to the norm of each tensor",
        "u = m^ / (sqrt(v^) + eps) + decay x, x' = x - lr (||x|| / ||u||) u, tensor by tensor",
        "You et al., ICLR 2020",
    )
    .with(&[lr("0.001"), BETAS, EPS, decay("0.01")]),
    Entry::new(
        "muon",
        "momentum made orthogonal, matrix by matrix",
        "m' = mu m + g, O = U V^T of g + mu m' = U S V^T, x' = x - lr (0.2 sqrt(max(rows, columns)) O + decay x)",
        "Jordan et al. 2024; Liu et al., arXiv 2502.16982",
    )
    .with(&[lr("0.001"), momentum("0.95"), decay("0.0")]),
    Entry::new(
        "one-bit-adam",
        "Adam whose second moment freezes",
        "as adam-w without decay, v' = v after `freeze` inner steps",
        "Tang et al., ICML 2021",
    )
    .with(&[
        lr("0.001"),
        BETAS,
        EPS,
        freeze("1000", "inner steps in which the second moment is renewed"),
        SENDS,
    ]),
    Entry::new(
        "sgd",
        "with momentum and L2 decay",
        "v' = mu v + g + decay x, x' = x - lr v'",
        "Polyak 1964; Sutskever et al., ICML 2013",
    )
    .with(&[lr("0.1"), momentum("0.0"), decay("0.0")]),
    Entry::new(
        "signum",
        "the sign of a momentum",
        "m' = mu m + (1 - mu) g, x' = x - lr (sign(m') + decay x)",
        "Bernstein et al., ICML 2018",
    )
    .with(&[lr("0.0001"), momentum("0.9"), decay("0.0")]),
    Entry::new(
        "zero-one-adam",
        "Adam whose second moment changes less and less often",
        "as adam-w without decay; v changes at intervals that double after every `freeze` changes",
        "Lu et al., ICLR 2023",
    )
    .with(&[
        lr("0.001"),
        BETAS,
        EPS,
        freeze("16", "renewals of the second moment before their distance doubles"),

        SENDS,    ]),
];

/// Values of `inner.correction`; the others are in [`LATER`](super::super::LATER).
pub const CORRECTIONS: [Entry; 8] = [
    Entry::new("none", "the trainer's own gradients", "g' = g", "-"),
    Entry::new(
        "fed-prox",
        "a spring to the anchor",
        "g' = g + mu (x - a)",
        "Li et al., MLSys 2020",
    )
    .with(&[key(
        "inner.mu",
        POSITIVE,
        "0.01",
        "the strength of the spring",
    )]),
    Entry::new(
        "quasi-global",
        "momentum from the change of the parameters over a round, mixing included",
        "g' = g + beta m, m' = beta m + (1 - beta) (x - x') / (H lr), x and x' the parameters after two mixes",
        "Lin et al., ICML 2021",
    )
    .with(&[key(
        "inner.beta",
        BELOW_ONE,
        "0.9",
        "the factor on the momentum in each step",
    )]),
    Entry::new(
        "exact-diffusion",
        "D2: the sum of what was exchanged along the links is subtracted before every exchange",
        "y = x - lr g - d, d' = d + rate sum_j W_ij (h_i - h_j), x' = y - (d' - d), h the replicas of y",
        "Tang et al., ICML 2018; Yuan et al., IEEE TSP 2019; compressed: Huang and Pu 2023",
    ),
    Entry::new(
        "gradient-tracking",
        "a tracker of the mean gradient beside the parameters; with a coarse codec it is BEER",
        "y = g + s, x' = W (x - lr y), s' = s + W y - y; W by replicas of both",
        "Nedic et al., SIAM J. Optim. 2017; compressed: Zhao et al., NeurIPS 2022",
    ),
    Entry::new(
        "momentum-tracking",
        "a tracker of the mean momentum beside the parameters",
        "u' = beta u + g, y = u' + s, x' = W (x - lr y), s' = s + W y - y",
        "Takezawa et al., TMLR 2023",
    )
    .with(&[key(
        "inner.beta",
        BELOW_ONE,
        "0.9",
        "the factor on the momentum in each step",
    )]),
    Entry::new(
        "scaffold",
        "control variates against drift; their mean is sent beside the parameters",
        "g' = g - c_i + c, c_i' = c_i - c + (a - x) / (H lr), c' = mean_i c_i'",
        "Karimireddy et al., ICML 2020",
    ),
    Entry::new(
        "motef",
        "a tracker of the mean of averaged gradients beside the parameters, for coarse codecs and noisy gradients",
        "u' = beta u + (1 - beta) g, y = u' + s, x' = W (x - lr y), s' = s + W y - y; W by replicas of both",
        "Islamov et al., arXiv 2405.20114",
    )
    .with(&[key(
        "inner.beta",
        BELOW_ONE,
        "0.9",
        "the factor on the average in each step",
    )]),
];
