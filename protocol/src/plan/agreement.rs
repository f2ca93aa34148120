//! What the members of a group expect of each other.

use serde::{Deserialize, Serialize};

/// What the members of a group expect of each other, where they agree. By default they crash and do
/// not lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgreementPlan {
    /// How many lying members a group must survive. A group of n survives `min(liars, (n - 1) / 3)`.
    pub liars: u16,
    /// The least number of contributions that are combined: with fewer the round is void. Zero and one
    /// are the same.
    pub contributions: u16,
    /// Whether members sign their statements, so that liars cannot make two decisions of one round.
    /// Catching up then believes one donor. Without signatures it believes what more peers say than
    /// may lie.
    pub signed: bool,
}

impl AgreementPlan {
    /// How many of its last encoded bytes only say what is usual.
    pub(super) fn usual_bytes(&self) -> usize {
        let Self {
            liars,
            contributions,
            signed,
        } = self;
        let mut usual = 0;
        let fields = [
            (!signed, size_of_val(signed)),
            (*contributions == 0, size_of_val(contributions)),
            (*liars == 0, size_of_val(liars)),
        ];
        for (_, bytes) in fields.iter().take_while(|(is_usual, _)| *is_usual) {
            usual += bytes;
        }
        usual
    }
}
