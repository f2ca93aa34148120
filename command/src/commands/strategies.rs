//! `murmurate strategies`: lists the methods as text or JSON. All content comes from
//! `murmurate_strategies::grid`.

use crate::cli::{StrategiesArgs, StrategiesCommand};
use crate::exit::Ended;
use crate::out;
use murmurate_strategies::grid::{Method, MethodKey, catalogue, find};
use std::fmt::Write as _;

/// Width of the names in the list.
const NAME_WIDTH: usize = 24;

pub(crate) fn run(args: &StrategiesArgs) -> anyhow::Result<()> {
    let (methods, text): (_, fn(&[Method]) -> String) = match &args.what {
        None => (catalogue(), list),
        Some(StrategiesCommand::Show { name }) => (
            find(name).map_err(|error| Ended::usage(error.to_string()))?,
            show,
        ),
    };
    match args.json {
        true => out::line(serde_json::to_string_pretty(&methods)?),
        // The text of one method ends in a configuration, which must stay as it is.
        false if args.what.is_some() => out::text(text(&methods)),
        false => out::folded(&text(&methods)),
    }
}

/// One line for each method, under the key that chooses it.
fn list(methods: &[Method]) -> String {
    let (mut text, mut key) = (String::new(), "");
    for method in methods {
        if method.key != key {
            let gap = if key.is_empty() { "" } else { "\n" };
            key = method.key;
            let _ = writeln!(text, "{gap}{key}");
        }
        let _ = write!(text, "  {:NAME_WIDTH$}{}", method.name, method.summary);
        let _ = match method.refused {
            None => writeln!(text),
            Some(refusal) => writeln!(text, " (refused: {})", refusal.reason),
        };
    }
    text
}

/// The full description of each method.
fn show(methods: &[Method]) -> String {
    let each: Vec<_> = methods.iter().map(one).collect();
    each.join("\n")
}

fn one(method: &Method) -> String {
    let mut text = format!("{} = \"{}\"\n", method.key, method.name);
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(text, "  {name:10}{value}");
        }
    };
    line("what", method.summary);
    line("equation", method.equation);
    line("source", method.source);
    line("note", method.note.as_deref().unwrap_or_default());
    line("liars", method.trust.unwrap_or_default());
    let stores = method.state.iter();
    let stores: Vec<_> = stores
        .map(|(name, multiple)| format!("{name} {multiple}"))
        .collect();
    let state = match stores.is_empty() {
        true => "none".to_owned(),
        false => format!(
            "{}, in multiples of 4 bytes x parameters",
            stores.join(", ")
        ),
    };
    line("state", &state);
    line("codec", &method.properties.join("; "));
    for MethodKey {
        name,
        range,
        default,
        about,
    } in &method.keys
    {
        let default = default
            .as_ref()
            .map_or("must be given".to_owned(), |d| format!("default {d}"));
        line("key", &format!("{name}: {about}; {range}; {default}"));
    }
    if let Some(refusal) = method.refused {
        line(
            "refused",
            &format!("{}; {}", refusal.reason, refusal.remedy),
        );
    }
    if let Some(toml) = &method.toml {
        let _ = write!(text, "\n{}", in_a_configuration(toml));
    }
    text
}

/// The tables of a preset as a daemon's configuration has them.
fn in_a_configuration(toml: &str) -> String {
    let mut text = "[strategy]\n".to_owned();
    for line in toml.lines() {
        let _ = match line.strip_prefix('[') {
            Some(rest) => writeln!(text, "[strategy.{rest}"),
            None => writeln!(text, "{line}"),
        };
    }
    text
}
