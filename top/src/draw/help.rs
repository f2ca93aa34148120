//! The keys and signs, over the rest.

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

/// The help in the middle of an area.
pub(super) fn popup(theme: Theme, area: Rect, buffer: &mut Buffer) {
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
