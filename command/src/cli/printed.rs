//! Every command line that documents, messages and comments print is one that the command takes.

use super::Cli;
use clap::Parser;
use clap::error::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files with command lines of other versions, made from the command itself, or with names of signed texts.
const LEFT_OUT: [&str; 4] = [
    "CHANGELOG.md",
    "docs/cli.md",
    "docs/wire.md",
    "command/src/cli/printed.rs",
];

/// Placeholders that stand for something with a form.
const PLACEHOLDERS: [(&str, &str); 15] = [
    ("ROUND", "1"),
    ("N", "1"),
    ("R", "1"),
    ("COUNT", "1"),
    ("SECONDS", "1"),
    ("TIME", "5s"),
    ("RATE", "1"),
    ("SHARE", "0.5"),
    ("FACTORx", "1x"),
    ("SHELL", "bash"),
    ("KIND", "none"),
    ("N@MODE", "3@weight"),
    ("CODEC", "int8"),
    ("ROLE", "train"),
    ("MODE", "weight"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The files that git tracks with one of these endings.
fn tracked() -> Vec<String> {
    let endings = [
        "*.md",
        "*.rs",
        "*.service",
        "*.yaml",
        "*.yml",
        "*.sh",
        "*.sbatch",
    ];
    let output = Command::new("git")
        .arg("ls-files")
        .args(endings)
        .current_dir(root())
        .output()
        .unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    let wanted = |path: &&str| !LEFT_OUT.contains(path) && root().join(path).is_file();
    listed.lines().filter(wanted).map(str::to_owned).collect()
}

/// Lines in blocks of shell commands of a document, joined where they go on.
fn blocks(text: &str) -> Vec<String> {
    let (mut found, mut shell, mut open) = (Vec::new(), false, String::new());
    for line in text.lines() {
        if line.starts_with("```") {
            shell = line.starts_with("```sh") && !shell;
        } else if shell {
            open.push_str(line.trim_end_matches('\\'));
            if !line.ends_with('\\') {
                found.push(std::mem::take(&mut open));
            }
        }
    }
    found
}

/// What stands in backquotes. A comment or a literal may go on in the next line.
fn spans(text: &str) -> Vec<String> {
    let mut joined = String::new();
    for line in text.lines() {
        let line = line.trim_start();
        let line = line
            .strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"))
            .unwrap_or(line);
        match line.strip_suffix('\\') {
            Some(literal) => joined.push_str(literal),
            None => joined.extend([line, "\n"]),
        }
    }
    // A span that is not closed in its paragraph is none.
    let paragraphs = joined.split("\n\n").flat_map(|part| part.split("```"));
    let spans = paragraphs.flat_map(|part| part.split('`').skip(1).step_by(2));
    spans.map(|span| span.replace('\n', " ")).collect()
}

/// The words as a shell would split them, up to a comment, a pipe or a redirection.
fn words(line: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => quote = Some(c),
            (c, None) if c.is_whitespace() => all.push(String::new()),
            (c, _) => all.last_mut().unwrap().push(c),
        }
    }
    all.retain(|word| !word.is_empty());
    let end = |word: &String| {
        word.starts_with(['#', '|', '>', '&'])
            || word.starts_with("2>")
            || word == "\\n"
            || word == ";"
    };
    let length = all.iter().position(end).unwrap_or(all.len());
    all.truncate(length);
    all
}

/// A command line with values in place of what stands for them; `None` if it is none of this command.
fn command_line(text: &str) -> Option<Vec<String>> {
    let text = text
        .trim()
        .trim_start_matches("$ ")
        .trim_start_matches("sudo -u murmurate ");
    if !text.starts_with("murmurate ") || text.contains("..") && !text.contains("--split") {
        return None;
    }
    let mut words = words(text);
    for word in &mut words {
        *word = word.trim_matches(['[', ']', ',']).to_owned();
        while let (Some(from), Some(to)) = (word.find('{'), word.find('}')) {
            word.replace_range(from..=to.max(from), "1");
        }
        // Of alternatives the first. The sides of a split are one value.
        if !word.contains('@') {
            word.truncate(word.find('|').unwrap_or(word.len()));
        }
        if let Some((_, value)) = PLACEHOLDERS.iter().find(|(name, _)| name == word) {
            *word = (*value).to_owned();
        }
    }
    Some(words)
}

/// Returns `true` if a part of a command line that is named in a sentence may be this incomplete.
const fn names_a_command(kind: ErrorKind) -> bool {
    use ErrorKind::*;
    matches!(
        kind,
        MissingRequiredArgument
            | MissingSubcommand
            | DisplayHelp
            | DisplayVersion
            | DisplayHelpOnMissingArgumentOrSubcommand
    )
}

/// Returns `true` if the last flag is only named, without its value.
fn ends_in_a_flag(words: &[String]) -> bool {
    words.last().is_some_and(|word| word.starts_with("--"))
}

#[test]
fn every_command_that_is_printed_is_taken() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for file in tracked() {
        let text = std::fs::read_to_string(root().join(&file)).unwrap();
        let lines = blocks(&text);
        for line in lines.iter().chain(&spans(&text)) {
            let Some(words) = command_line(line) else {
                continue;
            };
            count += 1;
            match Cli::try_parse_from(&words) {
                Err(error) if !names_a_command(error.kind()) && !ends_in_a_flag(&words) => {
                    wrong.push(format!(
                        "{file}: {line}\n    {}",
                        error.to_string().lines().next().unwrap()
                    ));
                }
                _ => {}
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "the command does not take:\n{}",
        wrong.join("\n")
    );
    assert!(count > 400, "only {count} command lines were found");
}

#[test]
fn command_lines_are_found_in_documents_and_in_code() {
    let page = "Ask `murmurate why\nDIR slow` of it.\n\n```sh run\nmurmurate log a b \\\n    --merge | less\n```\n";
    assert_eq!(blocks(page), ["murmurate log a b     --merge | less"]);
    assert!(spans(page).contains(&"murmurate why DIR slow".to_owned()));
    let code = "    \"ask `murmurate why round --round {round}` \\\n     what\"\n/// As `murmurate\n/// top`\n";
    assert_eq!(
        spans(code),
        ["murmurate why round --round {round}", "murmurate  top"]
    );
    let line = command_line("murmurate why round --round {round} # ask").unwrap();
    assert_eq!(line.join(" "), "murmurate why round --round 1");
    assert_eq!(command_line("cargo xtask book"), None);
}
