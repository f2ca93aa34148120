//! Keys of a model directory's `config.json` beside the sizes of the model.

use super::ModelDirError;
use super::json::read_json;
use serde_json::Value;
use std::path::Path;

/// The token that ends a document, if the model has one; the first of several.
///
/// # Errors
/// If one of them is none of the model's tokens.
pub(crate) fn end_of_text(dir: &Path, vocabulary: usize) -> Result<Option<u32>, ModelDirError> {
    let ends = ends_in(&dir.join("config.json"), vocabulary)?;
    Ok(ends.first().copied())
}

/// The tokens with which the model ends a text: those of a document and, of a chat model, those of an answer, from
/// `generation_config.json`.
///
/// # Errors
/// As [`end_of_text`].
pub(crate) fn ends_of_text(dir: &Path, vocabulary: usize) -> Result<Vec<u32>, ModelDirError> {
    let mut ends = ends_in(&dir.join("config.json"), vocabulary)?;
    let more = dir.join("generation_config.json");
    if more.exists() {
        ends.extend(ends_in(&more, vocabulary)?);
    }
    Ok(ends)
}

fn ends_in(file: &Path, vocabulary: usize) -> Result<Vec<u32>, ModelDirError> {
    let object = read_json(file)?;
    let all = match object.get("eos_token_id") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(all)) => all.as_slice(),
        Some(one) => std::slice::from_ref(one),
    };
    let token = |value: &Value| {
        let id = value.as_u64().and_then(|id| u32::try_from(id).ok());
        let id = id.filter(|id| (*id as usize) < vocabulary);
        id.ok_or_else(|| {
            let most = vocabulary.saturating_sub(1);
            let reason = format!(
                "`eos_token_id` has {value}, and the model has tokens from 0 to {most} (write one of these, \
                 or remove the key)"
            );
            ModelDirError::new(file, reason)
        })
    };
    all.iter().map(token).collect()
}

/// A note about a model that was trained with dropout, which is not applied here.
pub(crate) fn dropout_of(dir: &Path) -> Option<String> {
    let object = read_json(&dir.join("config.json")).ok()?;
    let drops = |(key, value): &(&String, &Value)| {
        let is_rate = key.ends_with("pdrop") || key.ends_with("dropout");
        is_rate && value.as_f64().is_some_and(|rate| rate > 0.0)
    };
    let found = object.iter().filter(drops).map(|(key, _)| key.as_str());
    let found: Vec<&str> = found.collect();
    (!found.is_empty()).then(|| {
        format!(
            "the model is trained without dropout, for which its config.json has {}",
            found.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(config: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("config.json"), config).unwrap();
        dir
    }

    #[test]
    fn a_token_that_the_model_does_not_have_is_named() {
        let end = |value: &str| {
            let dir = folder(&format!("{{\"eos_token_id\": {value}}}"));
            end_of_text(dir.path(), 257).map_err(|error| error.to_string())
        };
        assert_eq!(end("256"), Ok(Some(256)));
        assert_eq!(end("[65, 256]"), Ok(Some(65)));
        assert_eq!((end("null"), end("[]")), (Ok(None), Ok(None)));
        for (value, named) in [
            ("50256", "50256"),
            ("-1", "-1"),
            ("\"x\"", "\"x\""),
            ("[65, 50256]", "50256"),
        ] {
            let error = end(value).unwrap_err();
            let expected =
                format!("config.json: `eos_token_id` has {named}, and the model has tokens");
            assert!(error.contains(&expected), "{error}");
        }
    }

    #[test]
    fn dropout_is_told_only_where_the_model_has_some() {
        let told = |config: &str| dropout_of(folder(config).path());
        assert_eq!(told("{\"attention_dropout\": 0.0}"), None);
        let text = told("{\"attn_pdrop\": 0.1, \"resid_pdrop\": 0}").unwrap();
        assert!(text.ends_with("config.json has attn_pdrop"), "{text}");
    }
}
