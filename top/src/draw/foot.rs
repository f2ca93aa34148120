//! The last line: the keys, or the filter that is typed.

use super::texts;
use super::view::{Origin, View};
use crate::theme::Tone;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Widget;

/// The keys, or the filter.
pub(super) fn keys(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
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
    let line = texts::flowed(&keys, area.width, 1).into_iter().next();
    Line::styled(line.unwrap_or_default(), view.theme.style(Tone::Quiet)).render(area, buffer);
}
