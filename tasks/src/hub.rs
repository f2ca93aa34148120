//! Writes a causal language model as a folder that `transformers` or PEFT loads.

use crate::config::{BYTES, CausalConfig, CausalModel};
use crate::model::{Family, ModelDirError, read_json, shape_json};
use crate::task::{CausalPlan, tokens};
use crate::weights::{ADAPTER, SINGLE, no_model_in, peft_name, remove_others, write_model};
use crate::{ModelFileError, TaskError};
use murmurate_strategies::Layout;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Files beside the weights that `transformers` needs, or takes if they are there.
const COPIED: [&str; 7] = [
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "generation_config.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
];

/// Writes the parameters of a causal language model into a folder, which is made if it is missing:
/// `model.safetensors`, `config.json` and the tokenizer's files; of a model with adapters
/// `adapter_model.safetensors` and `adapter_config.json`. Equal parameters of equal models give
/// equal bytes. Files of these names are replaced; beside a complete model, other weights are removed.
///
/// # Errors
/// If the model or tokenizer of the task cannot be read, the parameters are of another model, the
/// folder cannot be written, or adapters would lie beside a complete model.
pub fn write_folder(
    config: &CausalConfig,
    layout: &Layout,
    parameters: &[f32],
    dir: &Path,
) -> Result<(), TaskError> {
    let tokens = tokens(config)?;
    let plan = CausalPlan::new(config, &tokens)?;
    let about = BTreeMap::from([("format".to_owned(), "pt".to_owned())]);
    fs::create_dir_all(dir).map_err(ModelFileError::io(dir))?;
    if let Some(lora) = &plan.lora {
        let rename = |name: &str| peft_name(name).unwrap_or_else(|| name.to_owned());
        let specs = layout.tensors().iter();
        let layout = Layout::new(specs.map(|spec| (rename(&spec.name), spec.shape.clone())));
        no_model_in(dir)?;
        let file = dir.join(ADAPTER);
        write_model(&file, &layout, parameters, &about)?;
        let about = json!({
            "peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": null,
            "r": lora.rank, "lora_alpha": lora.alpha, "lora_dropout": 0.0, "bias": "none",
            "target_modules": lora.targets, "fan_in_fan_out": matches!(plan.shape.family, Family::Gpt2),
            "inference_mode": true, "use_dora": false, "use_rslora": false,
        });
        return write_json(&dir.join("adapter_config.json"), &about);
    }
    write_model(&dir.join(SINGLE), layout, parameters, &about)?;
    remove_others(dir)?;
    let about = match &plan.start {
        Some(start) => described(&start.join("config.json"))?,
        None => shape_json(&plan.shape),
    };
    write_json(&dir.join("config.json"), &about)?;
    write_tokenizer(config, dir)
}

/// `config.json` of the model that the training began with, without the place that it came from.
fn described(file: &Path) -> Result<Value, TaskError> {
    let mut object: Map<String, Value> = read_json(file)?;
    object.remove("_name_or_path");
    let half = ["torch_dtype", "dtype"];
    for key in half {
        if object.contains_key(key) {
            object.insert(key.to_owned(), json!("float32"));
        }
    }
    Ok(Value::Object(object))
}

fn write_tokenizer(config: &CausalConfig, dir: &Path) -> Result<(), TaskError> {
    let source = match (&config.tokenizer, &config.model) {
        (Some(name), _) if name == BYTES => None,
        (Some(path), _) => Some(PathBuf::from(path)),
        (None, CausalModel::Folder { model }) => Some(model.clone()),
        (None, CausalModel::Fresh(_)) => None,
    };
    let Some(source) = source else {
        return write_json(&dir.join("tokenizer.json"), &byte_tokenizer());
    };
    let files: Vec<(PathBuf, &str)> = if source.is_dir() {
        COPIED.map(|name| (source.join(name), name)).to_vec()
    } else {
        vec![(source, COPIED[0])]
    };
    for (from, name) in files {
        let to = dir.join(name);
        let same = fs::canonicalize(&from).ok() == fs::canonicalize(&to).ok();
        if from.exists() && !same {
            fs::copy(&from, &to).map_err(ModelFileError::io(&from))?;
        }
    }
    Ok(())
}

/// JSON with sorted keys.
fn write_json(file: &Path, value: &Value) -> Result<(), TaskError> {
    let text = serde_json::to_string_pretty(&sorted(value))
        .map_err(|error| ModelDirError::new(file, error.to_string()))?;
    Ok(fs::write(file, text + "\n").map_err(ModelFileError::io(file))?)
}

/// The same value with the keys of its objects in order, whatever order the parser keeps.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let ordered: BTreeMap<&String, &Value> = object.iter().collect();
            let pairs = ordered.into_iter().map(|(k, v)| (k.clone(), sorted(v)));
            Value::Object(pairs.collect())
        }
        Value::Array(all) => Value::Array(all.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

/// A `tokenizer.json` whose token for each byte is the byte.
///
/// The letters of a byte-level vocabulary are GPT-2's: printable bytes stand for themselves, the
/// others, in order, for the letters from U+0100.
fn byte_tokenizer() -> Value {
    let printable = |byte: u32| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    let mut next = 0x100..;
    let letters = (0..256_u32).filter_map(|byte| {
        let letter = if printable(byte) {
            Some(byte)
        } else {
            next.next()
        };
        let letter = letter.and_then(char::from_u32)?;
        Some((letter.to_string(), json!(byte)))
    });
    let vocabulary: Map<String, Value> = letters.collect();
    let level = json!({
        "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false,
    });
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": null, "pre_tokenizer": level, "post_processor": null, "decoder": level,
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
            "ignore_merges": false, "vocab": vocabulary, "merges": [],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Tokens;

    #[test]
    fn the_tokenizer_of_bytes_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("tokenizer.json");
        write_json(&file, &byte_tokenizer()).unwrap();
        let tokens = Tokens::read(dir.path()).unwrap();
        assert_eq!(tokens.vocabulary(), 256);
        let text: String = (0..0x180).filter_map(char::from_u32).collect();
        let found = tokens.encode(&text).unwrap();
        assert_eq!(found, Tokens::Bytes.encode(&text).unwrap());
        assert_eq!(tokens.decode(&found).unwrap(), text);
    }
}
