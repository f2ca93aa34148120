//! The code of a Rust file without its comments and without the contents of its literals, and a
//! search for words in it.
//!
//! It is not a parser. It knows comments, strings and characters, so that it does not take prose
//! for the use of a name.

/// `source` with comments, strings and characters blanked. Lines stay where they are.
pub(crate) fn code_only(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let after_word = code.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else if let Some(length) = raw_string(rest).filter(|_| !after_word) {
            length
        } else if first == '"' {
            quoted(rest, '"')
        } else if first == '\'' && is_character(rest) {
            quoted(rest, '\'')
        } else {
            code.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        };
        let (blanked, left) = rest.split_at(skipped);
        code.push(' ');
        code.extend(blanked.chars().filter(|c| *c == '\n'));
        rest = left;
    }
    code
}

/// The bytes of the block comment at the start; they nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        let here = &text.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// The bytes of the raw string at the start (`r"…"`, `br#"…"#`), if one starts here.
fn raw_string(text: &str) -> Option<usize> {
    let body = text.strip_prefix('b').unwrap_or(text).strip_prefix('r')?;
    let hashes = body.len() - body.trim_start_matches('#').len();
    let inner = body[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = inner.find(&end).map_or(inner.len(), |at| at + end.len());
    Some(text.len() - inner.len() + length)
}

/// The bytes of the literal at the start, up to its closing quote.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == quote {
            return at + 1;
        }
    }
    text.len()
}

/// Whether the quote at the start opens a character and not a lifetime.
fn is_character(text: &str) -> bool {
    let mut after = text.chars().skip(1);
    match after.next() {
        Some('\\') => true,
        Some(_) => after.next() == Some('\''),
        None => false,
    }
}

/// The names of a `use` or a path written out: `std::{fs, time::Instant}` becomes `std::fs std::time::Instant`.
///
/// Added after the code, so that a rule on `std::fs` also sees it inside braces.
pub(crate) fn with_braces_written_out(code: &str) -> String {
    let mut all = code.to_owned();
    for (at, _) in code.match_indices("::{") {
        let head = &code[..at];
        let from = head
            .rfind(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'))
            .map_or(0, |end| end + 1);
        all.push('\n');
        write_out(&head[from..], &code[at + 3..], &mut all);
    }
    all
}

/// Appends each first-level name in the braces at the start of `inside`, after `prefix`.
fn write_out(prefix: &str, inside: &str, all: &mut String) {
    let mut depth = 0_usize;
    let mut name = String::new();
    for c in inside.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => all.push_str(&format!("{prefix}::{} ", name.trim())),
            _ => {}
        }
        if c == ',' && depth == 0 {
            name.clear();
        } else if depth == 0 && c != '}' {
            name.push(c);
        }
    }
    if !name.trim().is_empty() {
        all.push_str(&format!("{prefix}::{} ", name.trim()));
    }
}

/// Whether `word` stands in `text` as whole names: `HashMap` is not in `MyHashMap`.
pub(crate) fn has_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let opens = !word.starts_with(part) || !text[..at].ends_with(part);
        let closes = !word.ends_with(part) || !text[at + word.len()..].starts_with(part);
        opens && closes
    })
}

#[test]
fn comments_and_literals_are_blanked() {
    let source = "a(); // HashMap\n/* std::fs /* x */ tokio */ b(\"std::net \\\" \");\nlet c = r#\"async \" fn\"#; '\"'; f::<'a>('\\'');";
    let code = code_only(source);
    for word in ["HashMap", "std", "tokio", "async", "net"] {
        assert!(!code.contains(word), "{word} is left in {code}");
    }
    for word in ["a();", "b(", "let c =", "f::<'a>("] {
        assert!(code.contains(word), "{word} is gone from {code}");
    }
    assert_eq!(code.lines().count(), source.lines().count());
}

#[test]
fn code_around_literals_stays() {
    assert!(has_word(
        &code_only("let q = '\"'; HashMap::new()"),
        "HashMap"
    ));
    assert!(has_word(
        &code_only("&'static str; tokio::spawn()"),
        "tokio"
    ));
    assert!(has_word(
        &code_only("\"//\"; SystemTime::now()"),
        "SystemTime"
    ));
}

#[test]
fn braces_are_written_out() {
    let all = with_braces_written_out("use std::{fs, io::{Read, Write}, net::TcpStream};");
    for path in [
        "std::fs",
        "std::io",
        "std::net::TcpStream",
        "io::Read",
        "io::Write",
    ] {
        assert!(has_word(&all, path), "{path} is not in {all}");
    }
}

#[test]
fn words_are_whole() {
    assert!(has_word("use std::fs;", "std::fs"));
    assert!(!has_word("use std::fs2;", "std::fs"));
    assert!(!has_word("struct MyHashMap;", "HashMap"));
    assert!(has_word("burn::tensor", "burn::"));
    assert!(!has_word("auburn::tensor", "burn::"));
}
