//! Errors in a task's configuration, each in one line.

use murmurate_strategies::names::hint;

/// An invalid configuration, in one line.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Unknown key.
    #[error("`{table}.{key}` is no key of kind = \"{kind}\"; {hint}")]
    Key {
        table: &'static str,
        key: String,
        kind: &'static str,
        hint: String,
    },
    /// Unknown name.
    #[error("`{table}.{key}` = \"{name}\" is not known; {hint}")]
    Name {
        table: &'static str,
        key: &'static str,
        name: String,
        hint: String,
    },
    /// A required key is missing.
    #[error("`{table}.{key}` is missing ({hint})")]
    Missing {
        table: &'static str,
        key: &'static str,
        hint: &'static str,
    },
    /// A count outside its bounds.
    #[error("`task.{key}` is {found}, it must be from {least} to {most}")]
    Count {
        key: &'static str,
        found: u32,
        least: u32,
        most: u32,
    },
    /// A key that has no effect on the model.
    #[error("`task.{key}` is no key of model = \"{model}\" (leave it out)")]
    OtherModel {
        key: &'static str,
        model: &'static str,
    },
    /// Neither grey nor colours.
    #[error("`task.channels` is {0}, it must be 1 (grey) or 3 (red, green, blue)")]
    Channels(u32),
    /// Classes of numbers.
    #[error("`task.classes` is for objective = \"classification\" (leave it out)")]
    Numbers,
    /// Not a mean and a standard deviation.
    #[error("`task.scale.{0}` must be [mean, standard deviation], the latter above 0")]
    Scale(String),
    /// A name that is given twice.
    #[error("`task.{key}` has \"{name}\", which is given twice or has another use")]
    Twice { key: &'static str, name: String },
    /// The share of held-out data is out of bounds.
    #[error("`task.held_out` is {0}, it must be a share from 0.001 to 0.5")]
    HeldOut(f64),
    /// Not a patience.
    #[error("`task.patience_s` is {0}, it must be 1 to 86400 seconds")]
    Patience(f64),
    /// The number of heads does not divide the width.
    #[error("`task.heads` = {heads} does not divide `task.width` = {width}")]
    Heads { heads: u32, width: u32 },
    /// Heads of rotary positions must divide the width into even parts.
    #[error("`task.heads` = {heads} does not divide `task.width` = {width} into even parts")]
    HeadsEven { heads: u32, width: u32 },
    /// Heads of keys and values must divide the heads.
    #[error("`task.kv_heads` = {kv_heads} does not divide `task.heads` = {heads}")]
    KvHeads { kv_heads: u32, heads: u32 },
    /// Not a norm.
    #[error("`task.clip_norm` is {0}, it must be a number above 0 (leave it out for no limit)")]
    ClipNorm(f64),
    /// Not a share of the target.
    #[error("`task.label_smoothing` is {0}, it must be a share from 0 to 0.9")]
    LabelSmoothing(f64),
    /// Not a scale of adapters.
    #[error("`task.lora_alpha` is {0}, it must be a number above 0 and at most 1e6")]
    LoraAlpha(f64),
    /// A layer that the model does not have.
    #[error("`task.lora_targets`: the model has no layer \"{name}\"; {hint}")]
    LoraTarget { name: String, hint: String },
    /// The size of a model that is read from a folder.
    #[error(
        "`task.{0}` cannot stand beside `task.model`, whose config.json decides (leave one out)"
    )]
    BesideModel(&'static str),
    /// Sequences longer than the model's.
    #[error("`task.context` is {context}, the model takes sequences of at most {most}")]
    Context { context: usize, most: usize },
    /// The tokenizer has more tokens than the model.
    #[error(
        "`task.tokenizer` has {tokens} tokens, the model only {vocabulary} (is it the tokenizer of \
         another model?)"
    )]
    Vocabulary { tokens: usize, vocabulary: usize },
}

impl ConfigError {
    /// A key of `[task]` that is missing, and the value to write.
    pub(crate) const fn missing(key: &'static str, hint: &'static str) -> Self {
        let table = "task";
        Self::Missing { table, key, hint }
    }
}

pub(super) fn unknown(
    table: &'static str,
    key: &'static str,
    name: &str,
    names: &[&'static str],
) -> ConfigError {
    ConfigError::Name {
        table,
        key,
        name: name.to_owned(),
        hint: hint(name, names),
    }
}
