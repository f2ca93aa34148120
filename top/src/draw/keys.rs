//! The keys: in the last line, where the filter is typed too, and with all signs over the rest.

use super::frame::{Origin, View, flowed};
use crate::theme::{Theme, Tone};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Padding, Paragraph, Widget};

/// A line for each key and sign.
const LINES: [&str; 15] = [
    "s        sort by the next column",
    "r        reverse the order",
    "/        filter by id, name, state or path",
    "Up Down  select a peer and show all about it",
    "p        pause, and go on",
    "e        show the usual steps among the events",
    "Left Right, + -   move in a recorded run, and its speed",
    "q Esc    quit",
    "",
    "◆ this daemon   ● linked    ▸ awaited   ! silent   ✕ no link   ○ left",
    "█ counted       ▄ in parts  ▁ left out  ↷ kept     · absent",
    "× no result     ~ mixed     ? unknown   – not known",
    "⠤ in training   • on held-out data",
    "",
    "Any key closes this help. `murmurate why` explains more.",
];

/// The keys, or the filter.
pub(super) fn foot(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let choice = view.choice;
    if choice.typing {
        let text = format!("/{}▏  Enter keeps the filter, Esc clears it", choice.filter);
        return Line::styled(text, view.theme.style(Tone::Chosen)).render(area, buffer);
    }
    let mut keys = vec![
        "? help",
        "q quit",
        "s sort",
        "r reverse",
        "/ filter",
        "↑↓ peer",
        "p pause",
    ];
    if matches!(view.origin, Origin::Recorded(_)) {
        keys.extend(["←→ 5 s", "+- speed"]);
    }
    keys.push("e events");
    let mut keys: Vec<String> = keys.into_iter().map(str::to_owned).collect();
    if !choice.filter.is_empty() {
        keys.insert(0, format!("filter: {}", choice.filter));
    }
    if choice.selected.is_some() {
        keys.insert(0, "Esc closes the peer".to_owned());
    }
    let line = flowed(&keys, area.width, 1).into_iter().next();
    Line::styled(line.unwrap_or_default(), view.theme.style(Tone::Quiet)).render(area, buffer);
}

/// The help in the middle of an area.
pub(super) fn help(theme: Theme, area: Rect, buffer: &mut Buffer) {
    let width = LINES
        .iter()
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0)
        + 4;
    let width = u16::try_from(width).unwrap_or(area.width).min(area.width);
    let height = u16::try_from(LINES.len() + 2)
        .unwrap_or(area.height)
        .min(area.height);
    let place = area.centered(Constraint::Length(width), Constraint::Length(height));
    Clear.render(place, buffer);
    let block = Block::bordered()
        .title(Line::styled(" keys and signs ", theme.style(Tone::Title)))
        .padding(Padding::horizontal(1));
    let lines: Vec<Line<'_>> = LINES.iter().map(|line| Line::raw(*line)).collect();
    Paragraph::new(lines).block(block).render(place, buffer);
}
