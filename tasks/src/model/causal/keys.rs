//! Keys of a JSON object, each with its check.

use serde_json::{Map, Value};

/// The largest size that a model may have in one direction.
const SIZE_MAX: usize = 1 << 24;

/// The keys of a JSON object with their checks. Errors name the key.
pub(super) struct Keys<'a>(pub(super) &'a Map<String, Value>);

impl<'a> Keys<'a> {
    /// A value that is neither missing nor null.
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'a str>, String> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(format!("`{key}` is {other}, it must be a name")),
        }
    }

    pub(super) fn size(&self, key: &str) -> Result<usize, String> {
        let value = self.get(key).ok_or_else(|| format!("`{key}` is missing"))?;
        match value.as_u64().map(|size| size as usize) {
            Some(size) if (1..=SIZE_MAX).contains(&size) => Ok(size),
            _ => Err(format!(
                "`{key}` is {value}, it must be from 1 to {SIZE_MAX}"
            )),
        }
    }

    pub(super) fn size_or(&self, key: &str, usual: usize) -> Result<usize, String> {
        self.get(key).map_or(Ok(usual), |_| self.size(key))
    }

    pub(super) fn positive_or(&self, key: &str, usual: f64) -> Result<f64, String> {
        let Some(value) = self.get(key) else {
            return Ok(usual);
        };
        match value.as_f64() {
            Some(number) if number > 0.0 && number.is_finite() => Ok(number),
            _ => Err(format!("`{key}` is {value}, it must be a number above 0")),
        }
    }

    pub(super) fn flag_or(&self, key: &str, usual: bool) -> Result<bool, String> {
        match self.get(key) {
            None => Ok(usual),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(format!("`{key}` is {other}, it must be true or false")),
        }
    }

    /// Refuses any value of a key but the implemented one.
    pub(super) fn only(&self, key: &str, implemented: &Value) -> Result<(), String> {
        match self.get(key) {
            Some(value) if value != implemented => Err(format!(
                "`{key}` is {value}, which is not implemented (only {implemented} is)"
            )),
            _ => Ok(()),
        }
    }
}
