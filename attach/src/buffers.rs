//! The buffers of a PyTorch module, such as the running means of batch normalisation, in the state that the
//! Python package keeps in a checkpoint (`python/murmurate/_state.py`, and `_wire.py` for several ranks).

use crate::remote::STATE;
use murmurate_strategies::state::{StateError, StateSource};
use serde_json::Value;

/// How a state begins.
const MAGIC: &[u8] = b"MMSTATE1";

/// How the states of several ranks begin.
const RANKS: &[u8] = b"MMRANKS1";

/// One buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Its path in the model.
    pub name: String,
    /// The type of its values, as safetensors names it.
    pub dtype: &'static str,
    /// Its shape, outermost first.
    pub shape: Vec<u64>,
    /// Its values in little endian.
    pub bytes: Vec<u8>,
}

/// The buffers that a checkpoint keeps beside the parameters of an attached trainer; none where it has no such state.
///
/// # Errors
/// When the state cannot be read.
pub fn buffers_of(checkpoint: &dyn StateSource) -> Result<Vec<Buffer>, StateError> {
    if checkpoint.contains(STATE) {
        let bytes = checkpoint.bytes(STATE)?;
        buffers_in(&bytes).ok_or_else(|| StateError::Malformed {
            name: STATE.to_owned(),
            reason: "the package of another version has written it".to_owned(),
        })
    } else {
        Ok(Vec::new())
    }
}

/// `None` where the bytes are no state.
fn buffers_in(state: &[u8]) -> Option<Vec<Buffer>> {
    let state = match state.strip_prefix(RANKS) {
        None => state,
        // All ranks have the same buffers; those of the first one follow the sizes of all.
        Some(rest) => rest.get(number(rest)?.checked_add(1)?.checked_mul(8)?..)?,
    };
    let Some(rest) = state.strip_prefix(MAGIC) else {
        // Other trainers than the package may keep what they like.
        return Some(Vec::new());
    };
    let (text, arrays) = rest.get(8..)?.split_at_checked(number(rest)?)?;
    let tree: Value = serde_json::from_slice(text).ok()?;
    let mut found = Vec::new();
    let mut at = 0;
    for (key, value) in pairs(&tree) {
        if key != "buffers" {
            at = bytes_of(value)?.checked_add(at)?;
            continue;
        }
        for (name, value) in pairs(value) {
            // A type that NumPy lacks is wrapped.
            let short = value.get("dict").and_then(|_| pairs(value).next());
            let (array, is_short) = match short {
                Some(("bfloat16", array)) => (array, true),
                _ => (value, false),
            };
            let end = bytes_of(array)?.checked_add(at)?;
            let shape = array.get("shape")?.as_array()?.iter().map(Value::as_u64);
            found.push(Buffer {
                name: name.to_owned(),
                dtype: if is_short { "BF16" } else { dtype(array)?.0 },
                shape: shape.collect::<Option<_>>()?,
                bytes: arrays.get(at..end)?.to_vec(),
            });
            at = end;
        }
    }
    Some(found)
}

/// The number that the bytes begin with.
fn number(bytes: &[u8]) -> Option<usize> {
    usize::try_from(u64::from_le_bytes(*bytes.first_chunk()?)).ok()
}

/// The keys and values of a dict whose keys are text.
fn pairs(tree: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let all = tree.get("dict").and_then(Value::as_array);
    all.into_iter()
        .flatten()
        .filter_map(|pair| Some((pair.get(0)?.as_str()?, pair.get(1)?)))
}

/// Bytes of all arrays in a tree.
fn bytes_of(tree: &Value) -> Option<usize> {
    let Value::Object(kind) = tree else {
        let mut all = tree.as_array().into_iter().flatten();
        return all.try_fold(0, |sum: usize, one| sum.checked_add(bytes_of(one)?));
    };
    if !kind.contains_key("array") {
        let mut all = kind.values();
        return all.try_fold(0, |sum: usize, one| sum.checked_add(bytes_of(one)?));
    }
    let mut shape = tree.get("shape")?.as_array()?.iter();
    let size = dtype(tree)?.1;
    shape.try_fold(size, |product: usize, count| {
        product.checked_mul(usize::try_from(count.as_u64()?).ok()?)
    })
}

/// The type of an array's values, and their bytes.
fn dtype(array: &Value) -> Option<(&'static str, usize)> {
    Some(match array.get("array")?.as_str()?.get(1..)? {
        "f8" => ("F64", 8),
        "f4" => ("F32", 4),
        "f2" => ("F16", 2),
        "i8" => ("I64", 8),
        "i4" => ("I32", 4),
        "i2" => ("I16", 2),
        "i1" => ("I8", 1),
        "u1" => ("U8", 1),
        "b1" => ("BOOL", 1),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn state(tree: &Value, arrays: &[u8]) -> Vec<u8> {
        let text = tree.to_string();
        let length = (text.len() as u64).to_le_bytes();
        [MAGIC, &length, text.as_bytes(), arrays].concat()
    }

    #[test]
    fn buffers_lie_behind_what_the_optimizer_keeps() {
        let array = |kind: &str, shape: &[u64]| json!({"array": kind, "shape": shape});
        let moments = json!({"list": [{"float": "0x1p0"}, array("<f4", &[1]), array("|u1", &[3])]});
        let tree = json!({"dict": [
            ["optimizer", {"dict": [["state", moments], ["lr", 1]]}],
            ["buffers", {"dict": [
                ["mean", array("<f4", &[1])],
                ["short", {"dict": [["bfloat16", array("<i2", &[2])]]}],
                ["count", array("<i8", &[])],
            ]}],
        ]});
        let arrays: Vec<u8> = (0..23).collect();
        let buffer = |name: &str, dtype, shape: &[u64], bytes: std::ops::Range<u8>| Buffer {
            name: name.to_owned(),
            dtype,
            shape: shape.to_vec(),
            bytes: bytes.collect(),
        };
        let expected = [
            buffer("mean", "F32", &[1], 7..11),
            buffer("short", "BF16", &[2], 11..15),
            buffer("count", "I64", &[], 15..23),
        ];
        let alone = state(&tree, &arrays);
        assert_eq!(buffers_in(&alone).unwrap(), expected);
        let sizes = [2, alone.len() as u64, 1].map(u64::to_le_bytes).concat();
        let ranks = [RANKS, &sizes, &alone, &[9]].concat();
        assert_eq!(buffers_in(&ranks).unwrap(), expected);
        assert_eq!(buffers_in(&alone[..alone.len() - 1]), None);
        assert_eq!(buffers_in(b"of another trainer"), Some(Vec::new()));
    }
}
