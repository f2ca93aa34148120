//! Links in the pages that mdBook made: each leads to a file of the book, and to an anchor in it.

use super::markdown::normal;
use crate::command::Failure;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Checks all pages below `book`. Returns how many pages and links there are.
pub(super) fn check(book: &Path) -> Result<(usize, usize), Failure> {
    let mut pages = BTreeMap::new();
    collect(book, "", &mut pages)?;
    let ids: BTreeMap<&str, BTreeSet<&str>> = pages
        .iter()
        .map(|(path, text)| (path.as_str(), values(text, "id").collect()))
        .collect();
    let (mut count, mut broken) = (0, BTreeSet::new());
    for (page, text) in &pages {
        let targets = values(text, "href").chain(values(text, "src"));
        for target in targets.filter(|target| is_of_the_book(target)) {
            count += 1;
            if let Err(why) = leads(book, page, target, &ids) {
                broken.insert(format!("{page}: {target} {why}"));
            }
        }
    }
    if pages.is_empty() {
        return Err(Failure::new("mdBook made no page"));
    }
    if broken.is_empty() {
        Ok((pages.len(), count))
    } else {
        let lines: Vec<String> = broken.into_iter().collect();
        let lines = lines.join("\n");
        Err(Failure::new(format!("broken links in the book:\n{lines}")))
    }
}

/// The HTML files below `folder`, by their path in the book.
fn collect(book: &Path, folder: &str, pages: &mut BTreeMap<String, String>) -> Result<(), Failure> {
    for entry in book.join(folder).read_dir()? {
        let entry = entry?;
        let path = normal(folder, &entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(book, &path, pages)?;
        } else if path.ends_with(".html") && path != "404.html" && path != "toc.html" {
            pages.insert(path, fs::read_to_string(entry.path())?);
        }
    }
    Ok(())
}

/// The values of an attribute in all elements.
fn values<'a>(text: &'a str, attribute: &str) -> impl Iterator<Item = &'a str> {
    let start = format!(" {attribute}=\"");
    let pieces: Vec<&str> = text.split(start.as_str()).skip(1).collect();
    pieces
        .into_iter()
        .filter_map(|piece| Some(piece.split_once('"')?.0))
}

fn is_of_the_book(target: &str) -> bool {
    let elsewhere = ["http:", "https:", "mailto:", "javascript:", "data:", "//"];
    !target.is_empty() && !elsewhere.iter().any(|start| target.starts_with(start))
}

fn leads(
    book: &Path,
    page: &str,
    target: &str,
    ids: &BTreeMap<&str, BTreeSet<&str>>,
) -> Result<(), &'static str> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    let path = match path {
        "" => page.to_owned(),
        path => normal(folder, path),
    };
    if !book.join(&path).exists() {
        return Err("leads to no file");
    }
    match ids.get(path.as_str()) {
        Some(ids) if !anchor.is_empty() && !ids.contains(anchor) => Err("leads to no heading"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_needs_its_file_and_its_heading() {
        let text = "<a href=\"b.html#c\" id=\"x\">";
        assert_eq!(values(text, "href").collect::<Vec<_>>(), ["b.html#c"]);
        let dir = std::env::temp_dir().join(format!("murmurate-book-{}", std::process::id()));
        fs::create_dir_all(dir.join("docs")).unwrap();
        fs::write(dir.join("docs/a.html"), "<h2 id=\"one\"></h2>").unwrap();
        let write = |text: &str| fs::write(dir.join("index.html"), text).unwrap();
        write("<a href=\"docs/a.html#one\"><a href=\"https://b/\">");
        assert_eq!(check(&dir).unwrap(), (2, 1));
        write("<a href=\"docs/a.html#two\">");
        assert!(check(&dir).unwrap_err().to_string().contains("no heading"));
        write("<img src=\"docs/b.png\">");
        assert!(check(&dir).unwrap_err().to_string().contains("no file"));
        fs::remove_dir_all(&dir).unwrap();
    }
}
