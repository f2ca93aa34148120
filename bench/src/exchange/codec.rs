//! A codec with its parameters as one word: `top-k:density=0.01`.

use std::fmt;
use std::str::FromStr;

/// A codec's name and parameters, which become `[strategy.compression]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodecFlag {
    name: String,
    parameters: Vec<(String, String)>,
}

/// A word that is no codec.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not NAME or NAME:KEY=VALUE,...: write top-k:density=0.01 for example")]
pub struct CodecFlagError(String);

impl CodecFlag {
    /// The table of a configuration.
    #[must_use]
    pub fn table(&self) -> String {
        format!("[strategy.compression]\n{}", self.fields())
    }

    /// The fields of the table. Values that are no numbers and no truth values are strings.
    #[must_use]
    pub fn fields(&self) -> String {
        let bare = |value: &str| value.parse::<f64>().is_ok() || ["true", "false"].contains(&value);
        let mut table = format!("codec = {:?}\n", self.name);
        for (key, value) in &self.parameters {
            let value = if bare(value) {
                value.clone()
            } else {
                format!("{value:?}")
            };
            table.push_str(&format!("{key} = {value}\n"));
        }
        table
    }
}

fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    !text.is_empty() && text.chars().all(fits)
}

impl FromStr for CodecFlag {
    type Err = CodecFlagError;

    fn from_str(word: &str) -> Result<Self, CodecFlagError> {
        let wrong = || CodecFlagError(word.to_owned());
        let (name, rest) = match word.split_once(':') {
            Some((name, rest)) => (name, Some(rest)),
            None => (word, None),
        };
        let pair = |part: &str| {
            let (key, value) = part.split_once('=')?;
            let plain = !value.is_empty() && !value.contains(char::is_control);
            (is_name(key) && plain).then(|| (key.to_owned(), value.to_owned()))
        };
        let pairs = rest.map(|rest| rest.split(',').map(pair).collect::<Option<Vec<_>>>());
        let parameters = pairs
            .unwrap_or_else(|| Some(Vec::new()))
            .ok_or_else(wrong)?;
        if !is_name(name) {
            return Err(wrong());
        }
        Ok(Self {
            name: name.to_owned(),
            parameters,
        })
    }
}

impl fmt::Display for CodecFlag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (index, (key, value)) in self.parameters.iter().enumerate() {
            let before = if index == 0 { ':' } else { ',' };
            write!(f, "{before}{key}={value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_codec_with_parameters_becomes_a_table() {
        let flag: CodecFlag = "top-k:density=0.01,values=fp16".parse().unwrap();
        let table =
            "[strategy.compression]\ncodec = \"top-k\"\ndensity = 0.01\nvalues = \"fp16\"\n";
        assert_eq!(flag.table(), table);
        assert_eq!(flag.to_string(), "top-k:density=0.01,values=fp16");
        assert_eq!("f32".parse::<CodecFlag>().unwrap().to_string(), "f32");
    }

    #[test]
    fn what_is_no_codec_is_refused_with_an_example() {
        for wrong in [
            "",
            ":",
            "top-k:",
            "top-k:density",
            "top-k:density=",
            "a b",
            "x\ny",
            "f32:]=1",
        ] {
            let error = wrong.parse::<CodecFlag>().unwrap_err().to_string();
            assert!(error.contains("top-k:density=0.01"), "{wrong:?}: {error}");
        }
    }
}
