//! Budgets of size. Each is what there is now and may only fall: a feature pays for its lines, and a test whose
//! budget is not used up says so, to be lowered.

use crate::files::{rust_files, text};
use crate::rust_text::code_only;
use crate::sources::{is_tests, lines_without_tests};
use std::collections::{BTreeMap, BTreeSet};

/// Lines of each crate without its tests.
const LINES: [(&str, usize); 15] = [
    ("attach", 3250),
    ("bench", 4050),
    ("command", 5790),
    ("native", 170),
    ("net", 10_570),
    ("node", 38_980),
    ("otlp", 630),
    ("protocol", 43_320),
    ("sim", 12_410),
    ("strategies", 37_350),
    ("survey", 2360),
    ("tasks", 17_720),
    ("top", 3220),
    ("trust", 2030),
    ("xtask", 3140),
];

/// A budget that is not used by more than this is too large.
const LINES_UNUSED_MAX: usize = 300;

/// Files below this many lines, other than roots of modules.
const SHORT: usize = 50;

/// How many short files there are in all crates.
const SHORT_FILES: usize = 19;

/// Files that may hold methods of one state.
const IMPL_FILES_MAX: usize = 5;

/// Modes of the agreement, by a word that names each, and the production files that have the word.
const MODES: [(&str, &[&str], usize); 7] = [
    ("liars", &["liars"], 8),
    ("scoring", &["scoring", "Scoring"], 12),
    ("merges", &["merges", "mergeable", "Merge", "merging"], 12),
    ("two passes", &["passes", "Passes", "second_pass"], 7),
    ("ladder", &["ladder", "Ladder"], 11),
    ("pipeline", &["pipeline", "Pipeline"], 5),
    (
        "grid",
        &[
            "in_column",
            "ColumnShard",
            "GridColumn",
            "mates",
            "Grid",
            "GridMessage",
        ],
        11,
    ),
];

/// The production files of a crate, with their text.
fn production(directory: &str) -> Vec<(String, String)> {
    let files = rust_files(&[&format!("{directory}/src")]);
    let files = files.into_iter().filter(|path| !is_tests(path));
    files
        .map(|path| {
            let whole = text(&path);
            let code = lines_without_tests(&whole).join("\n");
            (path, code)
        })
        .collect()
}

fn all() -> Vec<(String, String)> {
    LINES
        .iter()
        .flat_map(|(directory, _)| production(directory))
        .collect()
}

/// The names of the types that have methods of their own in this code.
fn implemented(code: &str) -> BTreeSet<String> {
    let heads = code.lines().filter_map(|line| line.strip_prefix("impl"));
    let named = heads.filter_map(|head| {
        let head = match head.strip_prefix('<') {
            Some(generic) => generic.split_once("> ")?.1,
            None => head.strip_prefix(' ')?,
        };
        let name = head.split(['{', '<']).next()?.trim();
        (!head.contains(" for ")).then(|| name.to_owned())
    });
    named.collect()
}

/// What is above its budget, and what is so far below that the budget must fall.
fn compare(name: &str, is: usize, budget: usize, unused: usize) -> Option<String> {
    match is {
        is if is > budget => Some(format!("{name}: {is} where {budget} are allowed")),
        is if is + unused < budget => Some(format!("{name}: {is}, lower the budget of {budget}")),
        _ => None,
    }
}

#[test]
fn crates_grow_no_more() {
    let bad: Vec<String> = LINES
        .iter()
        .filter_map(|(directory, budget)| {
            let is = production(directory)
                .iter()
                .map(|(_, code)| code.lines().count())
                .sum();
            compare(directory, is, *budget, LINES_UNUSED_MAX)
        })
        .collect();
    assert!(bad.is_empty(), "lines before tests:\n{}", bad.join("\n"));
}

#[test]
fn short_files_become_fewer() {
    let root = |path: &str| {
        ["/mod.rs", "/lib.rs", "/main.rs"]
            .iter()
            .any(|name| path.ends_with(name))
    };
    let short = all()
        .into_iter()
        .filter(|(path, code)| code.lines().count() < SHORT && !root(path));
    let bad = compare("files", short.count(), SHORT_FILES, 5);
    assert!(
        bad.is_none(),
        "files of less than {SHORT} lines: {}",
        bad.unwrap_or_default()
    );
}

#[test]
fn methods_of_a_state_are_in_few_files() {
    let mut files: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (path, code) in all() {
        let directory = path.split('/').next().unwrap_or_default().to_owned();
        for name in implemented(&code_only(&code)) {
            *files.entry((directory.clone(), name)).or_default() += 1;
        }
    }
    let spread = files
        .into_iter()
        .filter(|(_, count)| *count > IMPL_FILES_MAX);
    let bad: Vec<String> = spread
        .map(|((directory, name), count)| format!("{directory}::{name}: {count} files"))
        .collect();
    assert!(bad.is_empty(), "methods of one state:\n{}", bad.join("\n"));
}

#[test]
fn modes_are_named_in_fewer_files() {
    let all: Vec<String> = all()
        .into_iter()
        .map(|(_, code)| code_only(&code))
        .collect();
    let bad: Vec<String> = MODES
        .iter()
        .filter_map(|(mode, words, budget)| {
            let names = |code: &&String| {
                words
                    .iter()
                    .any(|word| crate::rust_text::has_word(code, word))
            };
            compare(mode, all.iter().filter(names).count(), *budget, 2)
        })
        .collect();
    assert!(
        bad.is_empty(),
        "files that name a mode:\n{}",
        bad.join("\n")
    );
}

#[test]
fn implementations_are_found() {
    let code =
        "impl A {\n}\nimpl<T: B> C<T> {\n}\nimpl D for E {\n}\nimpl<'a> F<'a> {}\n    impl G {}\n";
    let found: Vec<String> = implemented(code).into_iter().collect();
    assert_eq!(found, ["A", "C", "F"]);
    assert_eq!(compare("a", 5, 5, 2), None);
    assert!(compare("a", 6, 5, 2).is_some_and(|line| line.contains("allowed")));
    assert!(compare("a", 2, 5, 2).is_some_and(|line| line.contains("lower")));
}
