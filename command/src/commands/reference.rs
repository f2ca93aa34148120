//! The commands that print what the program knows of itself: `strategies` lists the methods, whose descriptions
//! come from `murmurate_strategies::grid`; `init` writes a commented configuration; `completions` and `man` are
//! made from the command line.

use crate::cli::{Cli, CompletionsArgs, InitArgs, ManArgs, StrategiesArgs, StrategiesCommand};
use crate::exit::Ended;
use crate::out;
use anyhow::Context;
use clap::CommandFactory;
use clap_mangen::Man;
use murmurate_node::config::{Replace, write_template};
use murmurate_strategies::grid::{Method, MethodKey, catalogue, find};
use std::fmt::Write as _;

const NAME_WIDTH: usize = 24;

pub(crate) fn strategies(args: &StrategiesArgs) -> anyhow::Result<()> {
    let (methods, text): (_, fn(&[Method]) -> String) = match &args.what {
        None => (catalogue(), list),
        Some(StrategiesCommand::Show { name }) => (
            find(name).map_err(|error| Ended::usage(error.to_string()))?,
            show,
        ),
    };
    if args.json {
        out::line(serde_json::to_string_pretty(&methods)?)
    } else if args.what.is_some() {
        // The text of one method ends in a configuration, which must stay as it is.
        out::text(text(&methods))
    } else {
        out::folded(&text(&methods))
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
    let state = if stores.is_empty() {
        "none".to_owned()
    } else {
        format!(
            "{}, in multiples of 4 bytes x parameters",
            stores.join(", ")
        )
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

pub(crate) fn init(args: &InitArgs) -> anyhow::Result<()> {
    let replace = if args.force {
        Replace::Always
    } else {
        Replace::Never
    };
    write_template(&args.to, replace)?;
    let file = args.to.display();
    out::line(format_args!(
        "wrote {file}; start a daemon with: murmurate run --config {file}"
    ))
}

const NAME: &str = "murmurate";

pub(crate) fn completions(args: &CompletionsArgs) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), NAME, &mut script);
    out::with(|out| out.write_all(&script))
}

pub(crate) fn man(args: &ManArgs) -> anyhow::Result<()> {
    let Some(dir) = &args.out else {
        let mut page = Vec::new();
        Man::new(Cli::command()).render(&mut page)?;
        return out::with(|out| out.write_all(&page));
    };
    let failed = || format!("--out: cannot write to {}", dir.display());
    std::fs::create_dir_all(dir).with_context(failed)?;
    clap_mangen::generate_to(Cli::command(), dir).with_context(failed)?;
    let root = dir.join(format!("{NAME}.1"));
    out::line(format_args!(
        "wrote {} and a page for each subcommand",
        root.display()
    ))
}
