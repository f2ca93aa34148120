//! All that is known about one daemon of the table.

use super::frame::{View, flowed};
use super::{events, table};
use crate::column::{LETTERS, STRIP_MAX, accuracy, known, lag, lost};
use crate::row::Row;
use crate::theme::Tone;
use murmurate_node::api::words::{percent, rate, time};
use murmurate_node::events::Entry;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Widget};

/// Rows of the details where there is room.
pub(super) const ROWS: u16 = 12;

/// The details of one daemon.
pub(super) fn peer(view: &View<'_>, row: &Row, area: Rect, buffer: &mut Buffer) {
    let title = Span::styled(format!("{}  ", row.name), view.theme.style(Tone::Title));
    let mut lines = vec![Line::from(vec![title, Span::raw(row.id.clone())])];
    let round = |round: u64| format!("{round}{}", lag(row.lag));
    let mut figures = vec![
        format!("{} {}", row.state.sign(), row.state.word()),
        format!("round {}", known(row.round, round)),
        format!("share {}", known(row.share, percent)),
        format!("waited for it {}", known(row.waited_s, time)),
        format!("round trip {}", known(row.rtt_s, time)),
        format!("lost {}", known(row.lost, lost)),
        format!("rate {}", known(row.bytes_per_s, rate)),
        format!("path {}", known(row.path.clone(), |path| path)),
        format!("says of itself: accuracy {}", known(row.accuracy, accuracy)),
        format!("version {}", known(row.version.clone(), |version| version)),
    ];
    if let Some(totals) = view.picture.contributions.totals.get(&row.id) {
        figures.push(format!(
            "since the start: counted {}, in parts {}, left out {}, absent {}",
            totals.counted, totals.partly, totals.left_out, totals.absent
        ));
    }
    let flowed = flowed(&figures, area.width, 3);
    lines.extend(flowed.into_iter().map(Line::raw));
    let mut strip = table::strip_of(view, row, STRIP_MAX);
    let used = LETTERS
        .iter()
        .filter(|(letter, ..)| row.strip.contains(*letter));
    let used: Vec<String> = used
        .map(|(_, sign, word, _)| format!("{sign} {word}"))
        .collect();
    strip.push_span(Span::styled(
        format!("  {}", used.join("  ")),
        view.theme.style(Tone::Quiet),
    ));
    lines.push(strip);
    let about = |entry: &&Entry| {
        entry.kind.peer() == Some(&row.id) || entry.kind.is_trouble() && entry.daemon == row.id
    };
    let room = usize::from(area.height).saturating_sub(lines.len());
    let last = view.picture.events.iter().rev().filter(about).take(room);
    let last: Vec<Line<'_>> = last.map(|entry| events::line(view, entry)).collect();
    lines.extend(last.into_iter().rev());
    Paragraph::new(lines).render(area, buffer);
}
