//! Passages of files in JSON Lines: one object in each line, with the document under one key.

use super::piece::{Piece, Wanted};
use crate::data::error::{DataError, Problem, at};
use crate::data::first_bytes::without_mark;
use minijinja::Value;
use minijinja::value::ValueKind;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

/// The key with a conversation, if the configuration names none and the first object has it and no text.
pub(super) const MESSAGES: &str = "messages";

/// The longest line: a file without line breaks must not fill the memory.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// The most keys of a line that an error lists.
const KEYS_SHOWN: usize = 12;

/// Reads the lines that begin in a range of bytes.
pub(super) fn read(
    path: &Path,
    wanted: Wanted<'_>,
    range: &Range<u64>,
    f: &mut dyn FnMut(Piece) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let io = at(path);
    let mut file = BufReader::with_capacity(1 << 17, File::open(path).map_err(io)?);
    // The line that begins before the range is the previous passage's. It is empty if it ends there.
    let mut next = range.start.saturating_sub(1);
    file.seek(SeekFrom::Start(next)).map_err(io)?;
    let mut line = Vec::new();
    if range.start > 0 {
        next += read_line(&mut file, &mut line).map_err(io)?;
    }
    while next < range.end {
        let begin = next;
        let length = read_line(&mut file, &mut line).map_err(io)?;
        if length == 0 {
            break;
        }
        next += length;
        // The line break is none of the object: a string that is cut off ends in it.
        let object = match begin {
            0 => without_mark(&line).trim_ascii_end(),
            _ => line.trim_ascii_end(),
        };
        match piece(object, wanted) {
            Ok(Some(piece)) => f(piece)?,
            Ok(None) => {}
            Err(bad) => {
                let number = line_number(path, begin).map_err(io)?;
                let error = at(path)(bad.of_line(number, object, wanted));
                // A model that reads text can use none of the other lines of tokens either.
                if !error.is_of_a_record() {
                    return Err(error);
                }
                wanted.bad.judge(error)?;
            }
        }
    }
    Ok(())
}

/// Why a line cannot be used, without its place.
enum Bad {
    Json(String),
    NoKey,
    Token(i64),
    Tokens,
    /// A conversation that cannot be trained.
    Chat(String),
}

impl Bad {
    fn of_line(self, line: u64, bytes: &[u8], wanted: Wanted<'_>) -> Problem {
        let place = format!("line {line}");
        match self {
            Self::Json(reason) => Problem::Json { line, reason },
            Self::NoKey => Problem::NoKey {
                line,
                key: wanted.column.to_owned(),
                known: keys(bytes),
            },
            Self::Token(token) => wanted.unknown(place, token),
            Self::Tokens => Problem::Tokens(place),
            Self::Chat(reason) => Problem::Chat { line, reason },
        }
    }
}

/// The document of a line; none if the line or the value is empty.
fn piece(line: &[u8], wanted: Wanted<'_>) -> Result<Option<Piece>, Bad> {
    if line.is_empty() {
        return Ok(None);
    }
    let long = line.len() as u64 > LINE_BYTES_MAX;
    if long {
        return Err(Bad::Json(format!(
            "it has more than {LINE_BYTES_MAX} bytes"
        )));
    }
    match parse(line, wanted.column).map_err(|error| Bad::Json(reason(line, &error)))? {
        None => Err(Bad::NoKey),
        Some(None) => Ok(None),
        Some(Some(Document::Messages(messages))) => match wanted.chat {
            Some(chat) => {
                let tokens = chat.encode(messages).map_err(Bad::Chat)?;
                Ok(Some(Piece::Tokens(tokens)))
            }
            None => Err(Bad::Chat(NO_CHAT.to_owned())),
        },
        Some(Some(Document::Tokens(none))) if none.is_empty() && wanted.chat.is_some() => Err(
            Bad::Chat("the conversation has no messages (leave it out)".to_owned()),
        ),
        Some(Some(_)) if wanted.chat.is_some() => Err(Bad::Chat(
            "it is no list of messages, as those before are (move it to data of its own)"
                .to_owned(),
        )),
        Some(Some(Document::Text(text))) => Ok(Some(Piece::Text { text, ends: true })),
        Some(Some(Document::Tokens(tokens))) => match wanted.tokens(&tokens) {
            None => Err(Bad::Tokens),
            Some(Ok(tokens)) => Ok(Some(Piece::Tokens(tokens))),
            Some(Err(at)) => Err(Bad::Token(tokens[at])),
        },
    }
}

/// A line with its line break. Its bytes in the file; no more than one too many are kept.
fn read_line(file: &mut BufReader<File>, line: &mut Vec<u8>) -> io::Result<u64> {
    line.clear();
    let length = file.take(LINE_BYTES_MAX + 1).read_until(b'\n', line)?;
    Ok(length as u64)
}

/// The number of the line that begins at this byte, from 1. Only for errors: it reads all before it.
fn line_number(path: &Path, at: u64) -> io::Result<u64> {
    let mut file = BufReader::new(File::open(path)?.take(at));
    let mut number = 1;
    loop {
        let bytes = file.fill_buf()?;
        if bytes.is_empty() {
            return Ok(number);
        }
        number += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        let length = bytes.len();
        file.consume(length);
    }
}

/// The reason why a line cannot be parsed.
fn reason(line: &[u8], error: &serde_json::Error) -> String {
    if line.trim_ascii_start().starts_with(b"[") {
        return "it begins an array".to_owned();
    }
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    match error.column() {
        0 => text.to_owned(),
        column => format!("{text} at column {column}"),
    }
}

/// The keys of an object, as a list in a sentence.
fn keys(line: &[u8]) -> String {
    let object: BTreeMap<String, IgnoredAny> = serde_json::from_slice(line).unwrap_or_default();
    let quoted = object.keys().map(|key| format!("`{key}`"));
    let mut shown: Vec<String> = quoted.take(KEYS_SHOWN).collect();
    match object.len() {
        0 => return "no keys".to_owned(),
        len if len > KEYS_SHOWN => shown.push("...".to_owned()),
        _ => {}
    }
    shown.join(", ")
}

/// A document as JSON has it.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "the text is neither a string nor a list of tokens"
)]
enum Document {
    Text(String),
    Tokens(Vec<i64>),
    Messages(Vec<Value>),
}

/// A list of something else, where text is wanted.
const NO_CHAT: &str = "it is neither text nor a list of tokens (conversations need `task.kind` = \"causal-lm\" and \
                       data of their own)";

/// The most lines at the beginning of a file that are looked at for what its documents are.
const PROBED_MAX: usize = 1000;

/// Asks the first lines of a file until one answers.
fn probe(path: &Path, ask: impl Fn(&[u8]) -> Option<bool>) -> Option<bool> {
    let mut file = BufReader::new(File::open(path).ok()?);
    let mut line = Vec::new();
    for _ in 0..PROBED_MAX {
        if read_line(&mut file, &mut line).ok()? == 0 {
            break;
        }
        let answer = ask(without_mark(&line).trim_ascii());
        if answer.is_some() {
            return answer;
        }
    }
    None
}

/// The first object has one key and not the other.
pub(super) fn has_only(path: &Path, key: &str, other: &str) -> bool {
    let found = probe(path, |line| {
        let object: BTreeMap<String, IgnoredAny> = serde_json::from_slice(line).ok()?;
        Some(object.contains_key(key) && !object.contains_key(other))
    });
    found.unwrap_or(false)
}

/// Under this key, the first object that has something has a list of objects.
pub(super) fn is_conversation(path: &Path, key: &str) -> bool {
    let found = probe(path, |line| match parse(line, key).ok()?? {
        Some(Document::Messages(messages)) => Some(messages.first()?.kind() == ValueKind::Map),
        // An empty list is one of anything.
        Some(Document::Tokens(tokens)) if tokens.is_empty() => None,
        Some(_) => Some(false),
        None => None,
    });
    found.unwrap_or(false)
}

/// The value under one key of an object, if the key is there; `null` is none. The others are skipped
/// without storing them.
fn parse(line: &[u8], key: &str) -> Result<Option<Option<Document>>, serde_json::Error> {
    let mut json = serde_json::Deserializer::from_slice(line);
    let found = Under(key).deserialize(&mut json)?;
    json.end()?;
    Ok(found)
}

/// The tools that a conversation may use, which templates are not given.
const TOOLS: &str = "tools";

struct Under<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Under<'_> {
    type Value = Option<Option<Document>>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Under<'_> {
    type Value = Option<Option<Document>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<String>()? {
            if key == TOOLS && self.0 == MESSAGES {
                if map.next_value::<Option<IgnoredAny>>()?.is_some() {
                    return Err(A::Error::custom(
                        "it has `tools`, which conversations cannot have here",
                    ));
                }
            } else if key != self.0 {
                map.next_value::<IgnoredAny>()?;
            } else if found.replace(map.next_value()?).is_some() {
                return Err(A::Error::custom(format!("it has `{key}` twice")));
            }
        }
        Ok(found)
    }
}
