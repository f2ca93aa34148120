//! How many fields a struct may have. One with more usually holds several things that change for different
//! reasons.

use crate::files::{rust_files, text};
use crate::imports::{at_top_level, closing};
use crate::rust_text::code_only;
use crate::sources::{SOURCES, is_tests};

/// The most fields of one struct.
const FIELDS_MAX: usize = 15;

/// Structs that have more, and how many; they may only become fewer and smaller. Those of configurations, command
/// lines and reports are as long as what they list.
const KNOWN: [(&str, usize); 25] = [
    ("bench/src/net/report.rs: WayReport", 21),
    ("net/src/congestion/bbr3/machine.rs: Machine", 28),
    ("net/src/quic/config.rs: Config", 17),
    ("net/src/quic/shared.rs: Shared", 17),
    ("node/src/api/about.rs: About", 19),
    ("node/src/api/status.rs: Status", 48),
    ("node/src/api/swarm.rs: DaemonView", 23),
    ("node/src/api/swarm.rs: PeerView", 16),
    ("node/src/config/overrides.rs: Overrides", 22),
    ("node/src/config/raw.rs: RawDaemon", 17),
    ("node/src/local/options.rs: LocalOptions", 32),
    ("node/src/local/report.rs: Total", 17),
    ("node/src/local/swarm.rs: Swarm", 21),
    ("node/src/metrics/line.rs: Line", 18),
    ("node/src/net/config.rs: NetConfig", 19),
    ("node/src/net/swarm.rs: Network", 23),
    ("node/src/report.rs: NodeReport", 26),
    ("node/src/store/checkpoint/manifest.rs: Manifest", 16),
    ("sim/src/fault/raw.rs: RawFault", 19),
    ("sim/src/flight.rs: Transfer", 16),
    ("sim/src/host.rs: Slot", 19),
    ("sim/src/report.rs: Counters", 42),
    ("sim/src/scenario/network.rs: RawNetwork", 16),
    ("sim/src/scenario/spec.rs: NetworkSpec", 16),
    ("sim/src/swarm.rs: Swarm", 24),
];

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
    let files: Vec<_> = rust_files(&SOURCES);
    let mut large = Vec::new();
    for path in files.iter().filter(|path| !is_tests(path)) {
        for (name, fields) in structs(&text(path)) {
            if fields > FIELDS_MAX {
                large.push((format!("{path}: {name}"), fields));
            }
        }
    }
    large.sort();
    let known = KNOWN.map(|(name, fields)| (name.to_owned(), fields));
    assert_eq!(
        large, known,
        "split what has more than {FIELDS_MAX} fields by meaning; what is split leaves the list"
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
