//! Pages about the source: the first one is short, and the files that they name exist.

use crate::files::{root, text};
use crate::sources::SOURCES;

/// Lines of ARCHITECTURE.md, which a stranger reads once.
const ARCHITECTURE_LINES_MAX: usize = 250;

/// Pages that name files of the source.
const PAGES: [&str; 4] = [
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/decisions.md",
    "docs/rounds.md",
];

/// What a page has between backticks that begins with a folder of sources and is a file.
fn named(page: &str) -> Vec<&str> {
    let quoted = page.split('`').skip(1).step_by(2);
    let of_a_crate = |name: &&str| {
        let mut folders = SOURCES.iter();
        name.ends_with(".rs") && folders.any(|folder| name.starts_with(&format!("{folder}/")))
    };
    quoted.filter(of_a_crate).collect()
}

#[test]
fn the_page_that_strangers_read_first_is_short() {
    let lines = text("ARCHITECTURE.md").lines().count();
    assert!(
        lines <= ARCHITECTURE_LINES_MAX,
        "ARCHITECTURE.md has {lines} lines; move what one subject needs to a page of docs/"
    );
}

#[test]
fn files_that_pages_name_exist() {
    let gone: Vec<String> = PAGES
        .iter()
        .flat_map(|page| {
            let text = text(page);
            let gone = named(&text)
                .into_iter()
                .filter(|file| !root().join(file).is_file());
            gone.map(|file| format!("{page}: {file}"))
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(gone.is_empty(), "no such file:\n{}", gone.join("\n"));
}

#[test]
fn files_are_found_between_backticks() {
    let page = "a `protocol/src/id.rs` b `order.rs` c `docs/x.rs` d `node/src/net/x.rs`";
    assert_eq!(named(page), ["protocol/src/id.rs", "node/src/net/x.rs"]);
}
