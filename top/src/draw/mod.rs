//! Draws a picture into a grid of cells. Drawing reads no clock and asks no daemon: the same picture gives
//! the same cells.

mod charts;
mod details;
mod events;
mod frame;
mod head;
mod keys;
mod table;

pub(crate) use frame::{Moment, Origin, View};

use crate::row::Row;
use crate::theme::{Theme, Tone};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Widget, Wrap};

/// The smallest terminal that has room for the parts.
const LEAST: (u16, u16) = (60, 16);

/// From this width on, the contribution, the peer and the events stand beside the table.
const WIDE: u16 = 140;

/// Rows of charts: at least, and at most.
const CHART_ROWS: (u16, u16) = (6, 14);

/// Rows of events that are always kept free, their title included.
const EVENT_ROWS_MIN: u16 = 3;

pub(crate) fn draw(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    if area.width < LEAST.0 || area.height < LEAST.1 {
        return too_small(view.theme, area, buffer);
    }
    let rows = Row::all(view.picture);
    let shown = view.choice.arranged(&rows);
    let banner = head::banner(view);
    let head_rows = [
        1,
        u16::from(banner.is_some()),
        3,
        head::figure_rows(area.width),
    ];
    let [title, notice, verdict, figures, body, foot] = Layout::vertical([
        Constraint::Length(head_rows[0]),
        Constraint::Length(head_rows[1]),
        Constraint::Length(head_rows[2]),
        Constraint::Length(head_rows[3]),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(area);
    head::title(view, title, buffer);
    if let Some((text, tone)) = banner {
        frame::fill(buffer, notice, view.theme.style(tone));
        Line::styled(text, view.theme.style(tone)).render(notice, buffer);
    }
    head::verdict(view, verdict, buffer);
    head::figures(view, &rows, figures, buffer);
    if area.width >= WIDE {
        wide(view, &shown, body, buffer)
    } else {
        narrow(view, &shown, body, buffer)
    }
    keys::foot(view, foot, buffer);
    if view.choice.help {
        keys::help(view.theme, area, buffer);
    }
}

/// Table, charts or a peer, contribution and events below each other.
fn narrow(view: &View<'_>, shown: &[&Row], area: Rect, buffer: &mut Buffer) {
    let middle = chart_rows(area.height);
    let left = area.height.saturating_sub(middle + 1 + EVENT_ROWS_MIN);
    let table_rows = table::rows_for(shown).min(left.max(2));
    let [of_table, of_charts, mine, of_events] = Layout::vertical([
        Constraint::Length(table_rows),
        Constraint::Length(middle),
        Constraint::Length(1),
        Constraint::Fill(1),
    ])
    .areas(area);
    table::table(view, shown, of_table, buffer);
    match selected(view, shown) {
        Some(row) => details::peer(view, row, of_charts, buffer),
        None => charts::row(view, of_charts, buffer),
    }
    head::mine(view, mine, buffer);
    events::last(view, of_events, buffer);
}

/// Table and charts on the left, the rest on the right.
fn wide(view: &View<'_>, shown: &[&Row], area: Rect, buffer: &mut Buffer) {
    let [left, gap, right] = Layout::horizontal([
        Constraint::Fill(3),
        Constraint::Length(2),
        Constraint::Fill(2),
    ])
    .areas(area);
    frame::rule(buffer, gap);
    let least = 2 * chart_rows(left.height / 2);
    let table_rows = table::rows_for(shown).min(left.height.saturating_sub(least));
    let parts = [Constraint::Length(table_rows), Constraint::Fill(1)];
    let [of_table, of_charts] = Layout::vertical(parts).areas(left);
    table::table(view, shown, of_table, buffer);
    charts::square(view, of_charts, buffer);
    let selected = selected(view, shown);
    let [mine, of_peer, of_events] = Layout::vertical([
        Constraint::Length(8),
        Constraint::Length(if selected.is_some() { details::ROWS } else { 0 }),
        Constraint::Fill(1),
    ])
    .areas(right);
    head::contribution(view, mine, buffer);
    if let Some(row) = selected {
        details::peer(view, row, of_peer, buffer);
    }
    events::last(view, of_events, buffer);
}

fn selected<'a>(view: &View<'_>, shown: &[&'a Row]) -> Option<&'a Row> {
    view.choice.place(shown).map(|place| shown[place])
}

fn chart_rows(height: u16) -> u16 {
    (height * 2 / 5).clamp(CHART_ROWS.0, CHART_ROWS.1)
}

/// A clear line in place of parts that do not fit.
fn too_small(theme: Theme, area: Rect, buffer: &mut Buffer) {
    let text = format!(
        "The terminal has {}x{} characters: make it {}x{}. q quits.",
        area.width, area.height, LEAST.0, LEAST.1
    );
    let line = Line::styled(text, theme.style(Tone::Waits));
    let text = Paragraph::new(line).wrap(Wrap { trim: true });
    text.render(area, buffer);
}
