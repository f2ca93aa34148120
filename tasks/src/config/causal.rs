//! The keys of `kind = "causal-lm"`.

use super::error::ConfigError;
use super::raw::{RawTask, settings};
use super::values::{Architecture, DataSource, NO_TEXT, OnBadRecord, WIDTH_MAX, count, share};
use serde::Serialize;
use std::path::PathBuf;

/// The value of `task.kind`.
pub(super) const KIND: &str = "causal-lm";

/// The keys of models in folders.
const FOLDER_KEYS: [&str; 4] = ["model", "lora_rank", "lora_alpha", "lora_targets"];

settings! {
    /// A causal language model: Llama or GPT-2.
    CausalConfig {
        /// Source of the text.
        data: DataSource = DataSource::Bundled,
        /// The key of JSON objects or the column of Parquet files with the text, or with lists of tokens;
        /// `None` for "text".
        column: Option<String> = None,
        /// Share of the text to hold out, from its end.
        held_out: f64 = 0.05,
        /// Treatment of records that cannot be read.
        #[serde(skip_serializing_if = "OnBadRecord::is_usual")]
        on_bad_record: OnBadRecord = OnBadRecord::Stop,
        /// `tokenizer.json` or a folder with one, or [`BYTES`]; `None` for the model's, or bytes.
        tokenizer: Option<String> = None,
        /// Tokens that the model sees at once; `None` for 128, or the model's limit if it is less.
        context: Option<u32> = None,
        /// Windows of `context` tokens in a batch.
        batch: u32 = 16,
        /// Batches of one inner step, whose gradients are averaged.
        accumulate: u32 = 1,
        /// Questions that each evaluation asks, as `murmurate eval --choices` does.
        choices: Option<String> = None,
        /// Activations of a block are computed again in the backward pass instead of kept.
        #[serde(skip_serializing_if = "is_false")]
        recompute: bool = false,
        /// Largest norm of a gradient.
        clip_norm: Option<f64> = None,
        /// Share of the target that is spread over all tokens, in training only.
        label_smoothing: f64 = 0.0,
    }
    also {
        /// The model.
        #[serde(flatten)]
        model: CausalModel = CausalModel::Fresh(FreshModel::default()),
        /// Adapters, if only these are trained.
        #[serde(flatten, skip_serializing_if = "Option::is_none")]
        lora: Option<LoraConfig> = None,
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives references")]
const fn is_false(flag: &bool) -> bool {
    !*flag
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

settings! {
    /// A model of random weights by its sizes.
    FreshModel {
        /// Llama or GPT-2.
        architecture: Architecture = Architecture::Llama,
        /// Blocks.
        layers: u32 = 4,
        /// Size of the vector for one token.
        width: u32 = 128,
        /// Heads of the queries.
        heads: u32 = 4,
        /// Heads of keys and values (Llama).
        kv_heads: u32 = 4,
        /// Units of the feed-forward layer.
        hidden: u32 = 344,
        /// The output uses the table of embeddings.
        tied: bool = false,
    }
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
    #[serde(rename = "lora_targets")]
    pub targets: Option<Vec<String>>,
}

impl CausalConfig {
    /// A small Llama on the bytes of a text.
    pub fn of(data: DataSource) -> Self {
        Self {
            data,
            ..Self::default()
        }
    }

    /// Reads the table of a causal language model.
    ///
    /// # Errors
    /// Names the key that is wrong or belongs to another kind.
    pub(super) fn from_raw(mut raw: RawTask) -> Result<Self, ConfigError> {
        raw.only(KIND, &[Self::KEYS, FreshModel::KEYS, &FOLDER_KEYS])?;
        let mut usual = Self::of(DataSource::Bundled);
        usual.lora = lora(&raw)?;
        usual.model = match &raw.model {
            Some(model) => {
                sizes_come_from_the_folder(&raw)?;
                let model = model.into();
                CausalModel::Folder { model }
            }
            None if usual.lora.is_some() => {
                let hint = "adapters need the folder of a trained model";
                return Err(ConfigError::missing("model", hint));
            }
            None => CausalModel::Fresh(fresh(&mut raw)),
        };
        Ok(usual.over(&mut raw))
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

fn fresh(raw: &mut RawTask) -> FreshModel {
    let usual = FreshModel::default();
    let architecture = raw.architecture.unwrap_or(usual.architecture);
    let width = raw.width.unwrap_or(usual.width);
    let heads = raw.heads.unwrap_or(usual.heads);
    // Three matrices of a Llama's feed-forward layer have about the size of GPT-2's two.
    let hidden = match architecture {
        Architecture::Llama => (width.saturating_mul(8) / 3).next_multiple_of(8),
        Architecture::Gpt2 => width.saturating_mul(4),
    };
    let usual = FreshModel {
        width,
        kv_heads: heads,
        hidden,
        tied: architecture == Architecture::Gpt2,
        ..usual
    };
    usual.over(raw)
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
    match FreshModel::KEYS.iter().find(is_written) {
        None => Ok(()),
        Some(size) => Err(ConfigError::BesideModel(size)),
    }
}
