//! Builds a trainer from a configuration.

use crate::config::{self, DataSource};
use crate::data::{BadRecords, ImageData, Shards};
use crate::model::Transformer;
use crate::task::{self, CausalTask, ImagePlan, ImageTask, LanguageTask, TabularTask, Task};
use crate::trainer::flat;
use crate::{BurnTrainer, DeviceChoice, TaskConfig, TaskError};
use burn::tensor::Device;
use murmurate_strategies::inner::InnerKind;
use murmurate_strategies::{Island, Layout, Rank, Trainer};

/// Builds the trainer of one peer. Its parameters depend only on task and seed, so all peers of a
/// run start from the same bits. The order of its data depends on seed and shard.
///
/// # Errors
/// If the configuration, data, shard or device is invalid.
pub fn build(
    task: &TaskConfig,
    inner: &InnerKind,
    device: &DeviceChoice,
    seed: u64,
    shards: &Shards,
) -> Result<Box<dyn Trainer>, TaskError> {
    config::validate(task, shards)?;
    if let Some(DataSource::Path(path)) = task.data()
        && matches!(path.try_exists(), Ok(false))
    {
        return Err(TaskError::NoData(path.clone()));
    }
    match task {
        TaskConfig::ImageClassifier(config) => {
            boxed(ImageTask::new(config, seed, shards)?, inner, device, seed)
        }
        TaskConfig::LanguageModel(config) => boxed(
            LanguageTask::new(config, seed, shards)?,
            inner,
            device,
            seed,
        ),
        TaskConfig::Attached(_) => Err(TaskError::Attached),
        TaskConfig::CausalLm(config) => {
            boxed(CausalTask::new(config, seed, shards)?, inner, device, seed)
        }
        TaskConfig::Tabular(config) => {
            boxed(TabularTask::new(config, seed, shards)?, inner, device, seed)
        }
    }
}

fn boxed<T: Task + 'static>(
    task: T,
    inner: &InnerKind,
    device: &DeviceChoice,
    seed: u64,
) -> Result<Box<dyn Trainer>, TaskError> {
    Ok(Box::new(BurnTrainer::new(task, inner, device, seed)?))
}

/// Builds the trainers of one peer that is an island, as one. They divide the peer's shard. With several
/// graphics processors, rank r has device r, counted from that of `device`.
///
/// # Errors
/// As [`build`], and if the ranks are too many or the shard is too small for them.
pub fn build_island(
    task: &TaskConfig,
    inner: &InnerKind,
    device: &DeviceChoice,
    seed: u64,
    (shards, ranks): (&Shards, u32),
) -> Result<Box<dyn Trainer>, TaskError> {
    if ranks == 1 {
        return build(task, inner, device, seed, shards);
    }
    let of_rank = |rank: Rank| {
        let shards = shards.for_rank(rank);
        build(task, inner, &device.of_rank(rank.index), seed, &shards)
    };
    let ranks = Rank::all(ranks).map(of_rank).collect::<Result<_, _>>()?;
    Ok(Box::new(Island::new(ranks)?))
}

/// The layout of a task's model, without its parameters. For images and tables this reads
/// the data, because the layout depends on their size and number of classes.
///
/// # Errors
/// If the configuration or the data are invalid.
pub fn layout(task: &TaskConfig) -> Result<Layout, TaskError> {
    task.validate()?;
    match task {
        TaskConfig::ImageClassifier(config) => {
            let plan = ImagePlan::new(config, &ImageData::find(config)?)?;
            Ok(flat::layout(&plan.model(&Device::flex())))
        }
        TaskConfig::LanguageModel(config) => {
            let model = Transformer::zeros(task::shape(config), &Device::flex());
            Ok(flat::layout(&model))
        }
        TaskConfig::Tabular(config) => {
            let task = TabularTask::new(config, 0, &Shards::whole())?;
            Ok(flat::layout(&task.model(&Device::flex())))
        }
        TaskConfig::Attached(_) => Err(TaskError::Attached),
        TaskConfig::CausalLm(config) => {
            let plan = task::CausalPlan::new(config, &task::tokens(config)?)?;
            // Only a device with autodiff knows which tensors are frozen.
            Ok(flat::layout(&plan.model(&Device::flex().autodiff())))
        }
    }
}

/// Tokens that a language model sees at once; `None` for other tasks.
///
/// # Errors
/// When the model or its tokenizer cannot be read.
pub fn context(task: &TaskConfig) -> Result<Option<usize>, TaskError> {
    match task {
        TaskConfig::LanguageModel(config) => Ok(Some(config.context as usize)),
        TaskConfig::CausalLm(config) => {
            let plan = task::CausalPlan::new(config, &task::tokens(config)?)?;
            Ok(Some(plan.context))
        }
        _ => Ok(None),
    }
}

/// Bytes that one token of the held-out text stands for, in the mean; `None` for tasks without text.
/// A loss of `x` nats per token is `x / ln 2` divided by this in bits per byte.
///
/// # Errors
/// When the tokenizer or the text cannot be read.
pub fn bytes_per_token(task: &TaskConfig) -> Result<Option<f64>, TaskError> {
    match (task, task.data()) {
        (TaskConfig::LanguageModel(_), _) => Ok(Some(1.0)),
        (TaskConfig::CausalLm(config), Some(_)) => {
            let tokens = task::tokens(config)?;
            let plan = task::CausalPlan::new(config, &tokens)?;
            let bad = BadRecords::new(config.on_bad_record);
            let size = task::reading(config, &plan, tokens, bad)?.held_size()?;
            Ok(size.map(|(bytes, count)| bytes as f64 / count.max(1) as f64))
        }
        _ => Ok(None),
    }
}
