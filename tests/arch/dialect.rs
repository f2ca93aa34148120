//! Phrases that make a reader stop and decode.
//!
//! Scanned are Markdown, Rust (names of functions too) and TOML. Code spans in backquotes and this
//! file do not count: that is where a phrase is quoted.

use crate::files::{files_ending_in, rust_files, text};
use crate::rust_text::has_word;
use crate::sources::SOURCES;

/// Phrases that no sentence may have. `*` stands for one to four words without punctuation between
/// them; `_` in a name counts as a space.
const PHRASES: [&str; 22] = [
    "so many",
    "so much",
    "the own",
    "an own",
    "nobody",
    "nobody's",
    "whoever",
    "everybody",
    "everybody's",
    "who has another",
    "comes to nothing",
    "came to nothing",
    "what * of it",
    "as * alike",
    "what lies",
    "what became of",
    "what becomes of",
    "was brought",
    "through with",
    "ever more seldom",
    "in the place of",
    "anew",
];

/// Lines of documentation that may begin with "Whether" or say "what is" where a noun would name the thing.
const VAGUE_DOCS_MAX: usize = 3;

/// The most words that `*` stands for.
const GAP: usize = 4;

/// A word in lower case, or a punctuation mark as `None`, with its line.
type Token = (usize, Option<String>);

/// The words of a file. Marks of comments and tables are gone, so that a phrase may cross lines.
fn tokens(path: &str, source: &str) -> Vec<Token> {
    let only_comments_have_spans = !path.ends_with(".md");
    let mut tokens = Vec::new();
    let mut fenced = false;
    for (index, line) in source.lines().enumerate() {
        let trimmed = line.trim_start();
        fenced ^= trimmed.starts_with("```");
        let comment = trimmed.starts_with("//") || trimmed.starts_with('#');
        let spans = !fenced && (comment || !only_comments_have_spans);
        let prose = trimmed.trim_start_matches(['/', '!', '#', '-', '>', ' ']);
        let prose = if spans {
            without_spans(prose)
        } else {
            prose.to_owned()
        };
        if prose.trim().is_empty() {
            tokens.push((index + 1, None));
        }
        push_words(index + 1, &prose, &mut tokens);
    }
    tokens
}

/// The line with every code span replaced by one word that is in no phrase.
fn without_spans(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    let closed = parts.len() % 2 == 1;
    let mut prose = String::new();
    for (index, part) in parts.iter().enumerate() {
        let last = index + 1 == parts.len();
        if index % 2 == 0 || (last && !closed) {
            prose.push_str(part);
        } else {
            prose.push_str("0code");
        }
    }
    prose
}

/// Appends the words and marks of one line.
fn push_words(line: usize, prose: &str, tokens: &mut Vec<Token>) {
    let mut word = String::new();
    for c in prose.chars().chain([' ']) {
        if c.is_alphanumeric() || c == '\'' {
            word.extend(c.to_lowercase());
            continue;
        }
        if !word.is_empty() {
            tokens.push((line, Some(std::mem::take(&mut word))));
        }
        if !c.is_whitespace() && c != '_' && c != '-' {
            tokens.push((line, None));
        }
    }
}

/// Whether `phrase` begins at the start of `tokens`.
fn begins(phrase: &[&str], tokens: &[Token]) -> bool {
    let Some((first, rest)) = phrase.split_first() else {
        return true;
    };
    if *first == "*" {
        return (1..=GAP)
            .take_while(|skipped| {
                tokens
                    .get(skipped - 1)
                    .is_some_and(|(_, word)| word.is_some())
            })
            .any(|skipped| begins(rest, &tokens[skipped..]));
    }
    tokens
        .first()
        .is_some_and(|(_, word)| word.as_deref() == Some(*first))
        && begins(rest, &tokens[1..])
}

/// The lines on which `phrase` begins.
fn lines_with(phrase: &str, tokens: &[Token]) -> Vec<usize> {
    let phrase: Vec<&str> = phrase.split(' ').collect();
    (0..tokens.len())
        .filter(|at| begins(&phrase, &tokens[*at..]))
        .map(|at| tokens[at].0)
        .collect()
}

/// A line of documentation that names its subject by a question.
fn is_vague(line: &str) -> bool {
    let line = line.trim_start();
    let doc = ["/// ", "//! "].iter();
    let Some(doc) = doc.filter_map(|mark| line.strip_prefix(mark)).next() else {
        return false;
    };
    let lower = doc.to_lowercase();
    let mut phrases = ["what is", "what was", "what it"].iter();
    doc.starts_with("Whether ") || phrases.any(|phrase| has_word(&lower, phrase))
}

#[test]
fn documentation_names_its_subjects() {
    let mut vague = Vec::new();
    for path in rust_files(&SOURCES) {
        let text = text(&path);
        let lines = text.lines().enumerate().filter(|(_, line)| is_vague(line));
        vague.extend(lines.map(|(at, line)| format!("{path}:{}: {}", at + 1, line.trim())));
    }
    assert!(
        vague.len() <= VAGUE_DOCS_MAX,
        "name the thing, in {} lines where {VAGUE_DOCS_MAX} are allowed:\n{}",
        vague.len(),
        vague.join("\n")
    );
    assert!(is_vague("    /// Whether it is here."));
    assert!(is_vague("//! Of a round, what is decided."));
    assert!(!is_vague("/// Somewhat is; what its owner has."));
    assert!(!is_vague("// Whether a comment has it is of no matter."));
}

#[test]
fn no_phrase_of_the_dialect_comes_back() {
    let files = files_ending_in(&["."], &[".md", ".rs", ".toml"]);
    let sources: Vec<(String, Vec<Token>)> = files
        .into_iter()
        .filter(|path| path != "tests/arch/dialect.rs")
        .map(|path| {
            let tokens = tokens(&path, &text(&path));
            (path, tokens)
        })
        .collect();
    assert!(!sources.is_empty(), "no file is scanned");
    let mut failures = Vec::new();
    for phrase in PHRASES {
        let places: Vec<String> = sources
            .iter()
            .flat_map(|(path, tokens)| {
                lines_with(phrase, tokens)
                    .into_iter()
                    .map(move |line| format!("  {path}:{line}"))
            })
            .collect();
        if !places.is_empty() {
            failures.push(format!("{phrase:?} stands in\n{}", places.join("\n")));
        }
    }
    assert!(
        failures.is_empty(),
        "say it in plain English:\n{}",
        failures.join("\n")
    );
}

#[test]
fn phrases_are_found_across_lines_and_in_names() {
    let source = "/// Waits for so\n/// many peers.\nfn so_many() {}\n";
    assert_eq!(lines_with("so many", &tokens("a.rs", source)), [1, 3]);
    let source = "what a peer makes\nof it. What? Of it.";
    assert_eq!(lines_with("what * of it", &tokens("a.md", source)), [1]);
}

#[test]
fn quoted_phrases_and_parts_of_words_do_not_count() {
    assert!(lines_with("so many", &tokens("a.md", "avoid `so many`")).is_empty());
    assert!(lines_with("the own", &tokens("a.md", "the owner")).is_empty());
    let paragraphs = tokens("a.md", "it is so\n\nmany are here");
    assert!(lines_with("so many", &paragraphs).is_empty());
}
