//! How many fields a struct may have. One with more usually holds several things that change for different
//! reasons.

use crate::files::{rust_files, text};
use crate::imports::{at_top_level, closing};
use crate::rust_text::code_only;
use crate::sources::is_tests;

/// The directories whose structs are counted.
const COUNTED: [&str; 4] = [
    "protocol/src",
    "strategies/src",
    "node/src/daemon",
    "node/src/bulk",
];

/// The most fields of one struct.
const FIELDS_MAX: usize = 15;

/// Each struct with named fields in a file, and how many it has.
fn structs(source: &str) -> Vec<(String, usize)> {
    let code = code_only(source);
    let mut found = Vec::new();
    for (at, word) in code.match_indices("struct ") {
        let is_item = code[..at].ends_with(|c: char| c.is_whitespace() || c == ')') || at == 0;
        let rest = &code[at + word.len()..];
        let Some(body) = rest.find(['{', ';', '(']).filter(|_| is_item) else {
            continue;
        };
        if !rest[body..].starts_with('{') {
            continue;
        }
        let name: String = rest
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        let inside = &rest[body + 1..body + closing(&rest[body..])];
        let fields = at_top_level(inside);
        let fields = fields.iter().filter(|field| field.contains(':')).count();
        found.push((name, fields));
    }
    found
}

#[test]
fn structs_have_few_fields() {
    let files: Vec<_> = rust_files(&COUNTED);
    let mut bad = Vec::new();
    for path in files.iter().filter(|path| !is_tests(path)) {
        for (name, fields) in structs(&text(path)) {
            if fields > FIELDS_MAX {
                bad.push(format!("{path}: {name} has {fields}"));
            }
        }
    }
    assert!(
        bad.is_empty(),
        "split what has more than {FIELDS_MAX} fields by meaning:\n{}",
        bad.join("\n")
    );
}

#[test]
fn fields_are_counted() {
    let source = "struct A { a: u8, /// b: no\n b: Map<K, V>, c: fn(u8) -> Vec<(u8, u8)>, }\n\
        pub(crate) struct B<T: X> where T: Y {\n    #[serde(default)]\n    x: T,\n}\n\
        struct C(u8, u8);\nstruct D;\nlet constructed = 1;";
    let named = |name: &str, fields| (name.to_owned(), fields);
    assert_eq!(structs(source), [named("A", 3), named("B", 1)]);
}
