//! Which words each crate's Rust files may contain. `deps` checks dependencies.

use crate::files::{root, rust_files, text};
use crate::rust_text::{code_only, has_word, with_braces_written_out};

/// The directories with code of the crates.
pub(crate) const SOURCES: [&str; 15] = [
    "protocol/src",
    "trust/src",
    "strategies/src",
    "native/src",
    "tasks/src",
    "attach/src",
    "sim/src",
    "survey/src",
    "net/src",
    "otlp/src",
    "node/src",
    "top/src",
    "bench/src",
    "command/src",
    "xtask/src",
];

/// Maximum number of lines of a file before its tests.
const MOST_LINES: usize = 1000;

/// Marks of unfinished work. Each is written in two halves, so that this file does not contain
/// them.
const UNDONE: [&str; 6] = [
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("dbg", "!("),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("HA", "CK"),
];

/// The forbidden words in the code of a file.
fn words_in(source: &str, forbidden: &[&'static str]) -> Vec<&'static str> {
    let code = with_braces_written_out(&code_only(source));
    let mut found = forbidden.to_vec();
    found.retain(|word| has_word(&code, word));
    found
}

/// The marks of undone work anywhere in a file, comments too.
fn undone_in(source: &str) -> Vec<&'static str> {
    let mut found = UNDONE.to_vec();
    found.retain(|mark| has_word(source, mark));
    found
}

/// The lines of a file but for the items at the margin that are compiled for tests alone, wherever they stand.
pub(crate) fn lines_without_tests(source: &str) -> Vec<&str> {
    let mut kept = Vec::new();
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        if line == "#[cfg(test)]" {
            let ends = |line: &&str| line.ends_with(';') || line.ends_with('}');
            lines.find(|line| ends(line) && !line.starts_with([' ', '#']));
        } else {
            kept.push(line);
        }
    }
    kept
}

/// A file with tests only: by its name, or because the file above it has it in tests only.
pub(crate) fn is_tests(path: &str) -> bool {
    path.ends_with("/tests.rs")
        || path.contains("/tests/")
        || path.starts_with("tests/")
        || is_module_of_tests(path)
}

fn is_module_of_tests(path: &str) -> bool {
    let module = path.strip_suffix("/mod.rs");
    let module = module.unwrap_or_else(|| path.trim_end_matches(".rs"));
    let Some((folder, name)) = module.rsplit_once('/') else {
        return false;
    };
    let above = [format!("{folder}.rs"), format!("{folder}/mod.rs")];
    let above = above.iter().find(|path| root().join(path).exists());
    above.is_some_and(|above| has_in_tests(&text(above), name) || is_module_of_tests(above))
}

/// A module that a file declares for tests only.
fn has_in_tests(source: &str, module: &str) -> bool {
    ["mod", "pub(crate) mod", "pub(super) mod"]
        .iter()
        .any(|word| source.contains(&format!("#[cfg(test)]\n{word} {module};")))
}

/// Fails with every file under `directory` whose code contains a forbidden word. Skips files for
/// which `except` is true.
fn forbid(directory: &str, except: impl Fn(&str) -> bool, words: &[&'static str], why: &str) {
    let files = rust_files(&[directory]);
    assert!(!files.is_empty(), "no Rust file under {directory}");
    let bad: Vec<String> = files
        .iter()
        .filter(|path| !except(path))
        .map(|path| (path, words_in(&text(path), words)))
        .filter(|(_, found)| !found.is_empty())
        .map(|(path, found)| format!("{path}: {}", found.join(", ")))
        .collect();
    assert!(bad.is_empty(), "{why}:\n{}", bad.join("\n"));
}

#[test]
fn protocol_does_no_io_and_reads_no_clock() {
    let words = [
        "Instant",
        "SystemTime",
        "HashMap",
        "HashSet",
        "std::net",
        "std::fs",
        "std::thread",
        "std::env",
        "async fn",
        "tokio",
    ];
    forbid(
        "protocol/src",
        |_| false,
        &words,
        "time, bytes and order come to the peer as inputs; a replay must give the same outputs",
    );
}

#[test]
fn strategies_does_no_io_and_reads_no_clock() {
    let words = [
        "Instant",
        "SystemTime",
        "HashMap",
        "HashSet",
        "std::fs",
        "std::net",
        "async fn",
        "tokio",
    ];
    forbid(
        "strategies/src",
        |_| false,
        &words,
        "the arithmetic must give the same bits on every machine",
    );
}

#[test]
fn sim_runs_in_virtual_time() {
    let why = "a simulated run has no other time than its queue's";
    forbid("sim/src", |_| false, &["SystemTime", "std::thread"], why);
    forbid(
        "sim/src",
        |path| path == "sim/src/run.rs",
        &["Instant"],
        "only run.rs may look at a clock, for how long a run took",
    );
}

#[test]
fn node_does_not_see_burn() {
    forbid(
        "node/src",
        |_| false,
        &["burn::", "use burn"],
        "the daemon trains through murmurate-tasks only",
    );
}

#[test]
fn every_file_says_what_it_is() {
    let files = rust_files(&["."]);
    let bad: Vec<_> = files
        .iter()
        .filter(|path| !text(path).starts_with("//! "))
        .collect();
    assert!(bad.is_empty(), "begin with a `//!` header: {bad:#?}");
}

#[test]
fn files_are_short() {
    let bad: Vec<_> = rust_files(&SOURCES)
        .into_iter()
        .filter(|path| !is_tests(path))
        .map(|path| (lines_without_tests(&text(&path)).len(), path))
        .filter(|(lines, _)| *lines > MOST_LINES)
        .collect();
    assert!(
        bad.is_empty(),
        "split what is over {MOST_LINES} lines: {bad:#?}"
    );
}

#[test]
fn nothing_is_left_undone() {
    let bad: Vec<_> = rust_files(&["."])
        .into_iter()
        .map(|path| (undone_in(&text(&path)), path))
        .filter(|(found, _)| !found.is_empty())
        .collect();
    assert!(bad.is_empty(), "finish it or take it out: {bad:#?}");
}

#[test]
fn every_directory_is_looked_at() {
    for directory in SOURCES {
        let lib = format!("{directory}/lib.rs");
        let main = format!("{directory}/main.rs");
        let files = rust_files(&[directory]);
        assert!(
            files.contains(&lib) || files.contains(&main),
            "{directory} has no root"
        );
    }
}

#[test]
fn the_scanner_finds_forbidden_words() {
    let bad = "use std::{fs, time::Instant};\nasync fn f() { tokio::spawn(g()).await; }";
    let words = [
        "std::fs", "Instant", "async fn", "tokio", "std::net", "HashMap",
    ];
    assert_eq!(
        words_in(bad, &words),
        ["std::fs", "Instant", "async fn", "tokio"]
    );
    let good = "// no HashMap, no std::net\nlet s = \"Instant\"; // tokio";
    assert!(words_in(good, &words).is_empty());
}

#[test]
fn the_scanner_finds_undone_work() {
    for mark in UNDONE {
        assert_eq!(undone_in(&format!("fn f() {{}} // {mark}")), [mark]);
    }
    assert!(undone_in("struct Hacksaw; // the todo list").is_empty());
}

#[test]
fn tests_do_not_count_as_lines() {
    let lines = |source| lines_without_tests(source).len();
    assert_eq!(lines("a\nb\n#[cfg(test)]\nmod tests {}\n"), 2);
    assert_eq!(lines("a\n    #[cfg(test)]\n    fn b() {}\n"), 3);
    let between = "a;\n#[cfg(test)]\nmod tests;\nb;\n#[cfg(test)]\n#[c]\nmod d {\n    e;\n}\nf;\n";
    assert_eq!(lines_without_tests(between), ["a;", "b;", "f;"]);
    assert!(is_tests("node/src/bulk/tests.rs"));
    assert!(!is_tests("node/src/local/plan.rs"));
    let above = "mod a;\n#[cfg(test)]\nmod laws;\n";
    assert!(has_in_tests(above, "laws"));
    assert!(!has_in_tests(above, "a"));
}
