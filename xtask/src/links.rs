//! Checks that every relative link in every Markdown file leads to a file.

use crate::command::{Failure, output};
use std::fs;
use std::path::Path;

pub(crate) fn check() -> Result<(), Failure> {
    let pages = files("*.md")?;
    let (mut links, mut broken) = (0, Vec::new());
    for file in &pages {
        let directory = Path::new(file).parent().unwrap_or(Path::new(""));
        for link in relative_links(&fs::read_to_string(file)?) {
            links += 1;
            if !directory.join(&link).exists() {
                broken.push(format!("{file}: there is no {link}"));
            }
        }
    }
    if pages.is_empty() {
        return Err(Failure::new("git lists no Markdown file"));
    }
    if !broken.is_empty() {
        return Err(Failure::new(format!(
            "broken links:\n{}",
            broken.join("\n")
        )));
    }
    println!("{links} relative links in {} files", pages.len());
    Ok(())
}

/// The files of the repository with these names, also those that git does not follow yet.
pub(crate) fn files(pattern: &str) -> Result<Vec<String>, Failure> {
    let listed = ["ls-files", "-co", "--exclude-standard", "--", pattern];
    let listed = output("git", &listed)?;
    let files = listed.lines().filter(|file| Path::new(file).is_file());
    Ok(files.map(str::to_owned).collect())
}

/// The paths that a Markdown text links to, without anchors.
fn relative_links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    for after in text.split("](").skip(1) {
        let link = after.split([')', ' ', '\n']).next().unwrap_or_default();
        let elsewhere = link.contains("://") || link.starts_with("mailto:");
        let path = link.split('#').next().unwrap_or_default();
        if !elsewhere && !path.is_empty() {
            links.push(path.to_owned());
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_relative_links_are_looked_at() {
        let text = "[a](b.md#c) [d](#e) [f](https://g/h.md) [i](mailto:j)\n[k](../l \"m\")";
        assert_eq!(relative_links(text), ["b.md", "../l"]);
    }
}
