//! The last events, the newest at the bottom.

use super::frame::View;
use crate::theme::Tone;
use murmurate_node::events::{Entry, utc};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Widget};

/// The characters of a time of day with seconds.
const TIME: std::ops::Range<usize> = 11..19;

/// A title, as many of the last events as fit, and below them the last sentences about the swarm.
pub(super) fn last(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let steps = if view.choice.all_events {
        "all"
    } else {
        "without usual steps: e shows all"
    };
    let title = Line::from(vec![
        Span::styled("events", view.theme.style(Tone::Title)),
        Span::styled(
            format!("  ({steps}; times in UTC)"),
            view.theme.style(Tone::Quiet),
        ),
    ]);
    let mut lines = vec![title];
    let room = usize::from(area.height.saturating_sub(1));
    let said = view.picture.said.iter().rev().take(room.div_ceil(2).min(6));
    let said: Vec<Line<'_>> = said
        .map(|text| Line::styled(format!("» {text}"), view.theme.style(Tone::Waits)))
        .collect();
    let wanted = |entry: &&Entry| view.choice.all_events || !entry.kind.is_step();
    let entries = view.picture.events.iter().rev().filter(wanted);
    let entries: Vec<Line<'_>> = entries
        .take(room - said.len())
        .map(|entry| line(view, entry))
        .collect();
    if entries.is_empty() {
        let none = if view.choice.all_events {
            "none yet"
        } else {
            "nothing unusual happened"
        };
        lines.push(Line::styled(none, view.theme.style(Tone::Quiet)));
    }
    lines.extend(entries.into_iter().rev());
    lines.extend(said.into_iter().rev());
    Paragraph::new(lines).render(area, buffer);
}

pub(super) fn line<'a>(view: &View<'_>, entry: &Entry) -> Line<'a> {
    let name = |id: &str| view.picture.name(id);
    let at = utc(entry.time);
    let at = at.get(TIME).unwrap_or_default();
    let several = view
        .picture
        .events
        .front()
        .is_some_and(|e| e.daemon != entry.daemon);
    let of = if several {
        format!("{} ", name(&entry.daemon))
    } else {
        String::new()
    };
    let (sign, tone) = if entry.kind.is_trouble() {
        ("! ", Tone::Bad)
    } else {
        ("", Tone::Plain)
    };
    let text = format!(
        "{at} {of}round {} {sign}{}",
        entry.round,
        entry.kind.words(&name)
    );
    Line::styled(text, view.theme.style(tone))
}
