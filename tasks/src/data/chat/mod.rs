//! Conversations: their tokens, of which only what an assistant says is trained.

mod template;

pub(crate) use template::{Template, special_tokens};

use super::tokens::{SEEN, START, Tokens};
use minijinja::Value;
use minijinja::value::ValueKind;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How the conversations of a source become tokens.
#[derive(Debug)]
pub(crate) struct Chat {
    template: Template,
    tokens: Arc<Tokens>,
    /// Tokens of a row: the most of one conversation.
    context: usize,
    read: AtomicU64,
    cut: AtomicU64,
    /// Of those cut, how many the operator was told.
    told: AtomicU64,
}

impl Chat {
    pub(crate) fn new(template: Template, tokens: Arc<Tokens>, context: usize) -> Self {
        Self {
            template,
            tokens,
            context,
            read: AtomicU64::new(0),
            cut: AtomicU64::new(0),
            told: AtomicU64::new(0),
        }
    }

    /// Tokens of a row.
    pub(crate) const fn context(&self) -> usize {
        self.context
    }

    /// The tokens of a conversation with their marks, as many as fit into a row.
    ///
    /// # Errors
    /// Says why it cannot be trained.
    pub(crate) fn encode(&self, messages: Vec<Value>) -> Result<Vec<u32>, String> {
        let messages = checked(messages)?;
        let (text, marked) = self.template.marked(&messages, false)?;
        let (mut tokens, mut places) = self.tokens.encode_with_places(&text)?;
        let all = tokens.len();
        self.read.fetch_add(1, Ordering::Relaxed);
        if all > self.context {
            tokens.truncate(self.context);
            places.truncate(self.context);
            self.cut.fetch_add(1, Ordering::Relaxed);
        }
        let spoken = match self.template.is_marked {
            true => marked,
            false => self.spoken(&messages, &text, places.last().map_or(0, |place| place.end))?,
        };
        for (token, place) in tokens.iter_mut().zip(places) {
            let says = |range: &Range<usize>| place.start < range.end && range.start < place.end;
            if !spoken.iter().any(says) {
                *token |= SEEN;
            }
        }
        if let Some(first) = tokens.first_mut() {
            *first |= START | SEEN;
        }
        if tokens.iter().any(|token| token & SEEN == 0) {
            return Ok(tokens);
        }
        if all > self.context {
            let context = self.context;
            return Err(format!(
                "no answer of the assistant is within the first {context} of the {all} tokens of this \
                 conversation (raise `task.context`, or leave it out)"
            ));
        }
        Err(
            "the conversation has no answer of an assistant, which is what is trained (leave it out)"
                .to_owned(),
        )
    }

    /// The bytes of a text, of the first `end` of them, that an assistant says.
    fn spoken(
        &self,
        messages: &[Value],
        text: &str,
        end: usize,
    ) -> Result<Vec<Range<usize>>, String> {
        let mut spoken: Vec<Range<usize>> = Vec::new();
        for (index, message) in messages.iter().enumerate() {
            // What is behind the row's end needs no place, and finding it would cost the square of the turns.
            if spoken.last().is_some_and(|last| last.end >= end) {
                break;
            }
            if role(message).as_deref() != Some("assistant") {
                continue;
            }
            if index == 0 {
                return Err(
                    "the first message is the assistant's (put the one that it answers in front)"
                        .to_owned(),
                );
            }
            let before = self.template.render(&messages[..index], true)?;
            let after = self.template.render(&messages[..=index], false)?;
            if !(after.starts_with(&before) && text.starts_with(&after)) {
                let number = index + 1;
                return Err(format!(
                    "the template writes message {number} otherwise once others follow, so its tokens cannot \
                     be told (write a conversation for each answer, which ends with it, or take a template \
                     with `{{% generation %}}`)"
                ));
            }
            spoken.push(before.len()..after.len());
        }
        Ok(spoken)
    }

    /// A sentence about conversations that were cut, if there are ten times as many as were told.
    pub(super) fn untold_cut(&self) -> Option<String> {
        let [read, cut] = [&self.read, &self.cut].map(|count| count.load(Ordering::Relaxed));
        if cut == 0 || cut < 10 * self.told.load(Ordering::Relaxed) {
            return None;
        }
        self.told.store(cut, Ordering::Relaxed);
        let context = self.context;
        Some(format!(
            "{cut} of the first {read} conversations have more tokens than `task.context` = {context}: their \
             ends are not trained (raise it to train them)"
        ))
    }
}

fn role(message: &Value) -> Option<String> {
    let role = message.get_attr("role").ok()?;
    role.as_str().map(str::to_owned)
}

/// Names under which messages have the thoughts of an assistant. Templates read the first two.
const THOUGHTS: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

/// Messages as `transformers` gives them to a template: without the keys that have no value, and with the thoughts under
/// both names.
fn checked(messages: Vec<Value>) -> Result<Vec<Value>, String> {
    if messages.is_empty() {
        return Err("the conversation has no messages (leave it out)".to_owned());
    }
    let each = messages.into_iter().enumerate().map(|(index, message)| {
        let number = index + 1;
        if message.kind() != ValueKind::Map || role(&message).is_none() {
            return Err(format!(
                "message {number} is {message}, it must be an object with `role` and `content`"
            ));
        }
        let keys = message.try_iter().map_err(|error| error.to_string())?;
        let there = |key: &Value| {
            let value = message.get_item(key).ok()?;
            (!value.is_none() && !value.is_undefined()).then_some(value)
        };
        let mut pairs: Vec<(Value, Value)> = keys
            .filter_map(|key| Some((key.clone(), there(&key)?)))
            .collect();
        if let Some(thoughts) = THOUGHTS.iter().find_map(|name| there(&Value::from(*name))) {
            let has = |name: &str| there(&Value::from(name)).is_some();
            let both = THOUGHTS[..2].iter().filter(|name| !has(name));
            pairs.extend(both.map(|name| (Value::from(*name), thoughts.clone())));
        }
        Ok(Value::from_pairs(pairs))
    });
    each.collect()
}

#[cfg(test)]
mod tests;
