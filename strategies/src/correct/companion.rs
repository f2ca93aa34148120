//! What travels beside the parameters: a second vector that the exchange carries as more fragments, after
//! those of the parameters. The exchange knows nothing of it; the Executor does.

/// How an Executor treats the companion of the parameters.
///
/// The exchanged values are the parameters, then as many of the companion. A fragment holds of one of
/// them only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Companion {
    /// There is none.
    #[default]
    None,
    /// A vector of each peer whose mean everybody agrees on, in an exchange that agrees. A contribution is
    /// what the own one differs from the mean before, so that the new mean is that of those who
    /// contributed, whoever came, went or lost a round:
    ///
    /// ```text
    /// c' = c + sum_i w_i (c_i - c) / sum_i w_i = sum_i w_i c_i / sum_i w_i
    /// ```
    Mean,
    /// A vector y of each peer that flows between neighbours with replicas of each other. What is
    /// known of it is the sum of what has flowed here along the links,
    ///
    /// ```text
    /// s_i = sum_j F_ij,   F_ij' = F_ij + rate w_ij (k_j - k_i) = -F_ji',   k the replicas of y
    /// ```
    ///
    /// so that the sum of all s stays zero. A neighbour that is gone takes F along at both ends, and what is
    /// left still sums to zero. A peer that resumes begins with none, as its neighbours do with it.
    Flows,
}

impl Companion {
    /// Its values for `len` parameters.
    pub const fn len(self, len: usize) -> usize {
        match self {
            Self::None => 0,
            Self::Mean | Self::Flows => len,
        }
    }

    /// Whether there is none.
    pub const fn is_none(self) -> bool {
        matches!(self, Self::None)
    }
}
