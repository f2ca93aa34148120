//! `docs/coverage.md`: which methods of the literature are built. The page is written from
//! `docs/coverage.toml`; the tests check every file, test and choice that it names.
//!
//! `UPDATE_DOCS=1 cargo test -p murmurate-strategies --test grid coverage` writes the page.

use murmurate_strategies::grid::{Strategy, catalogue};
use serde::Deserialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Rows of the catalogue.
const ROWS: u32 = 116;

/// Its groups, with their last rows.
const GROUPS: [(&str, &str, u32); 6] = [
    ("G1", "Synchronization", 28),
    ("G2", "Architecture and topology", 58),
    ("G3", "Quantization", 72),
    ("G4", "Sparsification, low rank, sketches", 95),
    ("G5", "Overlap and scheduling", 105),
    ("G6", "Auxiliary and robustness", 116),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    row: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    number: u32,
    group: String,
    name: String,
    state: State,
    #[serde(default)]
    choose: Vec<String>,
    #[serde(default)]
    files: Vec<String>,
    #[serde(default)]
    tests: Vec<String>,
    #[serde(default)]
    reason: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
enum State {
    #[serde(rename = "built")]
    Built,
    #[serde(rename = "part")]
    Part,
    /// A model in the simulator, which no run can choose.
    #[serde(rename = "simulated")]
    Simulated,
    #[serde(rename = "not built")]
    NotBuilt,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn rows() -> Vec<Row> {
    toml::from_str::<Table>(&text("docs/coverage.toml"))
        .unwrap()
        .row
}

#[test]
fn every_row_is_there_once_and_in_its_group() {
    let rows = rows();
    let numbers: Vec<u32> = rows.iter().map(|row| row.number).collect();
    assert_eq!(numbers, (1..=ROWS).collect::<Vec<_>>());
    for row in &rows {
        let group = GROUPS.iter().find(|(_, _, last)| row.number <= *last);
        assert_eq!(row.group, group.unwrap().0, "row {}", row.number);
    }
}

#[test]
fn what_is_built_has_a_file_and_a_test_and_what_is_not_a_reason() {
    for row in rows() {
        let at = row.number;
        let (file, test) = (!row.files.is_empty(), !row.tests.is_empty());
        let reason = !row.reason.is_empty();
        let whole = match row.state {
            State::Built => file && test && !reason,
            State::Part => file && test && reason,
            State::Simulated => file && test && reason && row.choose.is_empty(),
            State::NotBuilt => !file && !test && reason,
        };
        assert!(whole, "row {at}");
    }
}

#[test]
fn every_file_and_every_test_that_is_named_exists() {
    for row in rows() {
        for file in &row.files {
            assert!(root().join(file).is_file(), "row {}: {file}", row.number);
        }
        for test in &row.tests {
            let (file, name) = test.split_once("::").unwrap();
            let found = text(file).contains(&format!("#[test]\nfn {name}()"))
                || text(file).contains(&format!("#[test]\n    fn {name}()"));
            assert!(found, "row {}: {test}", row.number);
        }
    }
}

#[test]
fn every_choice_that_is_named_can_be_made_or_is_refused_as_the_row_says() {
    let methods = catalogue();
    for row in rows() {
        let mut works = Vec::new();
        for choice in &row.choose {
            let (key, name) = choice.split_once(" = ").unwrap();
            let method = methods.iter().find(|m| m.key == key && m.name == name);
            works.push(match method {
                Some(method) => method.refused.is_none(),
                None => Strategy::preset("diloco")
                    .unwrap()
                    .to_toml()
                    .contains(key.split_once('.').unwrap().1),
            });
            assert!(
                method.is_some() || works.last() == Some(&true),
                "row {}: {choice}",
                row.number
            );
        }
        match row.state {
            State::Built => assert!(works.iter().all(|works| *works), "row {}", row.number),
            State::Simulated | State::NotBuilt => {
                assert!(works.iter().all(|works| !works), "row {}", row.number);
            }
            State::Part => {}
        }
    }
}

/// The page.
fn page(rows: &[Row]) -> String {
    let count = |state| rows.iter().filter(|row| row.state == state).count();
    let mut page = format!(
        "# Coverage\n\nWritten from [coverage.toml](coverage.toml) by `strategies/tests/grid/coverage.rs`; do not edit. Of {ROWS}\n\
         methods of the surveys and their successors {} are built, {} in part, and {} are not.\n\
         {} more are in the simulator only: `murmurate sim survey` models the networks that they need, no run can choose\n\
         them, and they do not count as built.\n\
         `murmurate strategies` lists what you can choose, and what is refused with the reason.\n",
        count(State::Built),
        count(State::Part),
        count(State::NotBuilt),
        count(State::Simulated),
    );
    for (group, title, last) in GROUPS {
        let _ = write!(
            page,
            "\n## {title}\n\n| # | method | state | choose | where | tests | what is missing |\n|---|---|---|---|---|---|---|\n"
        );
        for row in rows
            .iter()
            .filter(|row| row.group == group && row.number <= last)
        {
            line(&mut page, row);
        }
    }
    page
}

fn line(page: &mut String, row: &Row) {
    let state = match row.state {
        State::Built => "built",
        State::Part => "part",
        State::Simulated => "simulated",
        State::NotBuilt => "not built",
    };
    let each = |list: &[String], one: &dyn Fn(&String) -> String| {
        list.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let choose = each(&row.choose, &|choice| format!("`{choice}`"));
    let files = each(&row.files, &|file| {
        let short = file.replace("/src/", "/");
        format!("[{short}](../{file})")
    });
    let tests = each(&row.tests, &|test| {
        let (file, name) = test.split_once("::").unwrap();
        format!("[{name}](../{file})")
    });
    let _ = writeln!(
        page,
        "| {} | {} | {state} | {choose} | {files} | {tests} | {} |",
        row.number, row.name, row.reason
    );
}

#[test]
fn the_page_is_made_of_the_rows() {
    let (page, path) = (page(&rows()), root().join("docs/coverage.md"));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == page,
        "docs/coverage.md is stale: UPDATE_DOCS=1 cargo test -p murmurate-strategies --test grid coverage"
    );
}
