//! `config.json` of the relatives of Llama: which parts of a block each `model_type` has.

use super::keys::Keys;
use super::rope::{Rope, Stretch};
use super::shape::{Biases, CausalShape, Family, Gemma, LlamaShape, NearLayers};
use serde_json::{Map, Value, json};

/// Values of `model_type` that are read here.
pub(super) const FAMILIES: [&str; 6] = [
    "llama",
    "mistral",
    "qwen2",
    "qwen3",
    "gemma2",
    "gemma3_text",
];

/// The layers in front of each one that sees everything, in a Gemma 3 whose file does not say it.
const GEMMA3_PATTERN: usize = 6;

/// The shape of a model of one of [`FAMILIES`].
pub(super) fn llama(kind: &str, keys: &Keys<'_>) -> Result<CausalShape, String> {
    let gemma = gemma(kind, keys)?;
    activation(gemma.is_some(), keys)?;
    let (width, heads) = (keys.size("hidden_size")?, keys.size("num_attention_heads")?);
    let layers = keys.size("num_hidden_layers")?;
    // What `transformers` takes where the file does not say it.
    let (usual_kv, usual_head) = match kind {
        "mistral" => (8, width / heads),
        "qwen2" => (32, width / heads),
        "qwen3" => (32, 128),
        "gemma2" | "gemma3_text" => (4, 256),
        _ => (heads, width / heads),
    };
    let kv_heads = keys.size_or("num_key_value_heads", usual_kv)?;
    let head_width = keys.size_or("head_dim", usual_head)?;
    if !heads.is_multiple_of(kv_heads) {
        return Err(format!(
            "`num_key_value_heads` = {kv_heads} does not divide `num_attention_heads` = {heads}"
        ));
    }
    if !head_width.is_multiple_of(2) {
        return Err(format!(
            "the size of a head is {head_width}, it must be even"
        ));
    }
    let biased = keys.flag_or("attention_bias", false)?;
    let shape = LlamaShape {
        kv_heads,
        head_width,
        rope: rope(keys, "full_attention")?,
        biases: Biases {
            inputs: biased || kind == "qwen2",
            output: biased,
            feed: keys.flag_or("mlp_bias", false)?,
        },
        head_norms: matches!(kind, "qwen3" | "gemma3_text"),
        near: near(kind, layers, keys)?,
        gemma,
    };
    Ok(CausalShape {
        vocabulary: keys.size("vocab_size")?,
        width,
        hidden: keys.size("intermediate_size")?,
        layers,
        heads,
        positions: keys.size_or("max_position_embeddings", 2048)?,
        eps: keys.positive_or("rms_norm_eps", 1e-6)?,
        tied: keys.flag_or("tie_word_embeddings", shape.gemma.is_some())?,
        family: Family::Llama(Box::new(shape)),
    })
}

fn activation(gemma: bool, keys: &Keys<'_>) -> Result<(), String> {
    if !gemma {
        return keys.only("hidden_act", &json!("silu"));
    }
    keys.only("use_bidirectional_attention", &json!(false))?;
    // The files of the first Gemmas have two keys, of which this one counts.
    keys.only("hidden_activation", &json!("gelu_pytorch_tanh"))
}

fn gemma(kind: &str, keys: &Keys<'_>) -> Result<Option<Gemma>, String> {
    let query_scalar = match kind {
        "gemma2" | "gemma3_text" => keys.positive_or("query_pre_attn_scalar", 256.0)?,
        _ => return Ok(None),
    };
    // A Gemma 2 has caps unless its file says null.
    let cap = |key: &str, usual: f64| match keys.get(key) {
        None if keys.0.contains_key(key) || kind != "gemma2" => Ok(None),
        _ => keys.positive_or(key, usual).map(Some),
    };
    Ok(Some(Gemma {
        query_scalar,
        // `transformers` has the key for Gemma 3 too, and does not apply it.
        score_cap: cap("attn_logit_softcapping", 50.0)?.filter(|_| kind == "gemma2"),
        logit_cap: cap("final_logit_softcapping", 30.0)?,
    }))
}

/// The layers with a sliding window.
fn near(kind: &str, layers: usize, keys: &Keys<'_>) -> Result<Option<NearLayers>, String> {
    let used = match kind {
        "llama" => false,
        "qwen2" | "qwen3" => keys.flag_or("use_sliding_window", false)?,
        _ => true,
    };
    // Null is none; without the key there is one.
    let is_null = keys.get("sliding_window").is_none() && keys.0.contains_key("sliding_window");
    if !used || is_null {
        return Ok(None);
    }
    let which = match (keys.get("layer_types"), kind) {
        (Some(types), _) => layer_types(types, layers)?,
        (None, "mistral") => vec![true; layers],
        (None, "gemma2") => (0..layers).map(|layer| layer % 2 == 0).collect(),
        (None, "gemma3_text") => {
            let pattern = keys.size_or("sliding_window_pattern", GEMMA3_PATTERN)?;
            (1..=layers).map(|layer| layer % pattern != 0).collect()
        }
        (None, _) => {
            let first = match keys.get("max_window_layers") {
                Some(value) if value.as_u64() == Some(0) => 0,
                _ => keys.size_or("max_window_layers", layers)?,
            };
            (0..layers).map(|layer| layer >= first).collect()
        }
    };
    let rope = match kind {
        "gemma3_text" => Some(local_rope(keys)?),
        _ => None,
    };
    Ok(Some(NearLayers {
        window: keys.size_or("sliding_window", 4096)?,
        layers: which,
        rope,
    }))
}

fn layer_types(types: &Value, layers: usize) -> Result<Vec<bool>, String> {
    let wrong = || {
        format!(
            "`layer_types` is {types}, it must name \"full_attention\" or \"sliding_attention\" for each of \
             the {layers} layers"
        )
    };
    let all = types.as_array().filter(|all| all.len() == layers);
    let each = all
        .ok_or_else(wrong)?
        .iter()
        .map(|kind| match kind.as_str() {
            Some("full_attention") => Ok(false),
            Some("sliding_attention") => Ok(true),
            _ => Err(wrong()),
        });
    each.collect()
}

/// The positions of a Gemma 3's near layers.
fn local_rope(keys: &Keys<'_>) -> Result<Rope, String> {
    if nested(keys, "rope_parameters")?.is_some() {
        return rope(keys, "sliding_attention");
    }
    Ok(Rope {
        theta: keys.positive_or("rope_local_base_freq", 10_000.0)?,
        stretch: Stretch::None,
    })
}

fn nested<'a>(keys: &Keys<'a>, key: &str) -> Result<Option<&'a Map<String, Value>>, String> {
    match keys.get(key) {
        None => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(other) => Err(format!("`{key}` is {other}, it must be an object")),
    }
}

/// The angles of layers of this kind. `transformers` 5 has `rope_parameters`, perhaps one for each kind of
/// layers; 4 had `rope_theta` and `rope_scaling`.
fn rope(keys: &Keys<'_>, layers: &str) -> Result<Rope, String> {
    let empty = Map::new();
    let scaling = nested(keys, "rope_scaling")?;
    let mut inner = Keys(
        nested(keys, "rope_parameters")?
            .or(scaling)
            .unwrap_or(&empty),
    );
    if let Some(own) = nested(&inner, layers)? {
        inner = Keys(own);
    }
    let usual = match keys.text("model_type")? {
        Some("gemma3_text") => 1e6,
        _ => 1e4,
    };
    let theta = inner.positive_or("rope_theta", keys.positive_or("rope_theta", usual)?)?;
    let kind = match inner.text("rope_type")? {
        Some(kind) => Some(kind),
        None => inner.text("type")?,
    };
    let need = |key: &str| match inner.positive_or(key, -1.0)? {
        value if value > 0.0 => Ok(value),
        _ => Err(format!("`{key}` of the rotary embedding is missing")),
    };
    let stretch = match kind {
        None | Some("default") => Stretch::None,
        Some("linear") => Stretch::Linear(need("factor")?),
        Some("llama3") => Stretch::Llama3 {
            factor: need("factor")?,
            low: need("low_freq_factor")?,
            high: need("high_freq_factor")?,
            original: need("original_max_position_embeddings")?,
        },
        Some(other) => {
            return Err(format!(
                "`rope_type` is \"{other}\", which is not implemented (\"default\", \"linear\" and \
                 \"llama3\" are)"
            ));
        }
    };
    Ok(Rope { theta, stretch })
}
