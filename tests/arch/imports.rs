//! Finds which file of a crate imports from which other file, by a scan of `use` declarations and
//! of paths in the code.
//!
//! It is not a compiler. It follows `crate::`, `self::`, `super::` and the names of child modules,
//! and it follows a re-export to the file that defines the name. It does not see macros and
//! methods.

use crate::rust_text::code_only;
use std::collections::{BTreeMap, BTreeSet};

/// How many re-exports in a row are followed.
const RE_EXPORTS_MAX: usize = 8;

/// A path as its segments.
type Segments = Vec<String>;

/// One module, which is one file.
#[derive(Debug, Default)]
struct Module {
    /// Names that `use` declarations bring in, with the full path of each.
    names: BTreeMap<String, Segments>,
    /// Full paths that the file imports or writes out.
    uses: Vec<Segments>,
    /// The modules that the file declares.
    children: BTreeSet<String>,
}

/// The modules of one crate by their path below the root.
#[derive(Debug, Default)]
pub(crate) struct Crate {
    modules: BTreeMap<Segments, Module>,
    files: BTreeMap<Segments, String>,
}

impl Crate {
    /// Reads the files of a crate: pairs of the path below `src` and the text.
    pub(crate) fn new<'a>(files: impl IntoIterator<Item = (&'a str, String)>) -> Self {
        let mut this = Self::default();
        for (file, text) in files {
            let at = module_of(file);
            this.modules.insert(at.clone(), Module::read(&at, &text));
            this.files.insert(at, file.to_owned());
        }
        this
    }

    /// For each file the other files that it imports from.
    pub(crate) fn imports(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut all = BTreeMap::new();
        for (at, module) in &self.modules {
            let from = self.files[at].as_str();
            let to = module
                .uses
                .iter()
                .filter_map(|path| self.file_of(path, RE_EXPORTS_MAX));
            let others: BTreeSet<&str> = to.filter(|to| *to != from).collect();
            all.insert(from, others);
        }
        all
    }

    /// The file that defines what a full path names.
    fn file_of(&self, path: &[String], re_exports_left: usize) -> Option<&str> {
        let module = (0..=path.len())
            .rev()
            .find(|n| self.modules.contains_key(&path[..*n]))?;
        let (at, rest) = path.split_at(module);
        let re_exported = rest
            .first()
            .and_then(|name| self.modules[at].names.get(name));
        match re_exported {
            Some(full) if re_exports_left > 0 => {
                let mut full = full.clone();
                full.extend_from_slice(&rest[1..]);
                self.file_of(&full, re_exports_left - 1)
            }
            _ => self.files.get(at).map(String::as_str),
        }
    }
}

impl Module {
    fn read(at: &[String], text: &str) -> Self {
        let code = without_restrictions(&without_tests(&code_only(text)));
        let mut module = Self {
            children: declared(&code),
            ..Self::default()
        };
        let (declarations, rest) = use_declarations(&code);
        for declaration in &declarations {
            for (path, name) in written_out(&declaration.tree) {
                let Some(full) = module.full(at, &path) else {
                    continue;
                };
                // A module that re-exports what is below it does not depend on it.
                if !(declaration.is_public && full.starts_with(at)) {
                    module.uses.push(full.clone());
                }
                module.names.insert(name, full);
            }
        }
        for path in paths(&rest) {
            module.uses.extend(module.full(at, &path));
        }
        module
    }

    /// The path from the root of the crate, or nothing for another crate's name.
    fn full(&self, at: &[String], path: &[String]) -> Option<Segments> {
        let mut full = at.to_vec();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => {
                full.clear();
                rest = &path[1..];
            }
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|segment| segment == "super") {
                    full.pop();
                    rest = &rest[1..];
                }
            }
            child if self.children.contains(child) => {}
            _ => return None,
        }
        full.extend_from_slice(rest);
        Some(full)
    }
}

/// The module that a file below `src` is.
fn module_of(file: &str) -> Segments {
    let stem = file.trim_end_matches(".rs");
    let stem = stem
        .strip_suffix("mod")
        .map_or(stem, |dir| dir.trim_end_matches('/'));
    let parts = stem
        .split('/')
        .filter(|part| !part.is_empty() && *part != "lib" && *part != "main");
    parts.map(str::to_owned).collect()
}

/// The code without the items that only tests compile.
fn without_tests(code: &str) -> String {
    const TESTS: &str = "#[cfg(test)]";
    let mut kept = String::new();
    let mut rest = code;
    while let Some(at) = rest.find(TESTS) {
        kept.push_str(&rest[..at]);
        rest = &rest[at + TESTS.len()..];
        let end = rest.find([';', '{']).unwrap_or(rest.len());
        let closed = match rest[end..].starts_with('{') {
            true => end + closing(&rest[end..]),
            false => end,
        };
        rest = rest.get(closed + 1..).unwrap_or("");
    }
    kept + rest
}

/// The code with `pub(in path)` as `pub`: a module that a name is visible in is no import.
fn without_restrictions(code: &str) -> String {
    let mut parts = code.split("pub(in ");
    let mut kept = parts.next().unwrap_or("").to_owned();
    for part in parts {
        kept.push_str("pub");
        kept.push_str(part.split_once(')').map_or("", |(_, after)| after));
    }
    kept
}

/// Where the brace that opens `text` is closed.
pub(crate) fn closing(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// The modules that a file declares in files of their own.
fn declared(code: &str) -> BTreeSet<String> {
    let lines = code.lines().map(str::trim);
    lines
        .filter_map(|line| line.strip_suffix(';')?.rsplit_once("mod "))
        .filter(|(before, _)| before.is_empty() || before.starts_with("pub"))
        .map(|(_, name)| name.to_owned())
        .collect()
}

/// A `use` declaration: whether others see the names, and what stands after `use`.
struct Declaration {
    is_public: bool,
    tree: String,
}

/// The `use` declarations of a file, and its code without them.
fn use_declarations(code: &str) -> (Vec<Declaration>, String) {
    let mut found = Vec::new();
    let mut rest = String::new();
    let mut open: Option<Declaration> = None;
    for line in code.lines() {
        let trimmed = line.trim();
        let begins = match trimmed.find("use ") {
            Some(0) => Some(false),
            Some(at) if is_visibility(&trimmed[..at]) => Some(true),
            _ => None,
        };
        match (&mut open, begins) {
            (Some(declaration), _) => declaration.tree.push_str(trimmed),
            (None, Some(is_public)) => {
                let at = trimmed.find("use ").unwrap_or(0) + "use ".len();
                let tree = trimmed[at..].to_owned();
                open = Some(Declaration { is_public, tree });
            }
            (None, None) => {
                rest.push_str(line);
                rest.push('\n');
            }
        }
        if trimmed.ends_with(';') {
            found.extend(open.take());
        }
    }
    (found, rest)
}

/// Whether this stands before the `use` of a re-export.
fn is_visibility(text: &str) -> bool {
    let text = text.trim();
    text == "pub" || (text.starts_with("pub(") && text.ends_with(')'))
}

/// Each path of a `use` tree with the name that it brings in.
fn written_out(tree: &str) -> Vec<(Segments, String)> {
    let tree = tree.trim().trim_end_matches(';').trim();
    let Some((head, inside)) = tree.split_once('{') else {
        let (path, name) = tree.split_once(" as ").unwrap_or((tree, ""));
        let mut path: Segments = path
            .split("::")
            .map(|part| part.trim().to_owned())
            .collect();
        if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
            path.pop();
        }
        path.retain(|part| !part.is_empty() && part != "*");
        let last = path.last().cloned().unwrap_or_default();
        let name = if name.is_empty() {
            last
        } else {
            name.trim().to_owned()
        };
        return vec![(path, name)];
    };
    let inside = inside.trim_end().trim_end_matches('}');
    let inside = if inside.matches('{').count() > inside.matches('}').count() {
        format!("{inside}}}")
    } else {
        inside.to_owned()
    };
    let branches = at_top_level(&inside);
    let nested = branches.iter().filter(|branch| !branch.trim().is_empty());
    nested
        .flat_map(|branch| written_out(&format!("{head}{}", branch.trim())))
        .collect()
}

/// The parts between the commas that are in no bracket.
pub(crate) fn at_top_level(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0_i32;
    let mut before = ' ';
    for c in text.chars() {
        match c {
            '{' | '(' | '[' | '<' => depth += 1,
            '>' if before == '-' || before == '=' => {}
            '}' | ')' | ']' | '>' => depth -= 1,
            _ => {}
        }
        before = c;
        match parts.last_mut() {
            Some(part) if c != ',' || depth > 0 => part.push(c),
            _ => parts.push(String::new()),
        }
    }
    parts
}

/// The paths of two or more segments that the code writes out. That of a visibility, as in
/// `pub(in crate::a)`, imports nothing.
fn paths(code: &str) -> Vec<Segments> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let shown = code
        .split("pub(in ")
        .enumerate()
        .map(|(at, part)| match at {
            0 => part,
            _ => part.split_once(')').map_or("", |(_, rest)| rest),
        });
    let shown: String = shown.collect();
    shown
        .split(|c| !is_part(c))
        .map(|word| word.trim_matches(':'))
        .filter(|word| word.contains("::"))
        .map(|word| word.split("::").map(str::to_owned).collect())
        .collect()
}

/// A crate from files and texts.
#[cfg(test)]
fn drawn(files: &[(&'static str, &str)]) -> Crate {
    Crate::new(files.iter().map(|(file, text)| (*file, (*text).to_owned())))
}

#[test]
fn an_import_leads_to_the_file_that_defines_the_name() {
    let krate = drawn(&[
        ("lib.rs", "pub mod a;\npub mod b;"),
        ("a/mod.rs", "mod inner;\npub use inner::Thing;"),
        (
            "a/inner.rs",
            "pub(in crate::a) struct Thing;\nuse crate::b::helper;",
        ),
        (
            "b.rs",
            "use crate::{\n    a::{self, Thing as Other},\n};\nuse std::fmt;",
        ),
    ]);
    let imports = krate.imports();
    assert_eq!(imports["b.rs"], BTreeSet::from(["a/inner.rs", "a/mod.rs"]));
    assert_eq!(imports["a/inner.rs"], BTreeSet::from(["b.rs"]));
    assert!(imports["a/mod.rs"].is_empty(), "a re-export is no import");
}

#[test]
fn paths_in_the_code_and_names_of_the_parent_count_and_tests_do_not() {
    let krate = drawn(&[
        ("lib.rs", "mod a;\nfn f() { a::g(); }"),
        ("a/mod.rs", "mod c;\nuse c::Helper;\npub struct Parent;"),
        (
            "a/c.rs",
            "use super::Parent;\n#[cfg(test)]\nmod tests { use super::*; use crate::f; }",
        ),
    ]);
    let imports = krate.imports();
    assert_eq!(imports["lib.rs"], BTreeSet::from(["a/mod.rs"]));
    assert_eq!(imports["a/mod.rs"], BTreeSet::from(["a/c.rs"]));
    assert_eq!(imports["a/c.rs"], BTreeSet::from(["a/mod.rs"]));
}

#[test]
fn where_a_name_is_visible_is_no_import() {
    let krate = drawn(&[
        ("lib.rs", "mod a;"),
        ("a/mod.rs", "mod b;\nuse b::Thing;"),
        ("a/b.rs", "pub(in crate::a) struct Thing;\nuse crate::f;"),
    ]);
    let imports = krate.imports();
    assert_eq!(imports["a/mod.rs"], BTreeSet::from(["a/b.rs"]));
    assert_eq!(imports["a/b.rs"], BTreeSet::from(["lib.rs"]));
}
