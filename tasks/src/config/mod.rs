//! The task as configuration: what the `[task]` and `[shards]` tables say. Parsed strictly: a
//! wrong name or number is one line that names the key and, for names, the nearest right one.

mod error;
mod raw;
mod shards;

pub use error::ConfigError;
pub(crate) use error::nearest;

use crate::data::Shards;
use error::unknown;
use raw::{KINDS, RawTask};
use serde::{Deserialize, Serialize};
pub(crate) use shards::RawShards;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// The data that the binary brings along.
pub const BUNDLED: &str = "bundled";

/// The most hidden units and the widest model.
const WIDTH_MAX: u32 = 16_384;

/// Where data come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum DataSource {
    /// The images in the binary.
    #[default]
    Bundled,
    /// A folder of IDX files, or a text file or folder.
    Path(PathBuf),
}

impl From<String> for DataSource {
    fn from(text: String) -> Self {
        match text.as_str() {
            BUNDLED => Self::Bundled,
            _ => Self::Path(text.into()),
        }
    }
}

impl From<DataSource> for String {
    fn from(source: DataSource) -> Self {
        match source {
            DataSource::Bundled => BUNDLED.to_owned(),
            DataSource::Path(path) => path.to_string_lossy().into_owned(),
        }
    }
}

macro_rules! names {
    ($(#[$doc:meta])* $kind:ident { $($(#[$variant_doc:meta])* $variant:ident = $name:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
        pub enum $kind { $($(#[$variant_doc])* #[serde(rename = $name)] $variant),+ }

        impl $kind {
            const NAMES: &[&'static str] = &[$($name),+];

            fn parse(key: &'static str, name: &str) -> Result<Self, ConfigError> {
                match name {
                    $($name => Ok(Self::$variant),)+
                    _ => Err(unknown("task", key, name, Self::NAMES)),
                }
            }
        }
    };
}

names!(
    /// Built-in image classifiers.
    ImageModel {
        /// One hidden layer.
        Mlp = "mlp",
        /// Two convolutions and one hidden layer.
        Cnn = "cnn",
    }
);

names!(
    /// What is done to training images at random.
    Augmentation {
        /// Nothing.
        None = "none",
        /// Moved by up to one pixel each way.
        Shift1 = "shift-1",
        /// Moved by up to two pixels each way.
        Shift2 = "shift-2",
    }
);

impl Augmentation {
    /// Pixels that an image is moved by at most, each way.
    pub const fn shift_px(self) -> usize {
        match self {
            Self::None => 0,
            Self::Shift1 => 1,
            Self::Shift2 => 2,
        }
    }
}

/// An image classifier.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ImageConfig {
    /// Where images come from.
    pub data: DataSource,
    /// Share of the training images that is held out in place of the `t10k-` files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_out: Option<f64>,
    /// Which model.
    pub model: ImageModel,
    /// Units of its hidden layer.
    pub hidden: u32,
    /// Images in a batch.
    pub batch: u32,
    /// What is done to training images at random.
    pub augmentation: Augmentation,
}

/// A byte-level language model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LanguageConfig {
    /// Where text comes from.
    pub data: DataSource,
    /// Share of the text that is held out: its end.
    pub held_out: f64,
    /// Blocks.
    pub layers: u32,
    /// Numbers that stand for one byte.
    pub width: u32,
    /// Attention heads.
    pub heads: u32,
    /// Bytes that are seen at once.
    pub context: u32,
    /// Windows of `context` bytes in a batch.
    pub batch: u32,
}

/// A task by its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", try_from = "RawTask")]
pub enum TaskConfig {
    /// An image classifier on IDX files.
    ImageClassifier(ImageConfig),
    /// A transformer on bytes of text.
    LanguageModel(LanguageConfig),
}

impl Default for TaskConfig {
    /// What the zero-configuration run trains: see `examples/label_shards.rs` for how these were
    /// chosen.
    fn default() -> Self {
        Self::ImageClassifier(ImageConfig::default())
    }
}

impl Default for ImageConfig {
    fn default() -> Self {
        Self {
            data: DataSource::Bundled,
            held_out: None,
            model: ImageModel::Mlp,
            hidden: 256,
            batch: 128,
            augmentation: Augmentation::Shift1,
        }
    }
}

impl LanguageConfig {
    /// The small model on some text.
    pub const fn of(data: DataSource) -> Self {
        Self {
            data,
            held_out: 0.05,
            layers: 4,
            width: 128,
            heads: 4,
            context: 128,
            batch: 16,
        }
    }
}

impl TaskConfig {
    /// Its name in the configuration.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::ImageClassifier(_) => KINDS[0],
            Self::LanguageModel(_) => KINDS[1],
        }
    }

    /// Where its data come from.
    pub const fn data(&self) -> &DataSource {
        match self {
            Self::ImageClassifier(config) => &config.data,
            Self::LanguageModel(config) => &config.data,
        }
    }

    /// The same task on other data.
    pub fn with_data(mut self, source: DataSource) -> Self {
        match &mut self {
            Self::ImageClassifier(config) => config.data = source,
            Self::LanguageModel(config) => config.data = source,
        }
        self
    }

    /// Whether all settings make sense.
    ///
    /// # Errors
    /// Names the key that does not.
    pub fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Self::ImageClassifier(config) => config.validate(),
            Self::LanguageModel(config) => config.validate(),
        }
    }
}

impl ImageConfig {
    fn validate(&self) -> Result<(), ConfigError> {
        count("hidden", self.hidden, 1..=WIDTH_MAX)?;
        count("batch", self.batch, 1..=65_536)?;
        self.held_out.map_or(Ok(()), share)
    }
}

impl LanguageConfig {
    fn validate(&self) -> Result<(), ConfigError> {
        count("layers", self.layers, 1..=256)?;
        count("width", self.width, 8..=WIDTH_MAX)?;
        count("heads", self.heads, 1..=256)?;
        count("context", self.context, 2..=16_384)?;
        count("batch", self.batch, 1..=65_536)?;
        share(self.held_out)?;
        if !self.width.is_multiple_of(self.heads) {
            return Err(ConfigError::Heads {
                heads: self.heads,
                width: self.width,
            });
        }
        match self.data {
            DataSource::Bundled => Err(ConfigError::Missing {
                table: "task",
                key: "data",
                hint: "no text is bundled: give a text file or a folder of them",
            }),
            DataSource::Path(_) => Ok(()),
        }
    }
}

fn count(key: &'static str, found: u32, bounds: RangeInclusive<u32>) -> Result<(), ConfigError> {
    let (least, most) = bounds.clone().into_inner();
    match bounds.contains(&found) {
        true => Ok(()),
        false => Err(ConfigError::Count {
            key,
            found,
            least,
            most,
        }),
    }
}

fn share(held_out: f64) -> Result<(), ConfigError> {
    match (0.001..=0.5).contains(&held_out) {
        true => Ok(()),
        false => Err(ConfigError::HeldOut(held_out)),
    }
}

impl fmt::Display for TaskConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ImageClassifier(c) => {
                write!(
                    f,
                    "image classifier ({}, hidden {}, batch {})",
                    ImageModel::NAMES[c.model as usize],
                    c.hidden,
                    c.batch
                )
            }
            Self::LanguageModel(c) => {
                write!(
                    f,
                    "language model ({} layers, width {}, context {}, batch {})",
                    c.layers, c.width, c.context, c.batch
                )
            }
        }
    }
}

/// Whether task and shards go together, beside each making sense.
///
/// # Errors
/// Names the key that does not.
pub fn validate(task: &TaskConfig, shards: &Shards) -> Result<(), crate::TaskError> {
    use crate::data::{ShardError, ShardKind};
    task.validate()?;
    shards.validate()?;
    match (task, shards.kind) {
        (TaskConfig::LanguageModel(_), ShardKind::ByLabel) => Err(ShardError::NoLabels.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<TaskConfig, String> {
        toml::from_str::<TaskConfig>(text).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn what_is_not_said_is_as_usual() {
        assert_eq!(
            parse("kind = \"image-classifier\""),
            Ok(TaskConfig::default())
        );
        let text = "kind = \"language-model\"\ndata = \"book.txt\"\nwidth = 64";
        let source = DataSource::Path("book.txt".into());
        let expected = LanguageConfig {
            width: 64,
            ..LanguageConfig::of(source)
        };
        assert_eq!(parse(text), Ok(TaskConfig::LanguageModel(expected)));
    }

    #[test]
    fn what_is_written_is_read() {
        let language = LanguageConfig::of(DataSource::Path("text".into()));
        for config in [TaskConfig::default(), TaskConfig::LanguageModel(language)] {
            let text = toml::to_string(&config).unwrap();
            assert_eq!(parse(&text), Ok(config));
        }
    }

    #[test]
    fn wrong_names_are_one_line_with_the_nearest() {
        let cases = [
            (
                "kind = \"image-clasifier\"",
                "the nearest is \"image-classifier\"",
            ),
            (
                "kind = \"image-classifier\"\nmodel = \"mpl\"",
                "the nearest is \"mlp\"",
            ),
            (
                "kind = \"image-classifier\"\nhiden = 3",
                "the nearest is `hidden`",
            ),
            (
                "kind = \"image-classifier\"\ncontext = 3",
                "no key of kind = \"image-classifier\"",
            ),
            (
                "kind = \"language-model\"\ndata = \"x\"\nmodel = \"cnn\"",
                "no key of kind = \"language-model\"",
            ),
            (
                "kind = \"image-classifier\"\nbatch = 0",
                "`task.batch` is 0",
            ),
            (
                "kind = \"language-model\"\ndata = \"x\"\nheads = 3",
                "does not divide",
            ),
            ("kind = \"language-model\"", "no text is bundled"),
            ("model = \"mlp\"", "`task.kind` is missing"),
            (
                "kind = \"image-classifier\"\nheld_out = 2.0",
                "`task.held_out` is 2",
            ),
        ];
        for (text, expected) in cases {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn text_has_no_labels() {
        let task = TaskConfig::LanguageModel(LanguageConfig::of(DataSource::Path("x".into())));
        let kind = crate::data::ShardKind::ByLabel;
        assert!(
            validate(
                &task,
                &Shards {
                    kind,
                    ..Shards::whole()
                }
            )
            .is_err()
        );
    }
}
