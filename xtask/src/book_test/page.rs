//! The steps of a page: commands to run, files to write, and what must be printed.

use crate::command::Failure;

/// The steps of a page, each with the line that it begins at.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Page {
    pub(super) needs: Option<String>,
    pub(super) steps: Vec<(usize, Step)>,
}

#[derive(Debug, PartialEq)]
pub(super) enum Step {
    Run {
        commands: String,
        folder: String,
        background: bool,
        expected: Vec<String>,
    },
    File {
        path: String,
        folder: String,
        text: String,
    },
    Stop {
        folder: String,
        code: i32,
    },
}

/// The words after the language of a block, or in a comment.
#[derive(Default)]
struct Marks {
    run: bool,
    by_hand: bool,
    background: bool,
    expect: bool,
    stop: bool,
    folder: String,
    file: Option<String>,
    code: i32,
}

impl Marks {
    fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Self, Failure> {
        let mut marks = Self::default();
        for word in words {
            match word.split_once('=').unwrap_or((word, "")) {
                ("run", "") => marks.run = true,
                ("by-hand", "") => marks.by_hand = true,
                ("background", "") => marks.background = true,
                ("expect", "") => marks.expect = true,
                ("stop", "") => marks.stop = true,
                ("code", code) => {
                    let wrong = |_| Failure::new(format!("{code} is no exit code"));
                    marks.code = code.parse().map_err(wrong)?;
                }
                ("in", folder) => marks.folder = folder.to_owned(),
                ("file", path) => marks.file = Some(path.to_owned()),
                _ => return Err(Failure::new(format!("unknown mark {word:?}"))),
            }
        }
        Ok(marks)
    }

    fn run(self, commands: String) -> Step {
        Step::Run {
            commands,
            folder: self.folder,
            background: self.background,
            expected: Vec::new(),
        }
    }
}

impl Page {
    /// Reads a page. If it is `strict`, every block of `sh` must say whether it is run.
    pub(super) fn parse(text: &str, strict: bool) -> Result<Self, Failure> {
        let mut page = Self::default();
        let mut lines = text.lines().enumerate();
        while let Some((index, line)) = lines.next() {
            let number = index + 1;
            let at_line = |failure: Failure| failure.within(&format!("line {number}"));
            let trimmed = line.trim_start();
            let indent = line.len() - trimmed.len();
            if let Some(info) = trimmed.strip_prefix("```") {
                let block = block(&mut lines, indent, "```");
                page.block(number, info, block, strict).map_err(at_line)?;
            } else if let Some(comment) = trimmed.strip_prefix("<!-- ") {
                let (first, text) = match comment.split_once(" -->") {
                    Some((first, _)) => (first, String::new()),
                    None => (comment, block(&mut lines, 0, "-->")),
                };
                page.comment(number, first, text).map_err(at_line)?;
            }
        }
        Ok(page)
    }

    fn block(&mut self, at: usize, info: &str, text: String, strict: bool) -> Result<(), Failure> {
        let mut words = info.split_whitespace();
        let language = words.next().unwrap_or_default();
        let marks = Marks::parse(words)?;
        if strict && language == "sh" && !marks.run && !marks.by_hand {
            return Err(Failure::new("mark the block: `sh run` or `sh by-hand`"));
        }
        if marks.run {
            self.steps.push((at, marks.run(text)));
        } else if let Some(path) = marks.file {
            let folder = marks.folder;
            self.steps.push((at, Step::File { path, folder, text }));
        } else if marks.expect {
            let Some((_, Step::Run { expected, .. })) = self.steps.last_mut() else {
                return Err(Failure::new("`expect` stands behind no command"));
            };
            expected.extend(text.lines().map(str::to_owned));
        }
        Ok(())
    }

    fn comment(&mut self, at: usize, first: &str, text: String) -> Result<(), Failure> {
        let mut words = first.split_whitespace();
        match words.next() {
            Some("needs") => self.needs = Some(words.collect::<Vec<_>>().join(" ")),
            Some("run") => {
                let step = Marks::parse(words)?.run(text);
                self.steps.push((at, step));
            }
            Some("stop") => {
                let Marks { folder, code, .. } = Marks::parse(words)?;
                self.steps.push((at, Step::Stop { folder, code }));
            }
            // Any other comment is for readers of the source.
            _ => {}
        }
        Ok(())
    }
}

/// The lines up to the one that begins with `end`, without their common indent.
fn block<'a>(
    lines: &mut impl Iterator<Item = (usize, &'a str)>,
    indent: usize,
    end: &str,
) -> String {
    let mut text = String::new();
    for (_, line) in lines {
        if line.trim_start().starts_with(end) {
            break;
        }
        let margin = line.len() - line.trim_start().len();
        text += &line[margin.min(indent)..];
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(text: &str) -> Vec<Step> {
        let page = Page::parse(text, true).unwrap();
        page.steps.into_iter().map(|(_, step)| step).collect()
    }

    #[test]
    fn commands_files_and_promises_are_found() {
        let text = "<!-- needs true -->\n1. text\n   ```sh run in=a background\n   one\n     two\n   ```\n\
                    ```text expect\nready\n```\n```toml file=node.toml\n[run]\n```\n\
                    <!-- run\ncp a b\n-->\n```sh by-hand\nssh b\n```\n<!-- stop in=a code=130 -->\n<!-- a note -->\n";
        let run = |commands: &str, folder: &str, background, expected: &[&str]| Step::Run {
            commands: commands.to_owned(),
            folder: folder.to_owned(),
            background,
            expected: expected.iter().map(|line| (*line).to_owned()).collect(),
        };
        let file = Step::File {
            path: "node.toml".to_owned(),
            folder: String::new(),
            text: "[run]\n".to_owned(),
        };
        let stop = Step::Stop {
            folder: "a".to_owned(),
            code: 130,
        };
        assert_eq!(
            steps(text),
            [
                run("one\n  two\n", "a", true, &["ready"]),
                file,
                run("cp a b\n", "", false, &[]),
                stop,
            ]
        );
        assert_eq!(
            Page::parse(text, true).unwrap().needs.as_deref(),
            Some("true")
        );
    }

    #[test]
    fn a_tutorial_says_of_every_command_whether_it_is_run() {
        let failure = Page::parse("\n```sh\nls\n```\n", true).unwrap_err();
        assert!(failure.to_string().starts_with("line 2: mark the block"));
        assert!(
            Page::parse("```sh\nls\n```\n", false)
                .unwrap()
                .steps
                .is_empty()
        );
        assert!(Page::parse("```sh runs\n```\n", false).is_err());
        assert!(Page::parse("```text expect\na\n```\n", false).is_err());
    }
}
