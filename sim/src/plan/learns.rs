//! What the planner may know of the model.

use serde::Serialize;

/// What is trained, as far as it changes which presets suit it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Learns {
    /// Nothing is known of it.
    #[default]
    Anything,
    /// A language model: a preset of one of the families `*-lm`.
    Language,
}
