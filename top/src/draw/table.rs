//! The table of the daemons.

use super::frame::View;
use crate::column::{COLUMNS, Column, STRIP, STRIP_MAX, sign};
use crate::row::{PeerState, Row};
use crate::theme::Tone;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Rect};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Cell, Row as Cells, StatefulWidget, Table, TableState};

/// Rows that a table of these daemons takes, the heads included.
pub(super) fn rows_for(shown: &[&Row]) -> u16 {
    u16::try_from(shown.len())
        .unwrap_or(u16::MAX)
        .saturating_add(1)
}

/// The table, around the selected row if there is no room for all.
pub(super) fn table(view: &View<'_>, shown: &[&Row], area: Rect, buffer: &mut Buffer) {
    let (columns, strip) = fitting(area.width);
    let heads = columns.iter().map(|place| Cell::from(head(view, *place)));
    let heads = Cells::new(heads).style(view.theme.style(Tone::Title));
    let rows = shown.iter().map(|row| {
        let cells = columns.iter().map(|place| cell(view, *place, row, strip));
        Cells::new(cells)
    });
    let widths = columns.iter().map(|place| match *place {
        STRIP => Constraint::Length(strip),
        place => Constraint::Length(COLUMNS[place].width),
    });
    let table = Table::new(rows, widths)
        .header(heads)
        .column_spacing(1)
        .row_highlight_style(view.theme.style(Tone::Chosen));
    let mut state = TableState::new().with_selected(view.choice.place(shown));
    StatefulWidget::render(table, area, buffer, &mut state);
}

/// The columns that fit, by their places, and the width of the strip.
fn fitting(width: u16) -> (Vec<usize>, u16) {
    let mut rank = COLUMNS.iter().map(|column| column.rank).max().unwrap_or(0);
    loop {
        let kept = |column: &Column| column.rank <= rank;
        let places: Vec<usize> = (0..COLUMNS.len()).filter(|p| kept(&COLUMNS[*p])).collect();
        let taken: u16 = places.iter().map(|place| COLUMNS[*place].width + 1).sum();
        if taken <= width + 1 || rank == 0 {
            let left = (width + 1).saturating_sub(taken);
            return (places, (COLUMNS[STRIP].width + left).min(STRIP_MAX));
        }
        rank -= 1;
    }
}

/// The head of a column, with the direction if it is sorted by it.
fn head(view: &View<'_>, place: usize) -> String {
    let head = COLUMNS[place].head;
    match (view.choice.sort == Some(place), view.choice.reversed) {
        (false, _) => head.to_owned(),
        (true, false) => format!("{head}▲"),
        (true, true) => format!("{head}▼"),
    }
}

fn cell<'a>(view: &View<'_>, place: usize, row: &Row, strip: u16) -> Text<'a> {
    if place == STRIP {
        return Text::from(strip_of(view, row, strip));
    }
    let tone = match (place, &row.state) {
        (1, PeerState::Gone | PeerState::Silent) => Tone::Bad,
        (1, PeerState::Awaited) => Tone::Waits,
        (1, PeerState::Linked) => Tone::Good,
        _ => Tone::Plain,
    };
    let text = (COLUMNS[place].figure)(row).text;
    Text::from(Line::styled(text, view.theme.style(tone)))
}

/// The newest rounds of a strip, oldest first.
pub(super) fn strip_of<'a>(view: &View<'_>, row: &Row, width: u16) -> Line<'a> {
    let letters: Vec<char> = row.strip.chars().collect();
    let newest = letters.len().saturating_sub(usize::from(width));
    let spans = letters[newest..].iter().map(|letter| {
        let (sign, tone) = sign(*letter);
        Span::styled(sign.to_string(), view.theme.style(tone))
    });
    Line::from_iter(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_most_keeps_its_room() {
        let heads = |width| {
            let (places, strip) = fitting(width);
            let heads: Vec<&str> = places.iter().map(|place| COLUMNS[*place].head).collect();
            (heads.join(" "), strip)
        };
        let all = "peer state round last rounds share waited RTT lost rate path accuracy version";
        assert_eq!(heads(120), (all.to_owned(), 17));
        assert_eq!(
            heads(80),
            (
                "peer state round last rounds share waited RTT lost".to_owned(),
                18
            )
        );
        assert_eq!(
            heads(60),
            ("peer state round last rounds share waited".to_owned(), 13)
        );
        for width in 60..200 {
            let (places, strip) = fitting(width);
            let others = places.iter().filter(|place| **place != STRIP);
            let taken: u16 = others.map(|place| COLUMNS[*place].width + 1).sum();
            assert!(taken + strip <= width, "{width}");
        }
    }
}
