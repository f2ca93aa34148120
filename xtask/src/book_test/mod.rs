//! Runs the tutorials: every command in a block that is marked `run`, in a fresh folder for each page, with
//! the command that was built. Lines that a page promises must come.
//!
//! | in a page | meaning |
//! |---|---|
//! | a block of `sh run` | run by bash; fails if a command fails. `in=DIR` runs it in that folder |
//! | `sh run background` | runs on, as in a terminal of its own; the next step waits for the expected lines |
//! | `sh by-hand` | not run: what the reader does once, or on another machine |
//! | `text expect` | lines that the block before prints, in this order; other lines may stand between |
//! | `toml file=PATH` | a file that the reader writes; any language |
//! | `<!-- run ... -->` | as `sh run`, but not shown: what the reader does by hand |
//! | `<!-- stop in=DIR -->` | Ctrl+C in the terminal of that folder; the command must end with 0, or with `code=N` |
//! | `<!-- needs COMMAND -->` | the page is skipped if this command fails |

mod expected;
mod page;
mod session;

use crate::command::{Failure, murmurate, root, run, target};
use crate::links::files;
use page::{Page, Step};
use session::Session;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Pages of this folder say of each command whether it is run.
const TUTORIALS: &str = "docs/tutorials/";

pub(crate) fn check() -> Result<(), Failure> {
    of_pages(&[])
}

/// Runs the pages whose paths contain one of these words, or all pages if there are none.
pub(crate) fn of_pages(words: &[&str]) -> Result<(), Failure> {
    let program = built()?;
    let pages = files("docs/*.md")?;
    let mut commands = 0;
    let chosen = |path: &&str| words.is_empty() || words.iter().any(|word| path.contains(word));
    for path in pages.iter().map(String::as_str).filter(chosen) {
        let strict = path.starts_with(TUTORIALS);
        let page = Page::parse(&fs::read_to_string(path)?, strict)
            .map_err(|failure| failure.within(path))?;
        if !page.steps.is_empty() {
            commands += tried(path, &page, &program).map_err(|failure| failure.within(path))?;
        }
    }
    if commands == 0 {
        return Err(Failure::new("no page has a command that can be run"));
    }
    println!("{commands} blocks of commands ran");
    Ok(())
}

/// Runs a page. Returns how many blocks of commands it has.
fn tried(path: &str, page: &Page, program: &Path) -> Result<usize, Failure> {
    let began = Instant::now();
    let name = path.replace(['/', '.'], "-");
    let home = target().join("xtask").join("book-test").join(name);
    let mut session = Session::new(&home, program)?;
    if let Some(command) = &page.needs
        && !session.succeeds(command)?
    {
        println!("{path}: skipped, because this fails: {command}");
        return Ok(0);
    }
    let mut commands = 0;
    for (line, step) in &page.steps {
        let at_line = |failure: Failure| failure.within(&format!("line {line}"));
        commands += usize::from(matches!(step, Step::Run { .. }));
        session.perform(step).map_err(at_line)?;
    }
    session.end()?;
    let seconds = began.elapsed().as_secs_f64();
    println!("{path}: {commands} blocks in {seconds:.1} s");
    Ok(commands)
}

/// The command `murmurate`, built now: in the release profile if another step did so before.
fn built() -> Result<PathBuf, Failure> {
    let folder = |profile: &str| root().join(murmurate(profile));
    let release = folder("release");
    if release.exists() {
        run("cargo", &["build", "--release", "-p", "murmurate"])?;
        Ok(release)
    } else {
        run("cargo", &["build", "-p", "murmurate"])?;
        Ok(folder("debug"))
    }
}
