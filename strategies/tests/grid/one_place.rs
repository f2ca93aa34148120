//! An exchange is one place, and so are a codec and a topology: in how many production files each is
//! named.
//!
//! **What counts.** Every `.rs` file in `protocol/src`, `strategies/src`, `sim/src`, `node/src`,
//! `tasks/src` and `net/src` that is not a test, without comments and `mod tests`. A file names
//!
//! - an exchange, when it has its `ExchangeKind`, its `ExchangeMessage`, the module of its state
//!   machine, its mixer, its messages or its method, or its name as a whole string literal;
//! - a codec, when it has its name as a whole string literal, declares its module or names its
//!   entry, and a topology likewise.
//!
//! A folder of `protocol/src/exchange` holds one state machine in several files and counts as one
//! place. All other files count, an exchange's own included.
//!
//! **What does not count.** Messages that advise a method ("use exchange = \"gossip\"") are sentences,
//! and a new method changes none of them. A word that is also another thing's name is listed in
//! [`NAMESAKES`] with what it is there. A codec made of others has a list of the names that it
//! accepts ([`without_choices`]); a new codec changes no such list.

use murmurate_strategies::compress::CODECS;
use murmurate_strategies::grid::registry::EXCHANGES;
use murmurate_strategies::topology::TOPOLOGIES;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Places that may name an exchange: its kind's row, its state machine, its method and the line of
/// that, the list of mixers and its mixer.
const EXCHANGE_MAX: usize = 6;

/// Exchanges that more places name. The center has messages of its own and is a family by itself:
/// one more place is the list of families and their messages.
const MORE: [(&str, usize); 1] = [(CENTER, 7)];

/// The second kind of `parameter-server`, whose peers need not be in the same round.
const CENTER: &str = "parameter-server (center)";

/// Files that name a codec or a topology: its own, and the one that declares its module and lists it.
const METHOD_MAX: usize = 2;

const ROOTS: [&str; 6] = ["protocol", "strategies", "sim", "node", "tasks", "net"];

/// Kinds, and modules beside those of the same name. `parameter-server` is one name for two kinds
/// with a state machine each, so each counts by itself; a place that has the name counts for both.
const KINDS: [(&str, &[&str], &[&str]); 13] = [
    ("none", &["None"], &[]),
    ("gossip", &["Gossip"], &[]),
    ("replicas", &["Replicas"], &[]),
    ("pairs", &["Pairs"], &[]),
    ("push", &["Push"], &[]),
    ("relay-sum", &["RelaySum"], &["relayed"]),
    ("pull", &["Pull"], &[]),
    ("all-reduce", &["AllReduce"], &[]),
    ("gathered", &["Gathered"], &[]),
    ("parameter-server", &["Server"], &["server"]),
    (CENTER, &["Center"], &["center"]),
    ("cells", &["Cells"], &[]),
    ("differences", &["Differences"], &[]),
];

/// Files with the enum of kinds, and with that of their messages: there `Self::` is a kind.
const LISTS: [&str; 2] = ["protocol/src/kind.rs", "protocol/src/exchange/mod.rs"];

/// The name of an exchange in the configuration.
fn name_of(kind: &'static str) -> &'static str {
    kind.split(' ').next().unwrap_or(kind)
}

/// Files that mean another thing by a word.
const NAMESAKES: [(&str, &[&str]); 15] = [
    // The absence of anything: a preset, a correction, a rate limit, a member's fault.
    (
        "none",
        &[
            "net/src/",
            "node/src/",
            "sim/src/",
            "tasks/src/",
            "strategies/src/correct/",
            "strategies/src/grid/registry",
            "strategies/src/grid/presets/",
        ],
    ),
    // What a work order or an event is called.
    ("push", &["sim/src/names.rs"]),
    // A peer's part of an exchange, a key of an outer optimizer, and how members pass partial sums on.
    (
        "pull",
        &["protocol/src/exchange/center", "strategies/src/outer/"],
    ),
    ("relay-sum", &["protocol/src/exchange/agreed"]),
    // Schedules of an all-reduce, and what random scenarios do with them.
    ("binary-tree", &SCHEDULES),
    ("hierarchical", &SCHEDULES),
    ("ring", &SCHEDULES),
    ("torus", &SCHEDULES),
    // Presets.
    ("moshpit", &["strategies/src/grid/presets/"]),
    ("dgc", &["strategies/src/grid/presets/"]),
    ("qsgd", &["strategies/src/grid/presets/"]),
    // A flag of `murmurate local`.
    ("islands", &["node/src/local/options.rs"]),
    // Three codecs that random scenarios of presets use; those of the grid use the list.
    ("f32", &["sim/src/seeds/draw.rs"]),
    ("bf16", &["sim/src/seeds/draw.rs"]),
    ("int8", &["sim/src/seeds/draw.rs"]),
];

const SCHEDULES: [&str; 6] = [
    "protocol/src/exchange/",
    "protocol/src/schedule/",
    "strategies/src/grid/schedule.rs",
    "strategies/src/grid/registry",
    "sim/src/seeds/draw.rs",
    "strategies/src/executor/",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn walk(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => walk(&path, into),
            false => into.push(path),
        }
    }
}

/// Production files: path below the root, and code without comments and tests.
fn production() -> Vec<(String, String)> {
    let mut paths = Vec::new();
    for crate_name in ROOTS {
        walk(&root().join(crate_name).join("src"), &mut paths);
    }
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let name = path.strip_prefix(root()).unwrap();
        let name = name.to_str().unwrap().to_owned();
        let is_test = name.ends_with("tests.rs") || name.contains("/tests/");
        if !name.ends_with(".rs") || is_test {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let lines = code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        files.push((name, lines.collect::<Vec<_>>().join("\n")));
    }
    assert!(files.len() > 300, "{} files", files.len());
    files
}

/// Whether a name stands in code with no letter, digit or underscore beside it.
fn has_word(code: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

/// Whether code has a module, or uses a path through it.
fn has_module(code: &str, module: &str) -> bool {
    has_word(code, &format!("mod {module}")) || {
        let path = format!("{module}::");
        code.match_indices(&path).any(|(at, _)| {
            let before = code[..at].chars().next_back();
            !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '.')
        })
    }
}

fn is_namesake(name: &str, path: &str) -> bool {
    let of = NAMESAKES.iter().find(|(known, _)| *known == name);
    of.is_some_and(|(_, paths)| paths.iter().any(|there| path.starts_with(there)))
}

/// The place of a file: the folder of its state machine, or the file.
fn place(path: &str) -> String {
    let inside = path.strip_prefix("protocol/src/exchange/");
    match inside.and_then(|rest| rest.split_once('/')) {
        Some((folder, _)) => format!("protocol/src/exchange/{folder}"),
        None => path.to_owned(),
    }
}

#[test]
fn an_exchange_is_named_in_few_places() {
    let files = production();
    let listed: Vec<_> = KINDS.iter().map(|(name, ..)| name_of(name)).collect();
    let all: Vec<_> = EXCHANGES.iter().map(|entry| entry.name).collect();
    let of = |names: &[&'static str]| names.iter().copied().collect::<BTreeSet<_>>();
    assert_eq!(of(&listed), of(&all));
    let mut bad = Vec::new();
    for (name, kinds, modules) in KINDS {
        let own = name_of(name).replace('-', "_");
        let modules: Vec<&str> = modules.iter().copied().chain([own.as_str()]).collect();
        let mut places = BTreeSet::new();
        for (path, code) in &files {
            let stem = path.rsplit('/').next().unwrap().trim_end_matches(".rs");
            let ours = path.starts_with("protocol/") || path.starts_with("strategies/");
            let own_file = modules.contains(&stem)
                && (path.contains("/mixers/")
                    || path.contains("/methods/")
                    || path.contains("/wire/"));
            let kind = kinds.iter().any(|kind| {
                let listed = LISTS.contains(&path.as_str());
                has_word(code, &format!("ExchangeKind::{kind}"))
                    || has_word(code, &format!("ExchangeMessage::{kind}"))
                    || (listed && has_word(code, &format!("Self::{kind}")))
            });
            let module = ours && modules.iter().any(|module| has_module(code, module));
            let literal = code.contains(&format!("\"{}\"", name_of(name)));
            let names = own_file || kind || module || literal;
            if names && (kind || !is_namesake(name, path)) {
                places.insert(place(path));
            }
        }
        let more = MORE.iter().find(|(exchange, _)| *exchange == name);
        let most = more.map_or(EXCHANGE_MAX, |(_, most)| *most);
        println!("{name}: {} places", places.len());
        if places.len() > most {
            bad.push(format!("{name}: {} of {most}: {places:#?}", places.len()));
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn a_topology_is_its_file_and_a_line() {
    let files = production();
    for spec in TOPOLOGIES {
        let module = spec.name.replace('-', "_");
        let names = |path: &str, code: &str| {
            let listed = path == "strategies/src/topology/mod.rs" && has_module(code, &module);
            listed || code.contains(&format!("\"{}\"", spec.name))
        };
        let named = files.iter().filter(|(path, code)| names(path, code));
        let named: Vec<_> = named.map(|(path, _)| path.as_str()).collect();
        let named: Vec<_> = named
            .into_iter()
            .filter(|path| !is_namesake(spec.name, path))
            .collect();
        assert!(named.len() <= METHOD_MAX, "{}: {named:?}", spec.name);
    }
}

/// Code without its lists of names to choose from: `[&str; N] = [...];` and `Choice(&[...])`.
fn without_choices(code: &str) -> String {
    let mut code = code.to_owned();
    for (begin, end) in [("[&str; ", "];"), ("Choice(&[", "])")] {
        let mut parts = code.split(begin);
        let first = parts.next().unwrap_or_default().to_owned();
        let rest = parts.map(|part| part.split_once(end).map_or("", |(_, rest)| rest));
        code = first + &rest.collect::<String>();
    }
    code
}

#[test]
fn a_codec_is_its_file_and_its_folders_list() {
    const FOLDER: &str = "strategies/src/compress/";
    let files = production();
    let files: Vec<_> = files
        .into_iter()
        .map(|(path, code)| {
            let code = match path.starts_with(FOLDER) {
                true => without_choices(&code),
                false => code,
            };
            (path, code)
        })
        .collect();
    for spec in CODECS {
        let literal = format!("\"{}\"", spec.name);
        let entry = format!("name: {literal},");
        let mut own = files
            .iter()
            .filter(|(path, code)| path.starts_with(FOLDER) && code.contains(&entry));
        let (own, _) = own.next().expect("a codec's entry is in its own file");
        let module = own.rsplit('/').next().unwrap().trim_end_matches(".rs");
        let entry = format!("&{module}::");
        let names = |path: &str, code: &str| {
            let declares = has_word(code, &format!("mod {module}"));
            let lists = code.match_indices(&entry).any(|(at, _)| {
                code[at..]
                    .lines()
                    .next()
                    .is_some_and(|l| l.contains("SPEC"))
            });
            code.contains(&literal) || path.starts_with(FOLDER) && (declares || lists)
        };
        let named = files.iter().filter(|(path, code)| names(path, code));
        let named: Vec<_> = named
            .map(|(path, _)| path.as_str())
            .filter(|path| !is_namesake(spec.name, path))
            .collect();
        assert_eq!(named.len(), METHOD_MAX, "{}: {named:?}", spec.name);
    }
}
