//! Exchanges, contributions and topologies by name.

use super::modes::{ENOUGH, FRACTION, GRACE, GRACE_MS};
use super::{Entry, Key, key};

/// Values of `architecture.exchange`.
pub const EXCHANGES: [Entry; 10] = [
    Entry::new("none", "nobody exchanges anything", "x_i' = x_i", "-"),
    Entry::new(
        "gossip",
        "push to the round's partners, mix what arrived",
        "x_i' = (m_i x_i + sum_k m_k C(x_k)) / (m_i + sum_k m_k), m_i = w_i - sum_j W_ji w_i, m_k the masses that arrived",
        "Lian et al., NeurIPS 2017; push-sum: Kempe et al., FOCS 2003; Assran et al., ICML 2019",
    ),
    Entry::new(
        "replicas",
        "neighbours exchange differences to replicas of each other",
        "h_i' = h_i + C(x_i - h_i), x_i' = x_i + rate sum_j W_ij (h_j - h_i), as much to one end as from the other",
        "Koloskova et al., ICML 2019",
    )
    .with(&[RATE]),
    Entry::new(
        "pairs",
        "push-pull: two neighbours average whenever one of them begins to, nobody waits",
        "x_i' = x_i + w (C(x_j) - C(x_i)), x_j' = x_j - w (C(x_j) - C(x_i)), w = 1/2, less where several are under way",
        "Lian et al., ICML 2018",
    ),
    Entry::new(
        "push",
        "as gossip, and nobody waits: whatever has arrived is mixed",
        "x_i' = (m_i x_i + sum_k m_k C(x_k)) / (m_i + sum_k m_k) over the slices k that are there, of any round",
        "overlapped SGP: Assran et al., ICML 2019; GoSGD: Blot et al., arXiv 1611.09726",
    ),
    Entry::new(
        "relay-sum",
        "sums relayed along a spanning tree of the topology: everybody in everybody's mean once, delayed by the distance",
        "m_ij = x_i + sum_{l != j} m_li, c_ij = 1 + sum_{l != j} c_li, x_i' = (x_i + sum_j m_ji + (n - 1 - sum_j c_ji) x_i) / n",
        "Vogels et al., NeurIPS 2021",
    ),
    Entry::new(
        "pull",
        "ask the round's partners, mix what they published last; nobody pushes unasked",
        "x_i' = (1 - sum_j W_ij) x_i + sum_j W_ij C(x_j) over the partners j that answered, with x_j of whichever round: rows sum to one, columns need not",
        "Demers et al., PODC 1987; Karp et al., FOCS 2000; Tsitsiklis et al., IEEE Trans. Autom. Control 1986",
    ),
    Entry::new(
        "all-reduce",
        "the weighted mean of all members, along a schedule; all agree on the result",
        "a' = outer(a, sum_i w_i C(d_i) / sum_i w_i), over the contributors that the group agreed on",
        "Thakur et al., IJHPCA 2005; of whoever is ready: Li et al., PPoPP 2020",
    )
    .with(&[ENOUGH, GRACE, GRACE_MS, FRACTION]),
    Entry::new(
        "gathered",
        "everybody gets every contribution as it is encoded and combines them, all agree on which",
        "a' = outer(a, sum_i w_i C(d_i) / sum_i w_i), over the contributors that the group agreed on; no C of the sum",
        "Lin et al., ICLR 2018; Xu et al., ICDCS 2021",
    )
    .with(&[ENOUGH, GRACE, GRACE_MS]),
    Entry::new(
        "parameter-server",
        "k peers own the shards, by rendezvous hash; a dead one's successor holds the center",
        "a' = outer(a, C(sum_i w_i C(d_i) / sum_i w_i)), shard s at the peer of the s-th highest hash",
        "Li et al., OSDI 2014; Jiang et al., OSDI 2020; Chen et al., arXiv 1604.00981",
    )
    .with(&[OWNERS]),
];

const OWNERS: Key = key(
    "architecture.owners",
    "from 1 to 64",
    "1",
    "peers that own a shard of each fragment",
);
/// Values of `architecture.schedule`: which way an all-reduce of n members and m bytes sums up. Of
/// each what the busiest member sends, and how many pushes depend on one another.
pub const SCHEDULES: [Entry; 8] = [
    Entry::new(
        "binary-tree",
        "up and down one binary tree; fragments follow one another through it",
        "3 m, 2 floor(log2 n) hops: s_i = d_i + s_{2i+1} + s_{2i+2}, the mean at rank 0",
        "Thakur et al., IJHPCA 2005",
    ),
    Entry::new(
        "butterfly",
        "every member reduces a shard directly, and leaves out who is late",
        "2 m (n-1)/n, 2 hops: s_k = sum_i d_i[k] at rank k",
        "Ryabinin et al., NeurIPS 2021",
    ),
    Entry::new(
        "double-tree",
        "half through each of two binary trees, inner ranks of one being leaves of the other",
        "2 m, 2 floor(log2 n) hops: binary-tree of one half, and of the other in reverse order of ranks",
        "Sanders et al., Parallel Computing 2009",
    ),
    Entry::new(
        "halving-doubling",
        "pairs at halving distances swap halves, then hand them on",
        "2 m (p-1)/p, 2 log2 p hops for p = 2^floor(log2 n); where n > p the rest folds first: m (3p-2)/p, 2 hops more",
        "Thakur et al., IJHPCA 2005",
    ),
    Entry::new(
        "hierarchical",
        "islands of consecutive ranks bring all to a leader, leaders form a ring",
        "m (2 (L-1)/L + g-1) at a leader, of it 2 m (L-1)/L between islands, 2 L hops, L = ceil(n/g), g the group",
        "Jia et al., arXiv 1807.11205",
    )
    .with(&[GROUP]),
    Entry::new(
        "recursive-doubling",
        "pairs at doubling distances swap whole sums",
        "m log2 p, log2 p hops for p = 2^floor(log2 n); where n > p the rest folds first: m more, 1 or 2 hops more",
        "Thakur et al., IJHPCA 2005",
    ),
    Entry::new(
        "ring",
        "every shard around a ring, twice",
        "2 m (n-1)/n, 2 (n-1) hops: s_k passes ranks k+1, ..., k+n, each adding its d_i[k]",
        "Patarasuk and Yuan, JPDC 2009",
    ),
    Entry::new(
        "torus",
        "rings along rows, then columns, of a grid r x c = n; a prime is one ring",
        "2 m (n-1)/n, 2 (r-1) + 2 (c-1) hops, r the largest divisor of n up to sqrt n",
        "Mikami et al., arXiv 1811.05233",
    ),
];

/// Values of `architecture.contribution`.
pub const CONTRIBUTIONS: [Entry; 3] = [
    Entry::new(
        "gradient",
        "the gradient of one inner step at the anchor",
        "d_i = grad f_i(a)",
        "-",
    ),
    Entry::new(
        "delta",
        "parameters after the round minus the anchor",
        "d_i = x_i - a",
        "-",
    ),
    Entry::new("parameters", "the parameters themselves", "x_i", "-"),
];

const fn degree(default: &'static str) -> Key {
    key(
        "architecture.degree",
        "from 1 to 64",
        default,
        "partners, distances or matchings",
    )
}

const GROUP: Key = key(
    "architecture.group",
    "from 2 to 64",
    "4",
    "peers of an island or of a group",
);

const EVERY: Key = key(
    "architecture.every",
    "from 2 to a million",
    "4",
    "in one of so many rounds islands mix with each other: H2, with H1 = `synchronization.inner_steps`",
);

const RATE: Key = key(
    "architecture.rate",
    "in (0, 1]",
    "1.0",
    "how far neighbours move towards each other: small for coarse codecs",
);

const BUDGET: Key = key(
    "architecture.budget",
    "in (0, 1]",
    "0.5",
    "the share of the edges in force in a round",
);

/// Values of `architecture.topology`.
pub const TOPOLOGIES: [Entry; 18] = [
    Entry::new(
        "base-k",
        "exact in finitely many rounds for any n, k partners",
        "n = sum_l a_l (k+1)^(p_l): blocks average within, then across, then within; prod_r W_r = 1 1^T / n",
        "Takezawa et al., NeurIPS 2023",
    )
    .with(&[degree("1")]),
    Entry::new(
        "binary-tree",
        "parent and children",
        "W_ij = 1 / (1 + max(deg i, deg j)) along the edges i - (i - 1) / 2",
        "Nedic et al., Proc. IEEE 2018",
    ),
    Entry::new("complete", "everybody with everybody", "W_ij = 1/n", "the mean"),
    Entry::new(
        "equi-dyn",
        "one push a round over a random distance",
        "W = (I + A(u)) / 2, u drawn from 1..n for the round, A(u)_{i+u,i} = (n-1)/n, A(u)_ii = 1/n",
        "Song et al., NeurIPS 2022",
    ),
    Entry::new(
        "equi-static",
        "a few random distances, drawn once",
        "W = (1/M) sum_m A(u_m), u_m drawn once from 1..n, A(u)_{i+u,i} = (n-1)/n, A(u)_ii = 1/n",
        "Song et al., NeurIPS 2022",
    )
    .with(&[degree("4")]),
    Entry::new(
        "exponential",
        "pushes over every doubling distance",
        "W_ii = W_{i+2^k,i} = 1/(tau+1), k < tau = ceil(log2 n)",
        "Ying et al., NeurIPS 2021",
    ),
    Entry::new(
        "hierarchical",
        "islands that agree within, a ring between",
        "even rounds: the mean of the island; odd rounds: the islands' first ranks on a ring, 1/3 each",
        "Lin et al., ICLR 2020",
    )
    .with(&[GROUP]),
    Entry::new(
        "hypercube",
        "ranks that differ in one bit",
        "W_ij = 1 / (1 + max(deg i, deg j)) for j = i xor 2^b",
        "Trevisan 2016",
    ),
    Entry::new(
        "islands",
        "hierarchical local SGD: means of islands, and every so many rounds across them",
        "W_ij = 1/g within an island, every `every`-th round 1/L with the same places of the L islands; one after the other is 1 1^T / n for n = g L",
        "Lin et al., ICLR 2020",
    )
    .with(&[GROUP, EVERY]),
    Entry::new(
        "matcha",
        "a torus's matchings, each in some rounds",
        "W = I - sum_j B_j L_j / (1 + d), B_j ~ Bernoulli(budget), L_j the Laplacian of matching j",
        "Wang et al., arXiv 1905.09435",
    )
    .with(&[BUDGET]),
    Entry::new(
        "moshpit",
        "means of small groups along a grid's axes",
        "W_ij = 1/M for ranks that differ only along axis r mod d of a grid of side M, d = ceil(log_M n)",
        "Ryabinin et al., NeurIPS 2021",
    )
    .with(&[GROUP]),
    Entry::new(
        "null-cascade",
        "exact in finitely many commuting rounds for any n",
        "W_u = w_0 I + w_1 (S^(u s) + S^(-u s)), w_0 = cos(pi/p) / (1 + cos(pi/p)), w_1 = (1 - w_0) / 2, p a prime factor of n",
        "NeurIPS 2025",
    ),
    Entry::new(
        "one-peer-exponential",
        "one push a round over doubling distances",
        "W_ii = W_{i+2^(r mod tau),i} = 1/2, tau = ceil(log2 n)",
        "Ying et al., NeurIPS 2021",
    ),
    Entry::new(
        "random-matching",
        "new pairs in every round",
        "W_ii = W_ij = 1/2 for the pairs of a random matching of the round",
        "Boyd et al., IEEE Trans. Inf. Th. 2006",
    ),
    Entry::new(
        "random-regular",
        "the union of a few random matchings",
        "W = (I + sum_{m <= d} P_m) / (d + 1), P_m random matchings drawn once",
        "Friedman, Mem. AMS 2008",
    )
    .with(&[degree("4")]),
    Entry::new(
        "ring",
        "a third each with the two neighbours",
        "W_ii = W_{i+1,i} = W_{i-1,i} = 1/3",
        "Lian et al., NeurIPS 2017",
    ),
    Entry::new(
        "star",
        "one hub with everybody",
        "W_0j = W_j0 = W_00 = 1/n, W_jj = 1 - 1/n",
        "Ying et al., NeurIPS 2021",
    ),
    Entry::new(
        "torus",
        "four neighbours on a grid that wraps around",
        "W_ii = W_ij = 1 / (1 + d) for the d neighbours j on a grid of a x b = n",
        "Koloskova et al., ICML 2019",
    ),
];
