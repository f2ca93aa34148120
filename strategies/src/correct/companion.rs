//! A second vector that travels beside the parameters, as more fragments after theirs. The Executor
//! knows about it, the exchange does not.

/// How an Executor treats the companion of the parameters.
///
/// The exchanged values are the parameters, then the companion, which has the same length. Each
/// fragment belongs to one of the two.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Companion {
    /// There is none.
    #[default]
    None,
    /// A vector of each peer, in an exchange that agrees on the mean. A contribution is the
    /// difference between the peer's vector and the last mean, so the new mean is that of the
    /// contributors, even if peers came, left or missed a round:
    ///
    /// ```text
    /// c' = c + sum_i w_i (c_i - c) / sum_i w_i = sum_i w_i c_i / sum_i w_i
    /// ```
    Mean,
    /// A vector y of each peer that flows between neighbours with replicas of each other. The state
    /// is the sum of what has flowed to this peer along its links,
    ///
    /// ```text
    /// s_i = sum_j F_ij,   F_ij' = F_ij + rate w_ij (k_j - k_i) = -F_ji',   k the replicas of y
    /// ```
    ///
    /// so that the sum of all s stays zero. If a neighbour is gone, both ends drop F, and the rest
    /// still sums to zero. A peer that resumes begins without it, and so do its neighbours.
    Flows,
    /// The peer's anchor of the round, mixed like the parameters. When both are mixed, the outer
    /// optimizer moves the anchor, and the parameters begin the next round there:
    ///
    /// ```text
    /// d = lr (mix x - mix a) + pull (mix a - a_i),   a_i' = outer(a_i, d),   x_i' = a_i'
    /// ```
    Anchors {
        /// How far along the mean delta.
        lr: f32,
        /// How far towards the mean anchor.
        pull: f32,
    },
}

impl Companion {
    /// Its values for `len` parameters.
    pub const fn len(self, len: usize) -> usize {
        match self {
            Self::None => 0,
            Self::Mean | Self::Flows | Self::Anchors { .. } => len,
        }
    }

    /// Set where there is none.
    pub const fn is_none(self) -> bool {
        matches!(self, Self::None)
    }
}
