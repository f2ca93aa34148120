//! Circles of files: files of a crate that import each other, directly or through others.
//!
//! Two files are in one circle if each reaches the other by imports (see `imports`). A declaration
//! of a module, and a re-export of names below it, do not count as imports. Files of tests do not
//! count. There are no circles.

use crate::files::{rust_files, text};
use crate::imports::Crate;
use crate::sources::{SOURCES, is_tests};
use std::collections::{BTreeMap, BTreeSet};

/// Each file with the files that it imports from.
type Imports<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// All files that one file reaches.
fn reached<'a>(imports: &Imports<'a>, from: &'a str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut left = vec![from];
    while let Some(file) = left.pop() {
        for next in imports.get(file).into_iter().flatten() {
            if seen.insert(*next) {
                left.push(next);
            }
        }
    }
    seen
}

/// The circles, each with its files.
fn circles<'a>(imports: &Imports<'a>) -> Vec<BTreeSet<&'a str>> {
    let all: BTreeMap<&str, BTreeSet<&str>> = imports
        .keys()
        .map(|file| (*file, reached(imports, file)))
        .collect();
    let mut found: Vec<BTreeSet<&str>> = Vec::new();
    for (file, to) in &all {
        let known = found.iter().any(|circle| circle.contains(file));
        if to.contains(file) && !known {
            let back = |other: &&&str| all[**other].contains(file);
            found.push(to.iter().filter(back).copied().collect());
        }
    }
    found
}

/// The imports between the files of a circle, one a line.
fn ties(imports: &Imports<'_>, circle: &BTreeSet<&str>) -> String {
    let from = imports.iter().filter(|(from, _)| circle.contains(*from));
    let lines = from.map(|(from, to)| {
        let inside: Vec<_> = to.intersection(circle).copied().collect();
        format!("  {from} -> {}", inside.join(", "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn no_files_import_each_other() {
    let mut listed = String::new();
    for directory in SOURCES {
        let files: Vec<String> = rust_files(&[directory]);
        let below = format!("{directory}/");
        let read = files
            .iter()
            .filter(|path| !is_tests(path))
            .filter_map(|path| Some((path.strip_prefix(&below)?, text(path))));
        let krate = Crate::new(read);
        let imports = krate.imports();
        for circle in circles(&imports) {
            listed.push_str(&format!("{directory}:\n{}\n", ties(&imports, &circle)));
        }
    }
    assert_eq!(
        listed, "",
        "files import each other; move what both use to a file below them"
    );
}

#[test]
fn circles_are_found() {
    let imports = BTreeMap::from([
        ("a", BTreeSet::from(["b"])),
        ("b", BTreeSet::from(["c"])),
        ("c", BTreeSet::from(["a", "d"])),
        ("d", BTreeSet::from(["e"])),
        ("e", BTreeSet::new()),
        ("f", BTreeSet::from(["g"])),
        ("g", BTreeSet::from(["f", "a"])),
    ]);
    let found = circles(&imports);
    assert_eq!(
        found,
        [BTreeSet::from(["a", "b", "c"]), BTreeSet::from(["f", "g"])]
    );
    assert!(ties(&imports, &found[0]).contains("c -> a"));
    assert!(!ties(&imports, &found[0]).contains('d'));
}
