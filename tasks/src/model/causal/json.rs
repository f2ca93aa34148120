//! `config.json` of a Hugging Face directory: reads the sizes of a model, and writes them.

use super::families::{FAMILIES, llama};
use super::keys::Keys;
use super::rope::{Rope, Stretch};
use super::shape::{CausalShape, Family};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Why a model directory cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}: {reason}", file.display())]
pub struct ModelDirError {
    /// The file or folder.
    pub file: PathBuf,
    /// The problem, with advice.
    pub reason: String,
}

impl ModelDirError {
    pub(crate) fn new(file: &Path, reason: impl Into<String>) -> Self {
        let (file, reason) = (file.to_path_buf(), reason.into());
        Self { file, reason }
    }
}

/// Reads a JSON file of a model directory.
pub(crate) fn read_json(file: &Path) -> Result<Map<String, Value>, ModelDirError> {
    let wrong = |reason: String| ModelDirError::new(file, reason);
    let text = std::fs::read(file).map_err(|e| {
        wrong(format!(
            "{e} (give a folder with config.json and safetensors files, as transformers saves a model)"
        ))
    })?;
    match serde_json::from_slice(&text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(wrong("it is not a JSON object".to_owned())),
        Err(error) => Err(wrong(format!("it is not JSON ({error})"))),
    }
}

/// The sizes that `config.json` of a model directory gives.
///
/// # Errors
/// If the file is missing or damaged, of another architecture, or asks for something that is not
/// implemented.
pub fn read_shape(dir: &Path) -> Result<CausalShape, ModelDirError> {
    let file = dir.join("config.json");
    let object = read_json(&file)?;
    parse(&object).map_err(|reason| ModelDirError::new(&file, reason))
}

fn parse(object: &Map<String, Value>) -> Result<CausalShape, String> {
    let keys = Keys(object);
    match keys.text("model_type")? {
        Some("gpt2") => gpt2(&keys),
        Some(kind) if FAMILIES.contains(&kind) => llama(kind, &keys),
        Some(other) => {
            let known = FAMILIES.join(", ");
            Err(format!(
                "`model_type` is \"{other}\", which is not implemented (gpt2, {known} are)"
            ))
        }
        None => Err("`model_type` is missing (is it the folder of a model?)".to_owned()),
    }
}

fn gpt2(keys: &Keys<'_>) -> Result<CausalShape, String> {
    let act = keys.text("activation_function")?.unwrap_or("gelu_new");
    if !matches!(act, "gelu_new" | "gelu_pytorch_tanh") {
        return Err(format!(
            "`activation_function` is \"{act}\", which is not implemented (\"gelu_new\" is)"
        ));
    }
    keys.only("scale_attn_weights", &json!(true))?;
    keys.only("scale_attn_by_inverse_layer_idx", &json!(false))?;
    keys.only("add_cross_attention", &json!(false))?;
    let (width, heads) = (keys.size("n_embd")?, keys.size("n_head")?);
    if !width.is_multiple_of(heads) {
        return Err(format!(
            "`n_head` = {heads} does not divide `n_embd` = {width}"
        ));
    }
    Ok(CausalShape {
        family: Family::Gpt2,
        vocabulary: keys.size("vocab_size")?,
        width,
        hidden: keys.size_or("n_inner", 4 * width)?,
        layers: keys.size("n_layer")?,
        heads,
        positions: keys.size("n_positions")?,
        eps: keys.positive_or("layer_norm_epsilon", 1e-5)?,
        tied: keys.flag_or("tie_word_embeddings", true)?,
    })
}

/// `config.json` of a new model with these sizes, a Llama or a GPT-2, as `transformers` 5 reads it; 4 reads it
/// too unless positions are stretched.
pub fn shape_json(s: &CausalShape) -> Value {
    match &s.family {
        Family::Llama(heads) => {
            let rope = rope_json(&heads.rope);
            json!({
                "architectures": ["LlamaForCausalLM"], "model_type": "llama", "dtype": "float32",
                "attention_bias": false, "mlp_bias": false, "hidden_act": "silu",
                "vocab_size": s.vocabulary, "hidden_size": s.width,
                "intermediate_size": s.hidden, "num_hidden_layers": s.layers,
                "num_attention_heads": s.heads, "num_key_value_heads": heads.kv_heads,
                "head_dim": heads.head_width, "max_position_embeddings": s.positions,
                "rms_norm_eps": s.eps, "tie_word_embeddings": s.tied,
                "rope_theta": heads.rope.theta, "rope_parameters": rope,
                "bos_token_id": null, "eos_token_id": null,
            })
        }
        Family::Gpt2 => json!({
            "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "dtype": "float32",
            "activation_function": "gelu_new", "vocab_size": s.vocabulary, "n_embd": s.width,
            "n_inner": s.hidden, "n_layer": s.layers, "n_head": s.heads,
            "n_positions": s.positions, "layer_norm_epsilon": s.eps,
            "tie_word_embeddings": s.tied, "resid_pdrop": 0.0, "embd_pdrop": 0.0,
            "attn_pdrop": 0.0, "bos_token_id": null, "eos_token_id": null,
        }),
    }
}

fn rope_json(rope: &Rope) -> Value {
    let theta = rope.theta;
    match rope.stretch {
        Stretch::None => json!({ "rope_type": "default", "rope_theta": theta }),
        Stretch::Linear(factor) => {
            json!({ "rope_type": "linear", "rope_theta": theta, "factor": factor })
        }
        Stretch::Llama3 {
            factor,
            low,
            high,
            original,
        } => json!({
            "rope_type": "llama3", "rope_theta": theta, "factor": factor, "low_freq_factor": low,
            "high_freq_factor": high, "original_max_position_embeddings": original as u64,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: Value) -> Result<CausalShape, String> {
        match value {
            Value::Object(object) => parse(&object),
            _ => Err("no object".to_owned()),
        }
    }

    fn small() -> Value {
        json!({
            "model_type": "llama", "vocab_size": 10, "hidden_size": 8, "intermediate_size": 12,
            "num_hidden_layers": 1, "num_attention_heads": 2,
        })
    }

    fn with(key: &str, value: Value) -> Value {
        let mut object = small();
        object[key] = value;
        object
    }

    #[test]
    fn the_angles_of_both_generations_of_files_are_read() {
        let theta = |value| match read(value).map(|shape| shape.family) {
            Ok(Family::Llama(heads)) => heads.rope,
            other => panic!("{other:?}"),
        };
        let plain = |theta| Rope {
            theta,
            stretch: Stretch::None,
        };
        assert_eq!(theta(small()), plain(1e4));
        assert_eq!(theta(with("rope_theta", json!(5e5))), plain(5e5));
        let new = json!({ "rope_type": "default", "rope_theta": 7e5 });
        assert_eq!(theta(with("rope_parameters", new)), plain(7e5));
        let mut old = with("rope_theta", json!(5e5));
        old["rope_scaling"] = json!({ "type": "linear", "factor": 2.0 });
        let expected = Rope {
            theta: 5e5,
            stretch: Stretch::Linear(2.0),
        };
        assert_eq!(theta(old), expected);
    }

    #[test]
    fn what_is_written_is_read() {
        let stretched = json!({
            "rope_type": "llama3", "rope_theta": 1e3, "factor": 8.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": 32,
        });
        let gpt2 = json!({
            "model_type": "gpt2", "vocab_size": 10, "n_embd": 8, "n_head": 2, "n_layer": 1,
            "n_positions": 16,
        });
        for value in [small(), with("rope_parameters", stretched), gpt2] {
            let shape = read(value).unwrap();
            assert_eq!(read(shape_json(&shape)), Ok(shape));
        }
    }

    #[test]
    fn what_is_not_implemented_is_named() {
        let cases = [
            (
                with("model_type", json!("mamba")),
                "`model_type` is \"mamba\"",
            ),
            (
                with("hidden_act", json!("relu")),
                "`hidden_act` is \"relu\"",
            ),
            (
                with("attention_bias", json!(1)),
                "`attention_bias` is 1, it must be true or false",
            ),
            (
                with("num_attention_heads", json!(0)),
                "`num_attention_heads` is 0",
            ),
            (with("hidden_size", Value::Null), "`hidden_size` is missing"),
            (
                with("rope_parameters", json!({ "rope_type": "yarn" })),
                "`rope_type` is \"yarn\"",
            ),
            (with("num_key_value_heads", json!(4)), "does not divide"),
        ];
        for (value, expected) in cases {
            let reason = read(value).unwrap_err();
            assert!(reason.contains(expected), "{reason}");
        }
    }
}
