//! The keys of `kind = "causal-lm"`.

use super::error::ConfigError;
use super::raw::RawTask;
use super::values::{Architecture, DataSource, NO_TEXT, OnBadRecord, WIDTH_MAX, count, share};
use serde::Serialize;
use std::path::PathBuf;

/// The value of `task.kind`.
pub(super) const KIND: &str = "causal-lm";

const KEYS: [&str; 22] = [
    "kind",
    "data",
    "column",
    "held_out",
    "on_bad_record",
    "model",
    "architecture",
    "tokenizer",
    "layers",
    "width",
    "heads",
    "kv_heads",
    "hidden",
    "tied",
    "context",
    "batch",
    "accumulate",
    "clip_norm",
    "label_smoothing",
    "lora_rank",
    "lora_alpha",
    "lora_targets",
];

/// Sizes of a model of random weights.
const SIZES: [&str; 7] = [
    "architecture",
    "layers",
    "width",
    "heads",
    "kv_heads",
    "hidden",
    "tied",
];

/// A causal language model: Llama or GPT-2.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CausalConfig {
    /// Source of the text.
    pub data: DataSource,
    /// The key of JSON objects or the column of Parquet files with the text, or with lists of tokens;
    /// `None` for "text".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// Share of the text to hold out, from its end.
    pub held_out: f64,
    /// Treatment of records that cannot be read.
    #[serde(skip_serializing_if = "OnBadRecord::is_usual")]
    pub on_bad_record: OnBadRecord,
    /// `tokenizer.json` or a folder with one, or [`BYTES`]; `None` for the model's, or bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<String>,
    /// Tokens that the model sees at once; `None` for 128, or the model's limit if it is less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<u32>,
    /// Windows of `context` tokens in a batch.
    pub batch: u32,
    /// Batches of one inner step, whose gradients are averaged.
    pub accumulate: u32,
    /// Largest norm of a gradient.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip_norm: Option<f64>,
    /// Share of the target that is spread over all tokens, in training only.
    pub label_smoothing: f64,
    /// The model.
    #[serde(flatten)]
    pub model: CausalModel,
    /// Adapters, if only these are trained.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub lora: Option<LoraConfig>,
}

/// Value of `task.tokenizer` for tokens that are bytes.
pub const BYTES: &str = "bytes";

/// Where the model comes from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum CausalModel {
    /// A Hugging Face directory, whose weights are the start.
    Folder {
        /// The directory.
        model: PathBuf,
    },
    /// Random weights.
    Fresh(FreshModel),
}

/// A model of random weights by its sizes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FreshModel {
    /// Llama or GPT-2.
    pub architecture: Architecture,
    /// Blocks.
    pub layers: u32,
    /// Size of the vector for one token.
    pub width: u32,
    /// Heads of the queries.
    pub heads: u32,
    /// Heads of keys and values (Llama).
    pub kv_heads: u32,
    /// Units of the feed-forward layer.
    pub hidden: u32,
    /// The output uses the table of embeddings.
    pub tied: bool,
}

/// Low-rank adapters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoraConfig {
    /// Rank of the adapters.
    #[serde(rename = "lora_rank")]
    pub rank: u32,
    /// Numerator of their scale `alpha / rank`.
    #[serde(rename = "lora_alpha")]
    pub alpha: f64,
    /// Layers that have one; `None` for those that PEFT chooses.
    #[serde(rename = "lora_targets", skip_serializing_if = "Option::is_none")]
    pub targets: Option<Vec<String>>,
}

impl CausalConfig {
    /// A small Llama on the bytes of a text.
    pub fn of(data: DataSource) -> Self {
        Self {
            data,
            column: None,
            held_out: 0.05,
            on_bad_record: OnBadRecord::Stop,
            tokenizer: None,
            context: None,
            batch: 16,
            accumulate: 1,
            clip_norm: None,
            label_smoothing: 0.0,
            model: CausalModel::Fresh(FreshModel {
                architecture: Architecture::Llama,
                layers: 4,
                width: 128,
                heads: 4,
                kv_heads: 4,
                hidden: 344,
                tied: false,
            }),
            lora: None,
        }
    }

    /// Reads the table of a causal language model.
    ///
    /// # Errors
    /// Names the key that is wrong or belongs to another kind.
    pub(super) fn from_raw(raw: RawTask) -> Result<Self, ConfigError> {
        raw.only(KIND, &KEYS)?;
        let usual = Self::of(raw.data.clone().unwrap_or_default());
        let lora = lora(&raw)?;
        let model = match &raw.model {
            Some(model) => {
                sizes_come_from_the_folder(&raw)?;
                let model = model.into();
                CausalModel::Folder { model }
            }
            None if lora.is_some() => {
                let hint = "adapters need the folder of a trained model";
                return Err(ConfigError::missing("model", hint));
            }
            None => CausalModel::Fresh(fresh(&raw)?),
        };
        Ok(Self {
            column: raw.column,
            held_out: raw.held_out.unwrap_or(usual.held_out),
            on_bad_record: OnBadRecord::from_raw(raw.on_bad_record.as_deref())?,
            tokenizer: raw.tokenizer,
            context: raw.context,
            batch: raw.batch.unwrap_or(usual.batch),
            accumulate: raw.accumulate.unwrap_or(usual.accumulate),
            clip_norm: raw.clip_norm,
            label_smoothing: raw.label_smoothing.unwrap_or(usual.label_smoothing),
            data: usual.data,
            model,
            lora,
        })
    }

    /// Checks every number against its bounds.
    ///
    /// # Errors
    /// Names the key that is out of bounds, or the data that are missing.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        self.context
            .map_or(Ok(()), |context| count("context", context, 2..=131_072))?;
        count("batch", self.batch, 1..=65_536)?;
        count("accumulate", self.accumulate, 1..=65_536)?;
        share(self.held_out)?;
        if let Some(most) = self
            .clip_norm
            .filter(|most| !(*most > 0.0 && most.is_finite()))
        {
            return Err(ConfigError::ClipNorm(most));
        }
        if !(0.0..=0.9).contains(&self.label_smoothing) {
            return Err(ConfigError::LabelSmoothing(self.label_smoothing));
        }
        if let CausalModel::Fresh(model) = &self.model {
            model.validate()?;
        }
        if let Some(lora) = &self.lora {
            count("lora_rank", lora.rank, 1..=4_096)?;
            if !(lora.alpha > 0.0 && lora.alpha <= 1e6) {
                return Err(ConfigError::LoraAlpha(lora.alpha));
            }
        }
        self.data.path(NO_TEXT).map(drop)
    }
}

impl FreshModel {
    fn validate(&self) -> Result<(), ConfigError> {
        count("layers", self.layers, 1..=256)?;
        count("width", self.width, 8..=WIDTH_MAX)?;
        count("heads", self.heads, 1..=256)?;
        count("kv_heads", self.kv_heads, 1..=self.heads)?;
        count("hidden", self.hidden, 1..=8 * WIDTH_MAX)?;
        let (heads, width) = (self.heads, self.width);
        if !width.is_multiple_of(2 * heads) {
            return Err(ConfigError::HeadsEven { heads, width });
        }
        if !heads.is_multiple_of(self.kv_heads) {
            let kv_heads = self.kv_heads;
            return Err(ConfigError::KvHeads { kv_heads, heads });
        }
        Ok(())
    }
}

fn fresh(raw: &RawTask) -> Result<FreshModel, ConfigError> {
    let architecture = match &raw.architecture {
        Some(name) => Architecture::parse("architecture", name)?,
        None => Architecture::Llama,
    };
    let (width, heads) = (raw.width.unwrap_or(128), raw.heads.unwrap_or(4));
    // Three matrices of a Llama's feed-forward layer have about the size of GPT-2's two.
    let hidden = match architecture {
        Architecture::Llama => (width.saturating_mul(8) / 3).next_multiple_of(8),
        Architecture::Gpt2 => width.saturating_mul(4),
    };
    Ok(FreshModel {
        architecture,
        layers: raw.layers.unwrap_or(4),
        width,
        heads,
        kv_heads: raw.kv_heads.unwrap_or(heads),
        hidden: raw.hidden.unwrap_or(hidden),
        tied: raw.tied.unwrap_or(architecture == Architecture::Gpt2),
    })
}

fn lora(raw: &RawTask) -> Result<Option<LoraConfig>, ConfigError> {
    let Some(rank) = raw.lora_rank else {
        if raw.lora_alpha.is_none() && raw.lora_targets.is_none() {
            return Ok(None);
        }
        let hint = "the rank of the adapters, such as 8";
        return Err(ConfigError::missing("lora_rank", hint));
    };
    Ok(Some(LoraConfig {
        rank,
        alpha: raw.lora_alpha.unwrap_or(2.0 * f64::from(rank)),
        targets: raw.lora_targets.clone(),
    }))
}

/// Refuses sizes beside `model`, whose `config.json` has them.
fn sizes_come_from_the_folder(raw: &RawTask) -> Result<(), ConfigError> {
    let is_written = |size: &&&str| raw.written().any(|key| key == **size);
    match SIZES.iter().find(is_written) {
        None => Ok(()),
        Some(size) => Err(ConfigError::BesideModel(size)),
    }
}
