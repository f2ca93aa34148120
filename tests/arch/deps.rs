//! Which crate may depend on which, checked on the resolved graph of `cargo metadata`.

use crate::files::{root, text};
use cargo_metadata::{CargoOpt, DependencyKind, Metadata, MetadataCommand, PackageId};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Each package's name to those it depends on. Two versions of a package are one.
type Graph = BTreeMap<String, BTreeSet<String>>;

const OURS: [&str; 16] = [
    "murmurate-protocol",
    "murmurate-trust",
    "murmurate-strategies",
    "murmurate-native",
    "murmurate-tasks",
    "murmurate-attach",
    "murmurate-sim",
    "murmurate-survey",
    "murmurate-net",
    "murmurate-otlp",
    "murmurate-node",
    "murmurate-top",
    "murmurate-bench",
    "murmurate",
    "murmurate-tests",
    "xtask",
];

/// The target of this machine. Other targets may link other packages.
fn host() -> String {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let output = Command::new(rustc).arg("-vV").output().expect("rustc runs");
    let text = String::from_utf8(output.stdout).expect("rustc prints UTF-8");
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.expect("rustc -vV names its host").to_owned()
}

/// The workspace's normal dependencies, neither of tests nor of build scripts, with its default features.
fn graph() -> Graph {
    let mut command = MetadataCommand::new();
    command.manifest_path(root().join("Cargo.toml"));
    command.other_options(vec!["--locked".into(), "--filter-platform".into(), host()]);
    let metadata = command
        .exec()
        .expect("cargo metadata runs with Cargo.lock as it is");
    normal_edges(&metadata)
}

/// The edges of the resolved graph which are linked into the package.
fn normal_edges(metadata: &Metadata) -> Graph {
    let names: BTreeMap<&PackageId, String> = metadata
        .packages
        .iter()
        .map(|package| (&package.id, package.name.to_string()))
        .collect();
    let resolve = metadata.resolve.as_ref().expect("asked with dependencies");
    let mut graph = Graph::new();
    for node in &resolve.nodes {
        let edges = graph.entry(names[&node.id].clone()).or_default();
        for dependency in &node.deps {
            let mut kinds = dependency.dep_kinds.iter();
            if kinds.any(|kind| kind.kind == DependencyKind::Normal) {
                edges.insert(names[&dependency.pkg].clone());
            }
        }
    }
    graph
}

/// The first way found from `from` to each package it depends on, itself included.
fn ways(graph: &Graph, from: &str) -> BTreeMap<String, String> {
    let mut ways = BTreeMap::from([(from.to_owned(), from.to_owned())]);
    let mut left = vec![from.to_owned()];
    while let Some(name) = left.pop() {
        for next in graph.get(&name).into_iter().flatten() {
            if !ways.contains_key(next) {
                ways.insert(next.clone(), format!("{} -> {next}", ways[&name]));
                left.push(next.clone());
            }
        }
    }
    ways
}

/// Whether a package is of a family: `libp2p` and `libp2p-swarm` are both of `libp2p`.
fn is_of(package: &str, family: &str) -> bool {
    let rest = package.strip_prefix(family);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// The ways from a package to anything of a forbidden family or to one of ours it may not use.
fn forbidden_ways(graph: &Graph, from: &str, families: &[&str], ours: &[&str]) -> Vec<String> {
    assert!(graph.contains_key(from), "{from} is not in the workspace");
    ways(graph, from)
        .into_iter()
        .filter(|(to, _)| {
            let other_of_ours = is_of(to, "murmurate") && !ours.contains(&to.as_str());
            to != from && (other_of_ours || families.iter().any(|family| is_of(to, family)))
        })
        .map(|(_, way)| way)
        .collect()
}

/// Our packages which depend directly on one of a family.
fn direct_users<'a>(graph: &'a Graph, family: &str) -> Vec<&'a str> {
    OURS.into_iter()
        .filter_map(|ours| graph.get_key_value(ours))
        .filter(|(_, to)| to.iter().any(|to| is_of(to, family)))
        .map(|(ours, _)| ours.as_str())
        .collect()
}

/// Fails when a package reaches what it must not.
fn forbid(from: &str, families: &[&str], ours: &[&str]) {
    let bad = forbidden_ways(&graph(), from, families, ours);
    assert!(
        bad.is_empty(),
        "{from} must not depend on:\n{}",
        bad.join("\n")
    );
}

#[test]
fn protocol_depends_on_none_of_ours() {
    forbid("murmurate-protocol", &["tokio", "burn", "libp2p"], &[]);
}

#[test]
fn trust_depends_on_protocol_only() {
    forbid(
        "murmurate-trust",
        &["tokio", "burn", "libp2p"],
        &["murmurate-protocol"],
    );
}

#[test]
fn strategies_depends_on_protocol_only() {
    forbid(
        "murmurate-strategies",
        &["tokio", "burn", "libp2p"],
        &["murmurate-protocol"],
    );
}

#[test]
fn tasks_knows_no_network() {
    forbid(
        "murmurate-tasks",
        &["tokio", "libp2p"],
        &[
            "murmurate-protocol",
            "murmurate-strategies",
            "murmurate-native",
        ],
    );
}

#[test]
fn unsafe_code_depends_on_none_of_ours_and_is_in_one_crate() {
    forbid("murmurate-native", &["tokio", "libp2p", "burn"], &[]);
    let manifests = OURS.map(|name| {
        let name = name.strip_prefix("murmurate-").unwrap_or(name);
        let folder = if name == "murmurate" { "command" } else { name };
        (folder, text(&format!("{folder}/Cargo.toml")))
    });
    for (folder, manifest) in manifests {
        // The workspace forbids unsafe code.
        let forbids = manifest.contains("[lints]\nworkspace = true\n");
        assert_eq!(forbids, folder != "native", "{folder}/Cargo.toml");
    }
}

#[test]
fn attach_knows_neither_network_nor_burn() {
    forbid(
        "murmurate-attach",
        &["tokio", "libp2p", "burn"],
        &["murmurate-protocol", "murmurate-strategies"],
    );
}

#[test]
fn sim_knows_neither_network_nor_burn() {
    forbid(
        "murmurate-sim",
        &["tokio", "libp2p", "burn"],
        &["murmurate-protocol", "murmurate-strategies"],
    );
}

#[test]
fn survey_depends_on_none_of_ours() {
    forbid("murmurate-survey", &["tokio", "libp2p", "burn"], &[]);
}

#[test]
fn otlp_depends_on_none_of_ours_and_brings_no_second_network() {
    let families = ["tokio", "libp2p", "burn", "hyper", "reqwest", "tonic"];
    forbid("murmurate-otlp", &families, &[]);
    // A daemon that was not built for it has none of it.
    let graph = graph();
    assert!(!ways(&graph, "murmurate").contains_key("opentelemetry"));
    assert_eq!(direct_users(&graph, "opentelemetry"), ["murmurate-otlp"]);
}

#[test]
fn net_knows_neither_training_nor_the_rest_of_ours_but_protocol() {
    forbid("murmurate-net", &["burn"], &["murmurate-protocol"]);
}

#[test]
fn the_commands_of_the_repository_build_in_seconds() {
    // CI starts with them, before anything else is built.
    let families = ["tokio", "burn", "libp2p", "quinn", "syn"];
    forbid("xtask", &families, &[]);
}

#[test]
fn the_daemon_knows_neither_the_simulator_nor_its_commands() {
    let below = [
        "murmurate-protocol",
        "murmurate-trust",
        "murmurate-strategies",
        "murmurate-native",
        "murmurate-tasks",
        "murmurate-attach",
        "murmurate-net",
    ];
    forbid("murmurate-node", &[], &below);
    let with_node = [&below[..], &["murmurate-node"]].concat();
    forbid("murmurate-top", &[], &with_node);
    forbid("murmurate-bench", &[], &with_node);
}

#[test]
fn the_network_quinn_and_burn_have_few_users() {
    let graph = graph();
    let network = [
        "murmurate-net",
        "murmurate-node",
        "murmurate-bench",
        "murmurate",
    ];
    assert_eq!(direct_users(&graph, "libp2p"), network);
    let mut asynchronous = network.to_vec();
    asynchronous.insert(2, "murmurate-top");
    assert_eq!(direct_users(&graph, "tokio"), asynchronous);
    for terminal in ["ratatui", "crossterm"] {
        assert_eq!(direct_users(&graph, terminal), ["murmurate-top"]);
    }
    // The benchmark compares our connections with quinn's own.
    let quinn = ["murmurate-net", "murmurate-bench"];
    assert_eq!(direct_users(&graph, "quinn"), quinn);
    assert_eq!(direct_users(&graph, "burn"), ["murmurate-tasks"]);
}

/// The part of `deny.toml` that this file checks.
#[derive(serde::Deserialize)]
struct Deny {
    licenses: Licenses,
    bans: Bans,
}

#[derive(serde::Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(serde::Deserialize)]
struct Bans {
    deny: Vec<Banned>,
}

#[derive(serde::Deserialize)]
struct Banned {
    name: String,
}

/// Packages that name a file in place of an expression, and the licence that cargo-deny reads in it.
const LICENCE_FILES: [(&str, &str); 1] = [("cfg_block", "Apache-2.0")];

/// cargo-deny checks this and more, but is compiled for minutes: CI runs it once a week.
#[test]
fn every_dependency_has_an_allowed_licence_and_source() {
    let text = std::fs::read_to_string(root().join("deny.toml")).expect("deny.toml is there");
    let deny: Deny = toml::from_str(&text).expect("deny.toml is as cargo-deny reads it");
    let allowed: Vec<spdx::Licensee> = deny
        .licenses
        .allow
        .iter()
        .map(|licence| spdx::Licensee::parse(licence).expect("an SPDX licence"))
        .collect();
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .features(CargoOpt::AllFeatures)
        .other_options(vec!["--locked".into(), "--filter-platform".into(), host()])
        .exec()
        .expect("cargo metadata runs with Cargo.lock as it is");
    let others = metadata
        .packages
        .iter()
        .filter(|package| package.source.is_some());
    let mut bad = Vec::new();
    for package in others {
        let name = &package.name;
        if deny
            .bans
            .deny
            .iter()
            .any(|banned| banned.name == name.as_str())
        {
            bad.push(format!("{name} is banned"));
        }
        if !package
            .source
            .as_ref()
            .is_some_and(|source| source.is_crates_io())
        {
            bad.push(format!("{name} does not come from crates.io"));
        }
        let in_file = LICENCE_FILES
            .iter()
            .find(|(named, _)| *named == name.as_str())
            .map(|(_, licence)| *licence);
        let licence = package.license.as_deref().or(in_file).unwrap_or("none");
        let may =
            spdx::Expression::parse_mode(licence, spdx::ParseMode::LAX).is_ok_and(|licence| {
                licence.evaluate(|wanted| allowed.iter().any(|licensee| licensee.satisfies(wanted)))
            });
        if !may {
            bad.push(format!("{name} has the licence {licence}"));
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn the_workspace_has_no_other_member() {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo metadata runs");
    let members: BTreeSet<String> = metadata
        .workspace_packages()
        .iter()
        .map(|package| package.name.to_string())
        .collect();
    let known = OURS.map(str::to_owned);
    assert_eq!(
        members,
        BTreeSet::from(known),
        "give a new member its rules here and its place in ARCHITECTURE.md"
    );
}

/// A graph from lines of `from: to to`.
fn drawn(lines: &[&str]) -> Graph {
    let edges = lines.iter().filter_map(|line| line.split_once(':'));
    edges
        .map(|(from, to)| {
            let to = to.split_whitespace().map(str::to_owned).collect();
            (from.to_owned(), to)
        })
        .collect()
}

#[test]
fn a_long_way_is_found() {
    let graph = drawn(&[
        "murmurate-sim: serde helper murmurate-protocol",
        "helper: tokio-util",
        "tokio-util: tokio helper",
    ]);
    let bad = forbidden_ways(&graph, "murmurate-sim", &["tokio"], &["murmurate-protocol"]);
    assert_eq!(
        bad,
        [
            "murmurate-sim -> helper -> tokio-util -> tokio",
            "murmurate-sim -> helper -> tokio-util"
        ]
    );
    let bad = forbidden_ways(&graph, "murmurate-sim", &["libp2p"], &[]);
    assert_eq!(bad, ["murmurate-sim -> murmurate-protocol"]);
}

#[test]
fn direct_users_are_found() {
    let graph = drawn(&[
        "murmurate-node: libp2p-stream murmurate-tasks",
        "murmurate-tasks: burn",
        "murmurate-sim: burner",
    ]);
    assert_eq!(direct_users(&graph, "libp2p"), ["murmurate-node"]);
    assert_eq!(direct_users(&graph, "burn"), ["murmurate-tasks"]);
}
