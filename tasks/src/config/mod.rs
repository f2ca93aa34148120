//! The task as configuration: the `[task]` and `[shards]` tables.
//!
//! Parsed strictly: a wrong name or number is one line that names the key and, for names, the
//! nearest known one.

mod attached;
mod causal;
mod error;
mod image;
mod language;
mod raw;
mod shards;
mod tabular;
mod task;
mod values;

pub use attached::AttachedConfig;
pub use causal::{BYTES, CausalConfig, CausalModel, FreshModel, LoraConfig};
pub(crate) use error::ConfigError;
pub use image::ImageConfig;
pub use language::LanguageConfig;
pub(crate) use shards::RawShards;
pub use tabular::TabularConfig;
pub use task::TaskConfig;
pub use values::{
    Architecture, Augmentation, BUNDLED, CLASSES_MAX, Classes, DataSource, ImageModel, Objective,
    OnBadRecord,
};
pub(crate) use values::{NO_TABLE, NO_TEXT};

use crate::data::Shards;

/// Checks both tables, and whether the task supports this kind of shards.
///
/// # Errors
/// Names the invalid key.
pub fn validate(task: &TaskConfig, shards: &Shards) -> Result<(), crate::TaskError> {
    use crate::data::{ShardError, ShardKind};
    task.validate()?;
    shards.validate()?;
    match (task, shards.kind) {
        (
            TaskConfig::LanguageModel(_) | TaskConfig::CausalLm(_) | TaskConfig::Attached(_),
            ShardKind::ByLabel,
        ) => Err(ShardError::NoLabels.into()),
        (TaskConfig::Tabular(config), ShardKind::ByLabel)
            if config.objective == Objective::Regression =>
        {
            Err(ShardError::NoLabels.into())
        }
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
        let mut adapters = CausalConfig::of(DataSource::Path("text".into()));
        let model = "llama".into();
        adapters.model = CausalModel::Folder { model };
        adapters.lora = Some(LoraConfig {
            rank: 8,
            alpha: 16.0,
            targets: Some(vec!["q_proj".to_owned()]),
        });
        let image = ImageConfig {
            model: ImageModel::ResNet18,
            classes: Some(Classes::Names(vec!["cat".to_owned(), "dog".to_owned()])),
            size: Some([32, 48]),
            channels: Some(3),
            width: Some(8),
            ..ImageConfig::default()
        };
        let source = DataSource::Path("x.csv".into());
        let mut table = TabularConfig::of(source, "y".to_owned(), Objective::Regression);
        table.scale.insert("y".to_owned(), [2.0, 0.5]);
        table.categories.push("city".to_owned());
        let configs = [
            TaskConfig::Tabular(table),
            TaskConfig::default(),
            TaskConfig::ImageClassifier(image),
            TaskConfig::ImageClassifier(ImageConfig {
                classes: Some(Classes::Count(12)),
                ..ImageConfig::default()
            }),
            TaskConfig::LanguageModel(language),
            TaskConfig::CausalLm(CausalConfig::of(DataSource::Path("text".into()))),
            TaskConfig::CausalLm(adapters),
            TaskConfig::Attached(AttachedConfig { patience_s: 30.0 }),
        ];
        for config in configs {
            let text = toml::to_string(&config).unwrap();
            assert_eq!(parse(&text), Ok(config));
        }
    }

    /// Checks rows of keys, each with what its error says.
    fn refused(rows: &str) {
        for row in rows.trim().replace("\n                =>", " =>").lines() {
            let (keys, expected) = row.trim().split_once(" => ").expect("a row");
            let error = parse(&keys.replace("; ", "\n")).unwrap_err();
            assert!(error.contains(expected), "{keys}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn wrong_names_are_one_line_with_the_nearest() {
        refused(
            r#"
            kind = "image-clasifier" => did you mean `image-classifier`?
            kind = "image-classifier"; model = "mpl" => did you mean `mlp`?
            kind = "image-classifier"; hiden = 3 => did you mean `hidden`?
            kind = "image-classifier"; context = 3 => no key of kind = "image-classifier"
            kind = "language-model"; data = "x"; model = "cnn" => no key of kind = "language-model"
            kind = "image-classifier"; batch = 0 => `task.batch` is 0
            kind = "language-model"; data = "x"; heads = 3 => does not divide
            kind = "language-model" => no text is bundled
            model = "mlp" => `task.kind` is missing
            kind = "attached"; model = "mlp" => no key of kind = "attached"
            kind = "attached"; patience_s = 0.0 => `task.patience_s` is 0
            kind = "language-model"; data = "x"; tied = true => no key of kind = "language-model"
            kind = "causal-lm"; data = "x"; architecture = "lama" => did you mean `llama`?
            kind = "causal-lm"; data = "x"; model = "dir"; width = 8
                => `task.width` cannot stand beside `task.model`
            kind = "causal-lm"; data = "x"; lora_rank = 8 => `task.model` is missing
            kind = "causal-lm"; data = "x"; heads = 4; kv_heads = 3 => `task.kv_heads` = 3 does not divide
            kind = "causal-lm" => no text is bundled
            kind = "image-classifier"; held_out = 2.0 => `task.held_out` is 2
        "#,
        );
    }

    #[test]
    fn wrong_keys_of_images_are_one_line() {
        refused(
            r#"
            kind = "image-classifier"; size = [32, 2000] => `task.size` is 2000
            kind = "image-classifier"; channels = 4 => `task.channels` is 4
            kind = "image-classifier"; model = "cnn"; width = 4 => `task.width` is no key of model = "cnn"
            kind = "image-classifier"; classes = 0 => `task.classes` is 0
            kind = "image-classifier"; classes = ["cat", "dog", "cat"]
                => `task.classes` has "cat", which is given twice
            kind = "image-classifier"; classes = true => must be a number of classes or a list
            kind = "image-classifier"; target = "y" => no key of kind = "image-classifier"
            kind = "attached"; classes = 3 => no key of kind = "attached"
        "#,
        );
    }

    #[test]
    fn wrong_keys_of_tables_are_one_line() {
        refused(
            r#"
            kind = "tabular"; data = "x" => `task.objective` is missing
            kind = "tabular"; data = "x"; objective = "regresion" => did you mean `regression`?
            kind = "tabular"; data = "x"; objective = "regression" => `task.target` is missing
            kind = "tabular"; objective = "regression"; target = "y" => no table is bundled
            kind = "tabular"; data = "x"; objective = "regression"; target = "y"; ignore = ["y"]
                => `task.ignore` has "y"
            kind = "tabular"; data = "x"; objective = "regression"; target = "y"; scale = { a = [1, 0] }
                => `task.scale.a` must be [mean, standard deviation]
            kind = "tabular"; data = "x"; objective = "classification"; target = "y"; scale = { y = [1, 2] }
                => `task.scale` has "y"
            kind = "tabular"; data = "x"; objective = "regression"; target = "y"; classes = 3
                => `task.classes` is for objective
            kind = "tabular"; data = "x"; objective = "regression"; target = "y"; context = 3
                => no key of kind = "tabular"
            kind = "tabular"; data = "x"; objective = "regression"; target = "y"; column = "a"
                => no key of kind = "tabular"
        "#,
        );
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
