//! Links in Markdown.

/// The relative links of a text, without those in code.
pub(super) fn links(text: &str) -> impl Iterator<Item = &str> {
    pieces(text).into_iter().filter_map(|piece| match piece {
        Piece::Link { target, .. } if is_relative(target) => Some(target),
        _ => None,
    })
}

/// The text with other targets in its relative links. A link without one becomes its words.
pub(super) fn relinked(text: &str, mut new: impl FnMut(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => out += text,
            Piece::Link { words, target } => {
                let to = if is_relative(target) {
                    new(target)
                } else {
                    Some(target.to_owned())
                };
                match to {
                    Some(to) => out += &format!("[{words}]({to})"),
                    None => out += words,
                }
            }
        }
    }
    out
}

/// `link`, which stands in a file of `folder`, as a path from the root.
pub(super) fn normal(folder: &str, link: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(link.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn is_relative(target: &str) -> bool {
    !target.contains("://") && !target.starts_with("mailto:")
}

enum Piece<'a> {
    Text(&'a str),
    Link { words: &'a str, target: &'a str },
}

/// A text in pieces. Fenced code and code between backquotes have no links.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut fenced, mut begin, mut at) = (false, 0, 0);
    while at < text.len() {
        let line_starts = at == 0 || text.as_bytes()[at - 1] == b'\n';
        let rest = &text[at..];
        if line_starts && rest.trim_start_matches(' ').starts_with("```") {
            fenced = !fenced;
            at += rest.find('\n').map_or(rest.len(), |end| end + 1);
            continue;
        }
        if fenced {
            at += rest.find('\n').map_or(rest.len(), |end| end + 1);
            continue;
        }
        let first = rest.chars().next().map_or(1, char::len_utf8);
        if let Some(code) = rest.strip_prefix('`') {
            let ticks = 1 + code.len() - code.trim_start_matches('`').len();
            let close = "`".repeat(ticks);
            at += ticks + rest[ticks..].find(&close).map_or(0, |end| end + ticks);
        } else if let Some((words, target, length)) = link(rest) {
            pieces.push(Piece::Text(&text[begin..at]));
            pieces.push(Piece::Link { words, target });
            at += length;
            begin = at;
        } else {
            at += first;
        }
    }
    pieces.push(Piece::Text(&text[begin..]));
    pieces
}

/// Words and target of a link at the beginning of `text`, and its length.
fn link(text: &str) -> Option<(&str, &str, usize)> {
    let inside = text.strip_prefix('[')?;
    let mut depth = 0;
    let mut close = None;
    for (at, c) in inside.char_indices() {
        match c {
            '[' => depth += 1,
            ']' if depth == 0 => {
                close = Some(at);
                break;
            }
            ']' => depth -= 1,
            _ => {}
        }
    }
    let words = &inside[..close?];
    let after = inside[close?..].strip_prefix("](")?;
    let end = after.find([')', '\n'])?;
    let target = &after[..end];
    let whole = after[end..].starts_with(')') && !target.contains([' ', '`']);
    whole.then_some((words, target, 1 + words.len() + 2 + target.len() + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_code() {
        let text = "a [b](c.md#d), `[x](y.md)` and ![e](f.png)\n```sh\n[g](h.md)\n```\n\
                    [i `j` [k]](l.md) [m](https://n/o) m[0](p) [q]";
        let found: Vec<&str> = links(text).collect();
        assert_eq!(found, ["c.md#d", "f.png", "l.md", "p"]);
    }

    #[test]
    fn a_link_without_a_target_becomes_its_words() {
        let text = "see [the examples](python/examples) and [b](b.md) \u{2013} [c](https://d/)";
        let new = |link: &str| link.ends_with(".md").then(|| format!("x/{link}"));
        let expected = "see the examples and [b](x/b.md) \u{2013} [c](https://d/)";
        assert_eq!(relinked(text, new), expected);
        assert_eq!(
            relinked("```\n[a](b)\n```\n", |_| None),
            "```\n[a](b)\n```\n"
        );
    }

    #[test]
    fn paths_start_at_the_root() {
        assert_eq!(normal("docs/tutorials", "../../README.md"), "README.md");
        assert_eq!(normal("docs", "./data.md"), "docs/data.md");
        assert_eq!(normal("", "docs/data.md"), "docs/data.md");
    }
}
