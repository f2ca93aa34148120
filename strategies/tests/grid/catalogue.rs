//! What the lists say of methods is what the configuration does with them: keys, defaults, ranges.

use murmurate_strategies::grid::{
    LATER, Method, Strategy, StrategyError, catalogue, find, registry,
};
use std::collections::BTreeSet;

/// A preset in which the methods of a key can be chosen.
fn base(method: &Method) -> &'static str {
    match (method.key, method.name) {
        ("overlap.density", _) => "wfbp",
        ("architecture.topology", _) | ("inner.correction", "quasi-global") => "d-psgd",
        ("inner.correction", "exact-diffusion") => "d2",
        ("synchronization.mode", _) => "asp",
        ("inner.optimizer", _) => "diloco",
        (_, "easgd") => "easgd",
        (_, "delayed-nesterov") => "fedbuff",
        (_, "no-lo-co") => "noloco",
        ("aggregation.rule", "clipped-gossip") => "d-psgd",
        ("aggregation.rule", "fed-nova" | "private-mean") => "local-sgd",
        ("aggregation.rule", "gauntlet") => "gauntlet",
        ("aggregation.rule", _)
        | ("compression.codec", "sign-sgd" | "dgc")
        | ("overlap.cut" | "overlap.layers", _) => "bsp",
        _ => "local-sgd",
    }
}

/// A value for a key that must be given.
fn given(key: &str) -> &'static str {
    match key {
        "aggregation.liars" => "1",
        "aggregation.radius" | "aggregation.clip" | "aggregation.noise" => "1.0",
        "architecture.link_mbit" => "[[0, 10, 90], [10, 0, 90], [90, 90, 0]]",
        "synchronization.switch_round"
        | "synchronization.decay_every"
        | "synchronization.loss_every" => "10",
        _ => "0.01",
    }
}

/// The exchange or codec that a method needs beside its preset's.
fn exchange(method: &Method) -> &'static str {
    let says = |what: &str| method.properties.iter().any(|p| p.contains(what));
    if method.key == "overlap.density" {
        "[compression]\ncodec = \"top-k\"\ndensity = 0.01\n"
    } else if method.name == "clipped-gossip" {
        "[architecture]\nexchange = \"pull\"\n"
    } else if says("must be gathered") {
        "[architecture]\nexchange = \"gathered\"\n"
    } else if says("needs a parameter server") {
        "[architecture]\nexchange = \"parameter-server\"\n"
    } else {
        ""
    }
}

/// The method alone, with what must be given, and one key more.
fn text(method: &Method, more: &[(&str, &str)]) -> String {
    let (table, selector) = method.key.split_once('.').unwrap();
    let mut text = exchange(method).to_owned();
    text += &format!("[{table}]\n{selector} = \"{}\"\n", method.name);
    if table == "synchronization" {
        text += "inner_steps = 1\n";
    }
    for key in &method.keys {
        let (_, short) = key.name.split_once('.').unwrap();
        let more = more.iter().find(|(name, _)| *name == key.name);
        match (more, &key.default) {
            (Some((_, value)), _) => text += &format!("{short} = {value}\n"),
            (None, None) => text += &format!("{short} = {}\n", given(&key.name)),
            (None, Some(_)) => {}
        }
    }
    text
}

/// Methods that can be chosen and take keys of their own.
fn with_keys() -> Vec<Method> {
    let mut all = catalogue();
    all.retain(|m| m.refused.is_none() && m.key.contains('.') && m.name != "none");
    all.retain(|m| !matches!(m.key, "architecture.exchange" | "architecture.contribution"));
    // A correction's keys are those of its optimizer.
    all.retain(|m| m.key != "inner.correction");
    // A constant rate is written down only with a warm-up.
    all.retain(|m| m.key != "inner.schedule" || m.name != "constant");
    all
}

#[test]
fn keys_and_defaults_are_those_of_the_configuration() {
    for method in with_keys() {
        let (table, selector) = method.key.split_once('.').unwrap();
        let strategy = Strategy::parse(&text(&method, &[]), Some(base(&method))).unwrap();
        let whole: toml::Table = strategy.to_toml().parse().unwrap();
        let mut written: BTreeSet<String> =
            whole[table].as_table().unwrap().keys().cloned().collect();
        // What is no key of the method: the one that chooses it, and those of all methods.
        for key in [
            selector,
            "exchange",
            "contribution",
            "error_feedback",
            "inner_steps",
        ] {
            written.remove(key);
        }
        if method.key == "synchronization.pace" {
            // All-reduce has a quorum.
            for key in ["enough", "grace", "grace_ms", "fraction"] {
                written.remove(key);
            }
        } else if table == "synchronization" {
            written.remove("pace");
        }
        if method.key == "compression.choose" {
            written.remove("codec");
        }
        if table == "overlap" {
            for key in ["cut", "layers", "stagger", "late_steps"] {
                written.remove(key);
            }
        }
        if matches!(method.key, "inner.correction" | "inner.schedule") {
            // Beside it stands the inner optimizer.
            for key in ["optimizer", "lr", "momentum", "weight_decay"] {
                written.remove(key);
            }
        }
        let listed = method
            .keys
            .iter()
            .map(|key| key.name.split_once('.').unwrap().1.to_owned());
        assert_eq!(
            listed.collect::<BTreeSet<_>>(),
            written,
            "{} {}",
            method.key,
            method.name
        );
        for key in &method.keys {
            let (_, short) = key.name.split_once('.').unwrap();
            let value = key.default.as_deref().unwrap_or_else(|| given(&key.name));
            let value: toml::Table = format!("v = {value}").parse().unwrap();
            assert_eq!(
                whole[table][short], value["v"],
                "{} {}",
                method.name, key.name
            );
        }
    }
}

#[test]
fn what_must_be_given_is_asked_for() {
    for method in with_keys() {
        for key in method.keys.iter().filter(|key| key.default.is_none()) {
            let (table, selector) = method.key.split_once('.').unwrap();
            let mut bare = exchange(&method).to_owned();
            bare += &format!("[{table}]\n{selector} = \"{}\"\n", method.name);
            let others = method.keys.iter().filter(|other| other.name != key.name);
            for other in others.filter(|other| other.default.is_none()) {
                let (_, short) = other.name.split_once('.').unwrap();
                bare += &format!("{short} = {}\n", given(&other.name));
            }
            let error = Strategy::parse(&bare, Some(base(&method))).unwrap_err();
            assert!(
                error.to_string().contains(&key.name),
                "{}: {error}",
                method.name
            );
        }
    }
}

#[test]
fn ranges_are_those_of_the_refusals() {
    for method in with_keys() {
        for key in &method.keys {
            let pair = key
                .default
                .as_ref()
                .is_some_and(|value| value.starts_with('['));
            let bad: &[&str] = match pair {
                true => &["[-1.0, 0.5]", "[0.5, 1.0]"],
                false => &[
                    "-1",
                    "-1.0",
                    "0",
                    "0.0",
                    "3000000000",
                    "3e38",
                    "nan",
                    "\"nothing\"",
                ],
            };
            let errors: Vec<_> = bad
                .iter()
                .filter_map(|value| {
                    let text = text(&method, &[(&key.name, value)]);
                    Strategy::parse(&text, Some(base(&method))).err()
                })
                .map(|error| error.to_string())
                .collect();
            let said = errors
                .iter()
                .any(|error| error.contains(&key.name) && error.contains(&key.range));
            assert!(
                said,
                "{} {}: {} is in none of {errors:?}",
                method.name, key.name, key.range
            );
        }
    }
}

#[test]
fn every_method_has_a_line_an_equation_and_a_source() {
    let mut seen = BTreeSet::new();
    for method in catalogue() {
        for text in [method.name, method.summary, method.equation, method.source] {
            let whole = !text.is_empty() && text.trim() == text && !text.contains('\n');
            assert!(whole, "{} {}: {text:?}", method.key, method.name);
        }
        assert!(
            seen.insert((method.key, method.name)),
            "{} twice",
            method.name
        );
    }
    let lists = registry::ALL
        .iter()
        .map(|(_, list)| list.len())
        .sum::<usize>();
    assert_eq!(seen.len(), lists + LATER.len());
}

#[test]
fn state_is_in_multiples_of_the_parameters() {
    let of = |key: &str, name: &str| {
        let found = find(name).unwrap();
        let method = found.into_iter().find(|method| method.key == key).unwrap();
        method
            .state
            .iter()
            .map(|(_, multiple)| multiple)
            .sum::<f64>()
    };
    assert_eq!(of("outer.optimizer", "average"), 0.0);
    assert_eq!(of("outer.optimizer", "nesterov"), 1.0);
    assert_eq!(of("outer.optimizer", "fed-adam"), 2.0);
    assert_eq!(of("inner.optimizer", "adam-w"), 2.0);
    assert_eq!(of("inner.optimizer", "sgd"), 1.0);
    assert_eq!(of("compression.codec", "int8"), 0.0);
    assert_eq!(of("compression.codec", "top-k"), 1.0);
    // Parameters, gradients, anchor and the outer momentum.
    assert_eq!(of("preset", "diloco"), 4.0);
    // No outer momentum, but what goes between the lanes, and the inner momentum twice.
    assert_eq!(of("preset", "bsp"), 6.0);
    assert_eq!(of("preset", "muloco"), 3.0 + 2.0 + 1.0 + 1.0);
}

#[test]
fn a_preset_is_shown_as_what_makes_it_again() {
    for entry in registry::PRESETS {
        let method = find(entry.name).unwrap();
        let method = method.iter().find(|method| method.key == "preset").unwrap();
        let again: Strategy = method.toml.as_ref().unwrap().parse().unwrap();
        assert_eq!(again, Strategy::preset(entry.name).unwrap());
        assert!(
            method.note.as_ref().is_some_and(|note| !note.is_empty()),
            "{}",
            entry.name
        );
    }
}

#[test]
fn an_unknown_name_is_answered_with_its_nearest() {
    let error = find("dilocco").unwrap_err();
    assert!(matches!(error, StrategyError::UnknownMethod { .. }));
    let text = error.to_string();
    assert!(
        text.contains("`diloco`") && text.contains("`muloco`"),
        "{text}"
    );
}
