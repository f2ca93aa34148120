//! Causal language modelling on tokens: a Llama or GPT-2, complete or by adapters.

use super::windows::{Held, Windows};
use super::{Score, Task};
use crate::choices::{ChoiceScore, Choices, read_questions};
use crate::config::{
    Architecture, BYTES, CausalConfig, CausalModel, ConfigError, FreshModel, NO_TEXT,
};
use crate::data::{BadRecords, Dataset, Feed, Reading, Shards, Tokens};
use crate::model::{
    Biases, CausalLm, CausalShape, Family, LlamaShape, Lora, ModelDirError, Rope, Stretch,
    dropout_of, end_of_text, initial, read_shape,
};
use crate::weights::load_module;
use crate::{Segments, TaskError, loss};
use burn::tensor::{Device, Tensor};
use murmurate_strategies::names::hint;
use murmurate_strategies::{DataReport, TensorSpec};
use rand_chacha::ChaCha8Rng;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Tokens that a model sees at once if the configuration does not say.
const CONTEXT: usize = 128;

/// Questions of an evaluation, which nothing interrupts.
const QUESTIONS_MAX: usize = 256;

/// Layers of a Llama that can have adapters.
const LLAMA_LAYERS: [&str; 7] = [
    "q_proj",
    "k_proj",
    "v_proj",
    "o_proj",
    "gate_proj",
    "up_proj",
    "down_proj",
];

/// Layers of a GPT-2 that can have adapters.
const GPT2_LAYERS: [&str; 3] = ["c_attn", "c_proj", "c_fc"];

/// A model as the configuration describes it, without its weights.
pub(crate) struct CausalPlan {
    pub(crate) shape: CausalShape,
    pub(crate) lora: Option<Lora>,
    /// The folder with the weights to start from.
    pub(crate) start: Option<PathBuf>,
    /// Tokens that the model sees at once.
    pub(crate) context: usize,
    /// The token after each document, if the model that it starts from has one.
    pub(crate) end: Option<u32>,
}

/// A causal language model and its tokens.
pub struct CausalTask {
    plan: CausalPlan,
    feed: Feed,
    held: Held<u32>,
    batch: usize,
    accumulate: u32,
    clip_norm: Option<f64>,
    recompute: bool,
    smoothing: f64,
    choices: Option<Choices>,
    bad: BadRecords,
}

impl CausalPlan {
    /// Reads the sizes of the model. A new model has the tokenizer's vocabulary.
    pub(crate) fn new(config: &CausalConfig, tokens: &Tokens) -> Result<Self, TaskError> {
        let (shape, start) = match &config.model {
            CausalModel::Folder { model } => (read_shape(model)?, Some(model.clone())),
            CausalModel::Fresh(model) => (fresh(model, config.context, tokens), None),
        };
        let most = shape.positions;
        let context = config
            .context
            .map_or(CONTEXT.min(most), |size| size as usize);
        if context > most {
            return Err(ConfigError::Context { context, most }.into());
        }
        let (known, vocabulary) = (tokens.vocabulary(), shape.vocabulary);
        if known > vocabulary {
            let tokens = known;
            return Err(ConfigError::Vocabulary { tokens, vocabulary }.into());
        }
        let lora = lora(config, &shape)?;
        let end = match &start {
            Some(dir) => end_of_text(dir, vocabulary)?,
            None => None,
        };
        Ok(Self {
            end,
            shape,
            lora,
            start,
            context,
        })
    }

    pub(crate) fn model(&self, device: &Device) -> CausalLm {
        CausalLm::zeros(&self.shape, self.lora.as_ref(), device)
    }
}

/// The tokenizer of a task: the one that it names, the model's, or bytes.
pub(crate) fn tokens(config: &CausalConfig) -> Result<Tokens, ModelDirError> {
    match (&config.tokenizer, &config.model) {
        (Some(name), _) if name == BYTES => Ok(Tokens::Bytes),
        (Some(path), _) => Tokens::read(Path::new(path)),
        (None, CausalModel::Folder { model }) => {
            // A folder without this file is not a model, which says more than a missing tokenizer.
            read_shape(model)?;
            Tokens::read(model)
        }
        (None, CausalModel::Fresh(_)) => Ok(Tokens::Bytes),
    }
}

/// The folder of the tokenizer, if it is in one.
fn tokenizer_folder(config: &CausalConfig) -> Option<PathBuf> {
    let path = match (&config.tokenizer, &config.model) {
        (Some(name), _) => PathBuf::from(name),
        (None, CausalModel::Folder { model }) => model.clone(),
        (None, CausalModel::Fresh(_)) => return None,
    };
    path.is_dir().then_some(path)
}

fn fresh(model: &FreshModel, context: Option<u32>, tokens: &Tokens) -> CausalShape {
    let size = |value: u32| value as usize;
    let (family, eps) = match model.architecture {
        Architecture::Llama => {
            let stretch = Stretch::None;
            let own = LlamaShape {
                kv_heads: size(model.kv_heads),
                head_width: size(model.width / model.heads),
                rope: Rope {
                    theta: 10_000.0,
                    stretch,
                },
                biases: Biases::default(),
                head_norms: false,
                near: None,
                gemma: None,
            };
            (Family::Llama(Box::new(own)), 1e-6)
        }
        Architecture::Gpt2 => (Family::Gpt2, 1e-5),
    };
    CausalShape {
        family,
        vocabulary: tokens.vocabulary(),
        width: size(model.width),
        hidden: size(model.hidden),
        layers: size(model.layers),
        heads: size(model.heads),
        positions: context.map_or(CONTEXT, size),
        eps,
        tied: model.tied,
    }
}

fn lora(config: &CausalConfig, shape: &CausalShape) -> Result<Option<Lora>, ConfigError> {
    let Some(lora) = &config.lora else {
        return Ok(None);
    };
    let (layers, usual): (&[&'static str], &[&str]) = match shape.family {
        Family::Llama(_) => (&LLAMA_LAYERS, &["q_proj", "v_proj"]),
        Family::Gpt2 => (&GPT2_LAYERS, &["c_attn"]),
    };
    let usual = || usual.iter().map(|&name| name.to_owned()).collect();
    let targets: Vec<String> = lora.targets.clone().unwrap_or_else(usual);
    let unknown = targets.iter().find(|name| !layers.contains(&name.as_str()));
    match unknown {
        Some(name) => Err(ConfigError::LoraTarget {
            name: name.clone(),
            hint: hint(name, layers),
        }),
        None => Ok(Some(Lora {
            rank: lora.rank as usize,
            alpha: lora.alpha,
            targets,
        })),
    }
}

/// The text of a task.
pub(crate) fn reading<'a>(
    config: &'a CausalConfig,
    plan: &CausalPlan,
    tokens: Tokens,
    bad: BadRecords,
) -> Result<Reading<'a>, ConfigError> {
    Ok(Reading {
        path: config.data.path(NO_TEXT)?,
        column: config.column.as_deref(),
        folder: tokenizer_folder(config),
        context: plan.context,
        end: plan.end,
        vocabulary: plan.shape.vocabulary,
        held_out: config.held_out,
        tokens,
        bad,
    })
}

/// The questions of a file, for the model of a plan.
fn choices(
    file: &Path,
    plan: &CausalPlan,
    tokens: &Tokens,
    bad: &BadRecords,
) -> Result<Choices, TaskError> {
    let mut questions = read_questions(file)?;
    let all = questions.len();
    if all > QUESTIONS_MAX {
        let each = (0..QUESTIONS_MAX).map(|at| questions[at * all / QUESTIONS_MAX].clone());
        questions = each.collect();
        bad.report().say(format!(
            "{}: each evaluation asks {QUESTIONS_MAX} of the {all} questions, spread evenly (`murmurate eval \
             --choices` asks all)",
            file.display()
        ));
    }
    let choices = Choices::new(&questions, (tokens, plan.end), plan.shape.positions);
    let choices = choices.map_err(|reason| ModelDirError::new(file, reason))?;
    if choices.cut() > 0 {
        bad.report().say(format!(
            "{}: {} questions are longer than the {} tokens of the model's sequences: their beginnings are left out",
            file.display(),
            choices.cut(),
            plan.shape.positions
        ));
    }
    Ok(choices)
}

impl CausalTask {
    /// Reads model sizes and text: all of a shard if it is small, otherwise only the held-out part.
    ///
    /// # Errors
    /// When model, tokenizer, text or shard are wrong, or do not fit each other.
    pub fn new(config: &CausalConfig, seed: u64, shards: &Shards) -> Result<Self, TaskError> {
        let tokens = tokens(config)?;
        let plan = CausalPlan::new(config, &tokens)?;
        let (window, batch) = (plan.context + 1, config.batch as usize);
        let bad = BadRecords::new(config.on_bad_record);
        if let Some(dropout) = plan.start.as_deref().and_then(dropout_of) {
            bad.report().say(dropout);
        }
        let choices = match &config.choices {
            Some(file) => Some(choices(Path::new(file), &plan, &tokens, &bad)?),
            None => None,
        };
        let reading = reading(config, &plan, tokens, bad.clone())?;
        let (feed, tokens, step) = Feed::new(reading, shards, seed, window, batch)?;
        let context = plan.context;
        Ok(Self {
            plan,
            feed,
            held: Held {
                tokens,
                context,
                step,
            },
            batch,
            accumulate: config.accumulate,
            clip_norm: config.clip_norm,
            recompute: config.recompute,
            smoothing: config.label_smoothing,
            choices,
            bad,
        })
    }

    /// Windows in an evaluation batch.
    fn held_batch(&self) -> usize {
        self.feed.batch_len(self.batch).min(16)
    }
}

impl Task for CausalTask {
    type Model = CausalLm;
    type Batch = Windows;

    fn model(&self, device: &Device) -> CausalLm {
        self.plan.model(device)
    }

    /// As GPT-2's. Values that [`Task::start`] reads are not drawn.
    fn initial(&self, tensor: &TensorSpec, values: &mut [f32], rng: &mut ChaCha8Rng) {
        if self.plan.start.is_none() || self.plan.lora.is_some() {
            initial(tensor, self.plan.shape.layers, values, rng);
        }
    }

    fn start(&self, model: CausalLm) -> Result<CausalLm, TaskError> {
        match &self.plan.start {
            Some(dir) => Ok(load_module(model, dir)?),
            None => Ok(model),
        }
    }

    fn dataset(&self) -> Option<&dyn Dataset> {
        Some(self.feed.dataset())
    }

    fn dataset_mut(&mut self) -> Option<&mut dyn Dataset> {
        Some(self.feed.dataset_mut())
    }

    fn samples(&self) -> u64 {
        self.feed.batch_len(self.batch) as u64
    }

    fn accumulate(&self) -> u32 {
        self.accumulate
    }

    fn clip_norm(&self) -> Option<f64> {
        self.clip_norm
    }

    fn recomputes(&self) -> bool {
        self.recompute
    }

    /// Windows that lie side by side without gaps, in an order of their own in every pass.
    fn batch(&mut self, number: u64, device: &Device) -> Result<Self::Batch, TaskError> {
        let (context, window) = (self.plan.context, self.plan.context + 1);
        let tokens = self.feed.batch(number, self.batch)?;
        let starts: Vec<usize> = (0..tokens.len()).step_by(window).collect();
        Ok(Windows::new(&tokens, &starts, context, device))
    }

    /// A tied model is not cut, because it uses one table in two segments; nor is one with adapters,
    /// because there is nothing to train in its first segment.
    fn loss(&self, model: &CausalLm, batch: Windows, segments: &mut Segments) -> Tensor<1> {
        let mut whole = Segments::whole();
        let in_one = !self.recompute && (self.plan.shape.tied || self.plan.lora.is_some());
        let segments = if in_one { &mut whole } else { segments };
        let x = batch.trained(model.hidden(&batch.row, segments));
        loss::of_output(&x, &model.output(), &batch.targets, self.smoothing)
    }

    fn data_report(&self) -> Option<Arc<DataReport>> {
        Some(self.bad.report())
    }

    fn held_batches(&self) -> usize {
        self.held.batches(self.held_batch())
    }

    fn ask(&self, model: &CausalLm, device: &Device) -> Option<ChoiceScore> {
        let choices = self.choices.as_ref()?;
        Some(choices.ask(model, device, &mut |_| {}))
    }

    fn score(
        &mut self,
        model: &CausalLm,
        index: usize,
        device: &Device,
    ) -> Result<Score, TaskError> {
        let starts = self.held.starts(index, self.held_batch());
        let windows = Windows::new(&self.held.tokens, &starts, self.held.context, device);
        let x = windows.trained(model.hidden(&windows.row, &mut Segments::whole()));
        let samples = windows.targets.len() as u64;
        if samples == 0 {
            return Ok(Score::default());
        }
        let mean = loss::of_output(&x, &model.output(), &windows.targets, 0.0);
        Ok(Score {
            loss_sum: f64::from(mean.into_scalar::<f32>()) * samples as f64,
            samples,
            ..Score::default()
        })
    }
}
