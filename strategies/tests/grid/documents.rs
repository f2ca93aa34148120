//! The lists of presets in docs/strategies.md are those of the registry.
//!
//! `UPDATE_DOCS=1 cargo test -p murmurate-strategies --test grid documents` writes the first one.

use murmurate_strategies::grid::registry::PRESETS;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The lines between which the list of all presets stands.
const BEGIN: &str = "<!-- presets:begin -->\n";
const END: &str = "<!-- presets:end -->\n";

/// The longest line of the list.
const WIDTH: usize = 99;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

/// All presets in the order of the registry, in lines of at most [`WIDTH`].
fn list() -> String {
    let (mut list, mut line) = (String::new(), String::new());
    for (at, preset) in PRESETS.iter().enumerate() {
        let comma = if at + 1 < PRESETS.len() { "," } else { "" };
        let word = format!("`{}`{comma}", preset.name);
        if !line.is_empty() && line.len() + 1 + word.len() > WIDTH {
            list += &line;
            list.push('\n');
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += &word;
    }
    format!("{list}{line}\n")
}

#[test]
fn all_presets_of_the_registry_are_listed() {
    let text = std::fs::read_to_string(path("docs/strategies.md")).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    let list = list();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let whole = format!("{before}{BEGIN}{list}{END}{after}");
        std::fs::write(path("docs/strategies.md"), whole).unwrap();
        return;
    }
    assert!(
        found == list,
        "the list of presets in docs/strategies.md is stale: \
         UPDATE_DOCS=1 cargo test -p murmurate-strategies --test grid documents"
    );
}

#[test]
fn the_table_of_presets_has_a_row_for_each() {
    let text = std::fs::read_to_string(path("docs/strategies.md")).unwrap();
    let (_, rest) = text.split_once("\n## Presets\n").unwrap();
    let rest = rest.split("\n## ").next().unwrap();
    let table = rest
        .split("\n\n")
        .find(|part| part.trim_start().starts_with("| preset"))
        .unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
    let rows: BTreeSet<_> = rows.map(|row| row.split('`').next().unwrap()).collect();
    let presets: BTreeSet<_> = PRESETS.iter().map(|preset| preset.name).collect();
    assert_eq!(rows, presets);
}
