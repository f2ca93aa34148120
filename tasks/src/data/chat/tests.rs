//! Conversations against `transformers`: tests/fixtures/chat/make.py made the expected results.

use super::*;
use crate::data::number;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
struct Expected {
    plain: Vec<Plain>,
    templates: BTreeMap<String, Vec<Outcome>>,
}

/// A text without a template.
#[derive(Deserialize)]
struct Plain {
    text: String,
    ids: Vec<u32>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Outcome {
    Refused {
        error: String,
    },
    Made {
        text: String,
        prompted: String,
        ids: Vec<u32>,
        /// The tokens that are trained.
        mask: Option<Vec<Range<usize>>>,
    },
}

#[derive(Deserialize)]
struct Conversation {
    messages: Vec<Value>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/chat")
}

fn conversations() -> Vec<Vec<Value>> {
    let text = std::fs::read_to_string(folder().join("conversations.jsonl")).unwrap();
    let each = text.lines().map(|line| {
        let read: Conversation = serde_json::from_str(line).unwrap();
        read.messages
    });
    each.collect()
}

fn expected() -> Expected {
    let text = std::fs::read(folder().join("expected.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn chat(name: &str, tokenizer: &str, context: usize) -> Chat {
    let file = folder().join("templates").join(format!("{name}.jinja"));
    let special = [("bos_token", "<s>"), ("eos_token", "</s>")];
    let special = special.map(|(name, token)| (name, token.to_owned()));
    let text = std::fs::read_to_string(file).unwrap();
    let mut template = Template::new(&text, special.into()).unwrap();
    // The moment of the fixture.
    template.set_clock(|format| match format.as_str() {
        "%d %b %Y" => "05 Mar 2026".to_owned(),
        "%Y-%m-%d %H:%M" => "2026-03-05 08:07".to_owned(),
        other => panic!("{other}"),
    });
    let tokens = Tokens::read(&folder().join(tokenizer)).unwrap();
    Chat::new(template, Arc::new(tokens), context)
}

/// Runs of tokens that are trained. The first one is not, because nothing is in front of it.
fn trained(tokens: &[u32]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match runs.last_mut() {
            _ if token & SEEN != 0 => {}
            Some(run) if run.end == at => run.end += 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}

/// Ranges that touch are one.
fn joined(ranges: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = Vec::new();
    for range in ranges.iter().filter(|range| !range.is_empty()) {
        match all.last_mut() {
            Some(last) if last.end >= range.start => last.end = range.end,
            _ => all.push(range.clone()),
        }
    }
    all
}

#[test]
fn texts_tokens_and_what_is_trained_are_those_of_transformers() {
    let (conversations, expected) = (conversations(), expected());
    assert_eq!((conversations.len(), expected.templates.len()), (50, 5));
    for (name, outcomes) in &expected.templates {
        for tokenizer in ["tokenizer.json", "tokenizer-bos.json"] {
            let chat = chat(name, tokenizer, usize::MAX);
            for (index, (messages, outcome)) in conversations.iter().zip(outcomes).enumerate() {
                follows(&chat, messages, outcome, &format!("{name} {index}"));
            }
        }
    }
}

fn follows(chat: &Chat, messages: &[Value], outcome: &Outcome, place: &str) {
    let messages = checked(messages.to_vec()).unwrap();
    let rendered = chat.template.render(&messages, false);
    match outcome {
        Outcome::Refused { error } => {
            let found = rendered.unwrap_err();
            assert!(found.contains(error), "{place}: {found}");
        }
        Outcome::Made {
            text,
            prompted,
            ids,
            mask,
        } => {
            assert_eq!(rendered.as_deref(), Ok(text.as_str()), "{place}");
            let found = chat.template.render(&messages, true);
            assert_eq!(found.as_deref(), Ok(prompted.as_str()), "{place}");
            let (found, _) = chat.tokens.encode_with_places(text).unwrap();
            assert_eq!(found, *ids, "{place}");
            let encoded = chat.encode(messages);
            let Some(mask) = mask.as_ref().map(|mask| joined(mask)) else {
                assert!(encoded.is_err(), "{place}");
                return;
            };
            if mask.is_empty() {
                let error = encoded.unwrap_err();
                assert!(
                    error.contains("no answer of an assistant"),
                    "{place}: {error}"
                );
                return;
            }
            let encoded = encoded.unwrap();
            assert_eq!(trained(&encoded), mask, "{place}");
            let numbers: Vec<u32> = encoded.iter().map(|&token| number(token)).collect();
            assert_eq!(numbers, *ids, "{place}");
        }
    }
}

#[test]
fn texts_without_a_template_are_encoded_as_transformers_does() {
    for tokenizer in ["tokenizer.json", "tokenizer-bos.json"] {
        let tokens = Tokens::read(&folder().join(tokenizer)).unwrap();
        for plain in expected().plain {
            assert_eq!(tokens.encode(&plain.text).unwrap(), plain.ids);
        }
    }
}

fn messages(json: &str) -> Vec<Value> {
    serde_json::from_str(json).unwrap()
}

#[test]
fn what_cannot_be_trained_says_why() {
    let chat = chat("chatml", "tokenizer.json", 60);
    let refused = |json: &str| chat.encode(messages(json)).unwrap_err();
    let asked = "{\"role\": \"user\", \"content\": \"Who?\"}";
    for (json, reason) in [
        ("[]".to_owned(), "no messages"),
        (
            "[3]".to_owned(),
            "message 1 is 3, it must be an object with `role`",
        ),
        ("[{\"content\": \"x\"}]".to_owned(), "message 1 is"),
        (format!("[{asked}]"), "no answer of an assistant"),
    ] {
        let found = refused(&json);
        assert!(found.contains(reason), "{found}");
    }
    let long = "a long question ".repeat(40);
    let late = format!(
        "[{{\"role\": \"user\", \"content\": \"{long}\"}}, {{\"role\": \"assistant\", \"content\": \"No.\"}}]"
    );
    assert!(refused(&late).contains("no answer of the assistant is within the first 60 of the"));
    assert_eq!(chat.untold_cut(), Some(
        "1 of the first 2 conversations have more tokens than `task.context` = 60: their ends are not trained (raise it \
         to train them)".to_owned()
    ));
}

#[test]
fn a_template_that_does_not_end_is_stopped() {
    let endless = "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}";
    let template = Template::new(endless, BTreeMap::new()).unwrap();
    let error = template.render(&messages("[]"), false).unwrap_err();
    assert!(error.contains("fuel"), "{error}");
}

#[test]
fn a_folder_gives_the_template_or_says_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let error = Template::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("there is no chat template"), "{error}");
    let config = dir.path().join("tokenizer_config.json");
    std::fs::write(
        &config,
        "{\"bos_token\": {\"content\": \"<s>\"}, \"eos_token\": \"</s>\", \"chat_template\": [{\"name\": \
         \"tools\", \"template\": \"no\"}, {\"name\": \"default\", \"template\": \"{{ bos_token }}{{ eos_token \
         }}{{ unk_token }}\"}]}",
    )
    .unwrap();
    let template = Template::open(dir.path()).unwrap();
    assert_eq!(template.render(&[], false).as_deref(), Ok("<s></s>"));
    std::fs::write(
        &config,
        "{\"chat_template\": [{\"name\": \"tools\", \"template\": \"no\"}]}",
    )
    .unwrap();
    let error = Template::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("one that is called \"default\""), "{error}");
    std::fs::write(dir.path().join("chat_template.jinja"), "{{ messages").unwrap();
    let error = Template::open(dir.path()).unwrap_err().to_string();
    assert!(
        error.contains("chat_template.jinja: line 1 of the template: "),
        "{error}"
    );
}

#[test]
fn a_text_cannot_mark_itself_as_an_answer() {
    let json = "[{\"role\": \"user\", \"content\": \"a \u{fdd0}b\u{fdd1}\"}, {\"role\": \"assistant\", \
                \"content\": \"c\"}]";
    let marked = chat("generation", "tokenizer.json", 400);
    let error = marked.encode(messages(json)).unwrap_err();
    assert!(error.contains("U+FDD0"), "{error}");
    // Other templates do not know the marks: these are two characters like others.
    let plain = chat("chatml", "tokenizer.json", 400);
    let text = plain.template.render(&messages(json), false).unwrap();
    assert!(text.contains("a \u{fdd0}b\u{fdd1}"), "{text}");
}

#[test]
fn thoughts_have_both_names_that_templates_read() {
    let text = "{% for m in messages %}{{ m.reasoning_content }}/{{ m.thinking }} {% endfor %}";
    let template = Template::new(text, BTreeMap::new()).unwrap();
    let said = |key: &str| {
        let json = format!("[{{\"role\": \"assistant\", \"content\": null, \"{key}\": \"hm\"}}]");
        template
            .render(&checked(messages(&json)).unwrap(), false)
            .unwrap()
    };
    assert_eq!(
        ["reasoning_content", "thinking", "reasoning"].map(said),
        ["hm/hm "; 3]
    );
    assert_eq!(said("other"), "/ ");
}
