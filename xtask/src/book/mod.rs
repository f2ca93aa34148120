//! The book: the pages that `docs/SUMMARY.md` lists, built by mdBook, with every link and anchor checked.
//!
//! Pages stay where they are, and their links work on a code host too. So the step copies them to the
//! target directory, each to the same place, and builds the book there.

mod html;
mod markdown;

use crate::command::{Failure, fresh, run, target};
use crate::links::files;
use crate::tool::Tool;
use markdown::{links, normal, relinked};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const SUMMARY: &str = "docs/SUMMARY.md";
const CONFIG: &str = "docs/book.toml";

/// Its server and its watcher are not needed.
pub(crate) const MDBOOK: Tool = Tool {
    name: "mdbook",
    version: "0.5.4",
    features: &["--no-default-features", "--features", "search"],
};

pub(crate) fn check() -> Result<(), Failure> {
    let mdbook = MDBOOK.installed()?;
    let book = build(&mdbook)?;
    let (pages, links) = html::check(&book)?;
    println!("{pages} pages, {links} links: {}", book.display());
    Ok(())
}

/// Builds the book and returns the folder with its pages.
fn build(mdbook: &Path) -> Result<PathBuf, Failure> {
    let chapters = chapters()?;
    let stage = target().join("book");
    fresh(&stage)?;
    let source = stage.join("src");
    fs::create_dir_all(&source)?;
    fs::copy(CONFIG, stage.join("book.toml"))?;
    let summary = fs::read_to_string(SUMMARY)?;
    let summary = relinked(&summary, |link| Some(normal("docs", link)));
    fs::write(source.join("SUMMARY.md"), summary)?;
    for chapter in &chapters {
        copy_page(chapter, &chapters, &source)?;
    }
    run(mdbook, &["build", &stage.to_string_lossy()])?;
    Ok(stage.join("book"))
}

/// The pages of the book as paths from the root. Every page of `docs` must be among them.
fn chapters() -> Result<BTreeSet<String>, Failure> {
    let summary = fs::read_to_string(SUMMARY)?;
    let chapters: BTreeSet<String> = links(&summary).map(|link| normal("docs", link)).collect();
    let pages = files("docs/*.md")?;
    let missing: Vec<String> = pages
        .into_iter()
        .filter(|page| page != SUMMARY && !chapters.contains(page))
        .collect();
    if missing.is_empty() {
        Ok(chapters)
    } else {
        let missing = missing.join(", ");
        Err(Failure::new(format!("{SUMMARY} does not list {missing}")))
    }
}

/// Copies a page, and the files that it links to. A link to a folder, or to a page that is not in the book,
/// becomes text.
fn copy_page(page: &str, chapters: &BTreeSet<String>, source: &Path) -> Result<(), Failure> {
    let text = fs::read_to_string(page)
        .map_err(|error| Failure::new(format!("{SUMMARY} lists {page}: {error}")))?;
    let folder = Path::new(page).parent().unwrap_or(Path::new(""));
    let mut files = BTreeSet::new();
    let text = relinked(&text, |link| {
        let (path, _) = link.split_once('#').unwrap_or((link, ""));
        let path = normal(&folder.to_string_lossy(), path);
        let is_page = chapters.contains(&path);
        let is_file = !path.ends_with(".md") && Path::new(&path).is_file();
        if is_file {
            files.insert(path);
        }
        (is_page || is_file || link.starts_with('#')).then(|| link.to_owned())
    });
    let write = |path: &str, content: &[u8]| -> Result<(), Failure> {
        let to = source.join(path);
        fs::create_dir_all(to.parent().unwrap_or(source))?;
        Ok(fs::write(to, content)?)
    };
    for file in &files {
        write(file, &fs::read(file)?)?;
    }
    write(page, text.as_bytes())
}
