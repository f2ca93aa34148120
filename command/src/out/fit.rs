//! Fits tables and lines into the columns of a terminal.

use comfy_table::Table;

/// Columns by which the rest of a folded line is indented.
const INDENT: usize = 4;

/// The table, or each row as `key: value` lines if the table has more than `columns`.
pub(super) fn table(table: &Table, columns: usize) -> String {
    let wide = table.to_string();
    if wide.lines().all(|line| width(line) <= columns) {
        return wide;
    }
    let keys = table.header().map(|header| contents(header.cell_iter()));
    let keys = keys.unwrap_or_default();
    let widest = keys.iter().map(|key| width(key)).max().unwrap_or(0);
    let rows = table.row_iter().map(|row| {
        let cells = contents(row.cell_iter());
        let filled = keys.iter().zip(&cells).filter(|(_, cell)| !cell.is_empty());
        let lines = filled.map(|(key, cell)| match key.as_str() {
            "" => format!("{cell}\n"),
            key => format!(
                "{:<widest$} {cell}\n",
                format!("{key}:"),
                widest = widest + 1
            ),
        });
        lines.collect::<String>()
    });
    let rows: Vec<String> = rows.collect();
    rows.join("\n").trim_end().to_owned()
}

fn contents<'a>(cells: impl Iterator<Item = &'a comfy_table::Cell>) -> Vec<String> {
    cells.map(|cell| cell.content()).collect()
}

/// The text with every line folded between words. A word that is wider stays whole.
pub(super) fn lines(text: &str, columns: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len() + INDENT;
        let mut rest = line;
        let mut before = 0;
        while let Some((head, tail)) = split(rest, columns.saturating_sub(before)) {
            out.push_str(&format!("{:before$}{head}\n", ""));
            (rest, before) = (tail, indent);
        }
        out.push_str(&format!("{:before$}{rest}\n", ""));
    }
    out
}

/// Splits a line that has more than `room` columns at its last space that has room, or at the first
/// one after it. `None` if it fits or has no such space.
fn split(line: &str, room: usize) -> Option<(&str, &str)> {
    if width(line) <= room {
        return None;
    }
    let start = line.len() - line.trim_start().len();
    let spaces = line.char_indices().enumerate();
    let spaces = spaces.filter(|(_, (at, c))| *c == ' ' && *at > start);
    let mut best = None;
    for (column, (at, _)) in spaces {
        if column > room && best.is_some() {
            break;
        }
        best = Some(at);
    }
    let (head, tail) = line.split_at(best?);
    let tail = tail.trim_start();
    (!tail.is_empty()).then(|| (head.trim_end(), tail))
}

fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_does_not_fit_becomes_rows() {
        let mut of = Table::new();
        of.set_header(["daemon", "status", "longest wait", ""]);
        of.add_row(["0", "finished", "1.5s", ""]);
        of.add_row(["1", "killed", "-", "in round 3"]);
        let wide = of.to_string();
        let columns = wide.lines().map(width).max().unwrap();
        assert_eq!(table(&of, columns), wide);
        let expected = "daemon:       0\nstatus:       finished\nlongest wait: 1.5s\n\n\
                        daemon:       1\nstatus:       killed\nlongest wait: -\nin round 3";
        assert_eq!(table(&of, columns - 1), expected);
    }

    #[test]
    fn lines_are_folded_between_words() {
        let text =
            "name   1 GB  why it is so and not otherwise\nshort\n\n  a longword-without-space b\n";
        let expected = "name   1 GB  why it\n    is so and not\n    otherwise\nshort\n\n\
                        \u{20} a\n      longword-without-space\n      b\n";
        assert_eq!(lines(text, 20), expected);
        assert_eq!(lines(text, usize::MAX), text);
        assert_eq!(lines(text, 1).matches("otherwise").count(), 1);
    }
}
