//! Presets whose members score contributions before they are merged.

use super::preset::{Preset, point};

/// The presets, by the rule of admission.
pub(super) const SCORED: [Preset; 1] = [point(
    [
        "gauntlet",
        "sparseloco among peers that no one vouches for: only what lowers the loss is merged",
        "s_k = median_i L_i(a) - L_i(a + C(d_k)); a' = a + the mean of the 16 best rated C(d_k) with s_k > 0",
        "Lidin et al., arXiv 2505.21684; Sarfi et al., arXiv 2508.15706",
    ],
    include_str!("gauntlet.toml"),
)];
