//! Chat templates: Jinja that makes the text of a conversation, in the environment that `transformers` gives it.

use crate::model::{ModelDirError, read_json};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Value, context, escape_formatter};
use minijinja_contrib::pycompat::unknown_method_callback;
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The file of a template that is not in `tokenizer_config.json`.
const FILE: &str = "chat_template.jinja";

/// Steps that one conversation may take, each of at most 64 bytes: a template comes with a model, and must
/// neither run for ever nor fill the memory.
const STEPS_MAX: u64 = 8_000_000;

/// Tokens with a name of their own in a template.
const SPECIAL: [&str; 7] = [
    "bos_token",
    "eos_token",
    "unk_token",
    "sep_token",
    "pad_token",
    "cls_token",
    "mask_token",
];

/// Stand for `{% generation %}` and `{% endgeneration %}`. These are no characters of any text.
const MARKS: [char; 2] = ['\u{fdd0}', '\u{fdd1}'];

/// `tokenizer_config.json` of a folder and its keys; none if it is missing.
fn tokenizer_config(dir: &Path) -> Result<(PathBuf, Map<String, Json>), ModelDirError> {
    let config = dir.join("tokenizer_config.json");
    let keys = match config.exists() {
        true => read_json(&config)?,
        false => Map::new(),
    };
    Ok((config, keys))
}

/// The texts of tokens that a tokenizer has a name for, such as `eos_token`.
///
/// # Errors
/// If `tokenizer_config.json` is damaged.
pub(crate) fn special_tokens(dir: &Path) -> Result<BTreeMap<&'static str, String>, ModelDirError> {
    let (_, keys) = tokenizer_config(dir)?;
    let each = SPECIAL.iter().filter_map(|name| {
        let value = keys.get(*name)?;
        let text = value.as_str().or_else(|| value.get("content")?.as_str())?;
        Some((*name, text.to_owned()))
    });
    Ok(each.collect())
}

/// The template of a tokenizer.
#[derive(Debug)]
pub(crate) struct Template {
    environment: Environment<'static>,
    special: BTreeMap<&'static str, String>,
    /// It says which parts an assistant writes.
    pub(super) is_marked: bool,
}

impl Template {
    /// Reads `chat_template.jinja` of a folder, or the template in its `tokenizer_config.json`.
    ///
    /// # Errors
    /// If there is none, or it is no template.
    pub(crate) fn open(dir: &Path) -> Result<Self, ModelDirError> {
        let (config, keys) = tokenizer_config(dir)?;
        let own = dir.join(FILE);
        let (file, text) = match (std::fs::read_to_string(&own), keys.get("chat_template")) {
            (Ok(text), _) => (own, text),
            (Err(error), _) if error.kind() != io::ErrorKind::NotFound => {
                return Err(ModelDirError::new(&own, error.to_string()));
            }
            (Err(_), Some(found)) => match default_of(found) {
                Some(text) => (config, text),
                None => {
                    let reason = "`chat_template` is neither a text nor a list with one that is called \"default\"";
                    return Err(ModelDirError::new(&config, reason));
                }
            },
            (Err(_), None) => {
                let reason = "there is no chat template, which conversations need (put chat_template.jinja \
                              into the folder of the tokenizer, or give text instead of conversations)";
                return Err(ModelDirError::new(dir, reason));
            }
        };
        let new = Self::new(&text, special_tokens(dir)?);
        new.map_err(|error| ModelDirError::new(&file, said(&error)))
    }

    pub(super) fn new(text: &str, special: BTreeMap<&'static str, String>) -> Result<Self, Error> {
        let mut environment = Environment::new();
        let mut syntax = SyntaxConfig::builder();
        syntax.trim_blocks(true).lstrip_blocks(true);
        environment.set_syntax(syntax.build()?);
        environment.set_fuel(Some(STEPS_MAX));
        environment.set_unknown_method_callback(unknown_method_callback);
        environment.add_function(
            "raise_exception",
            |reason: String| -> Result<Value, Error> {
                Err(Error::new(ErrorKind::InvalidOperation, reason))
            },
        );
        environment.add_filter("tojson", python_json);
        environment.set_formatter(|out, state, value| match (value.kind(), value.is_true()) {
            (ValueKind::Bool, true) => Ok(out.write_str("True")?),
            (ValueKind::Bool, false) => Ok(out.write_str("False")?),
            (ValueKind::None, _) => Ok(out.write_str("None")?),
            _ => escape_formatter(out, state, value),
        });
        let (text, is_marked) = marked(text);
        environment.add_template_owned("chat", text)?;
        Ok(Self {
            environment,
            special,
            is_marked,
        })
    }

    /// The text of a conversation, followed by what begins an answer if `prompt` says so.
    ///
    /// # Errors
    /// If the template refuses it.
    pub(crate) fn render(&self, messages: &[Value], prompt: bool) -> Result<String, String> {
        self.marked(messages, prompt).map(|(text, _)| text)
    }

    /// The same with the bytes that the template says an assistant writes.
    pub(super) fn marked(
        &self,
        messages: &[Value],
        prompt: bool,
    ) -> Result<(String, Vec<Range<usize>>), String> {
        let chat = self.environment.get_template("chat");
        let chat = chat.map_err(|error| said(&error))?;
        let special = self.special.iter();
        let special = special.map(|(name, token)| (*name, token.as_str()));
        let context = context! {
            messages => messages, tools => (), documents => (), add_generation_prompt => prompt,
            ..Value::from_pairs(special)
        };
        if self.is_marked {
            let read = serde_json::to_string(messages).map_err(|error| error.to_string())?;
            if read.contains(MARKS) {
                return Err(
                    "a message has U+FDD0 or U+FDD1, which are no characters (remove them)"
                        .to_owned(),
                );
            }
        }
        let text = chat.render(context).map_err(|error| said(&error))?;
        Ok(match self.is_marked {
            true => unmarked(&text),
            false => (text, Vec::new()),
        })
    }

    /// Gives templates a clock, which they do without otherwise: the day would be in the data.
    #[cfg(test)]
    pub(super) fn set_clock(&mut self, clock: fn(String) -> String) {
        self.environment.add_function("strftime_now", clock);
    }
}

/// The one of several templates that has no special use.
fn default_of(value: &Json) -> Option<String> {
    let named = value.as_array().and_then(|all| {
        let is_default = |one: &&Json| one["name"] == "default";
        all.iter().find(is_default)?["template"].as_str()
    });
    named.or_else(|| value.as_str()).map(str::to_owned)
}

/// An error in one line.
fn said(error: &Error) -> String {
    let reason = error
        .detail()
        .map_or_else(|| error.kind().to_string(), str::to_owned);
    match error.line() {
        Some(line) => format!("line {line} of the template: {reason}"),
        None => reason,
    }
}

/// The template with marks in place of the tags around what an assistant writes, and whether it has some.
fn marked(template: &str) -> (String, bool) {
    let (mut out, mut rest, mut found) = (String::new(), template, false);
    while let Some(start) = rest.find("{%") {
        let tail = &rest[start + 2..];
        let Some(end) = tail.find("%}") else { break };
        let inner = &tail[..end];
        let is_sign = |sign: &char| matches!(sign, '-' | '+');
        let left = inner.chars().next().filter(is_sign);
        let right = inner.chars().last().filter(is_sign);
        let word = inner.trim_matches(|c: char| is_sign(&c)).trim();
        let mark = match word {
            "generation" => Some(MARKS[0]),
            "endgeneration" => Some(MARKS[1]),
            _ => None,
        };
        out.push_str(&rest[..start]);
        match mark {
            Some(mark) => {
                let sign = |sign: Option<char>| sign.map(String::from).unwrap_or_default();
                let (left, right) = (sign(left), sign(right));
                // Tags before and behind the mark, so that spaces and line ends go as they would.
                out.push_str(&format!("{{%{left} if true %}}{mark}{{% endif {right}%}}"));
                found = true;
            }
            None => out.push_str(&rest[start..start + 2 + end + 2]),
        }
        rest = &tail[end + 2..];
    }
    out.push_str(rest);
    (out, found)
}

/// A text without its marks, and the bytes that were between them.
fn unmarked(text: &str) -> (String, Vec<Range<usize>>) {
    let (mut out, mut ranges, mut start) = (String::with_capacity(text.len()), Vec::new(), 0);
    for c in text.chars() {
        match MARKS.iter().position(|mark| *mark == c) {
            Some(0) => start = out.len(),
            Some(_) => ranges.push(start..out.len()),
            None => out.push(c),
        }
    }
    (out, ranges)
}

/// JSON as Python's `json.dumps` writes it without escapes.
fn python_json(value: &Value, options: Kwargs) -> Result<String, Error> {
    let indent: Option<usize> = options.get("indent")?;
    // Others of `json.dumps` do not change what a conversation has.
    for other in ["ensure_ascii", "separators", "sort_keys"] {
        let _: Option<Value> = options.get(other)?;
    }
    options.assert_all_used()?;
    let mut out = Vec::new();
    let written = match indent {
        Some(spaces) => {
            let indent = " ".repeat(spaces.min(16));
            let pretty = PrettyFormatter::with_indent(indent.as_bytes());
            value.serialize(&mut serde_json::Serializer::with_formatter(
                &mut out, pretty,
            ))
        }
        None => value.serialize(&mut serde_json::Serializer::with_formatter(
            &mut out, Spaced,
        )),
    };
    let wrong = |reason: String| Error::new(ErrorKind::BadSerialization, reason);
    written.map_err(|error| wrong(error.to_string()))?;
    String::from_utf8(out).map_err(|error| wrong(error.to_string()))
}

/// A space behind commas and colons.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}
