//! Bars of parts on top of each other, one bar for each of the last rounds.

use super::view::View;
use crate::theme::Tone;
use murmurate_node::api::Point;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

/// A part of a bar.
pub(super) struct Part {
    pub(super) name: &'static str,
    /// What its cells show, which distinguishes it without colours.
    pub(super) sign: &'static str,
    pub(super) of: fn(&Point) -> f64,
}

/// Bars with the names of their parts above and the scale on the left.
pub(super) fn bars(
    view: &View<'_>,
    area: Rect,
    buffer: &mut Buffer,
    (title, parts): (&str, &[Part]),
    words: impl Fn(f64) -> String,
) {
    let [of_title, of_names, of_bars] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Fill(1),
    ])
    .areas(area);
    let points = &view.picture.history.points;
    let style = |number| view.theme.style(Tone::Curve(number));
    let last = points.last();
    let mut heading = vec![Span::styled(
        title.to_owned(),
        view.theme.style(Tone::Title),
    )];
    let total = |point: &Point| parts.iter().map(|part| (part.of)(point)).sum::<f64>();
    if let Some(last) = last {
        heading.push(Span::raw(format!("  {}", words(total(last)))));
    }
    Line::from(heading).render(of_title, buffer);
    let names = parts.iter().enumerate().flat_map(|(number, part)| {
        let value = match last.filter(|_| area.width >= 66) {
            Some(last) => format!(" {} {} ", part.name, words((part.of)(last))),
            None => format!(" {} ", part.name),
        };
        [Span::styled(part.sign, style(number)), Span::raw(value)]
    });
    Line::from_iter(names).render(of_names, buffer);
    // The scale is that of the rounds that are shown, so that an unusual one passes.
    let shown = points.len().min(usize::from(of_bars.width));
    let points = &points[points.len() - shown..];
    let totals = points.iter().map(total).filter(|total| total.is_finite());
    let Some(high) = totals.reduce(f64::max) else {
        let empty = Line::styled("nothing measured yet", view.theme.style(Tone::Quiet));
        return empty.render(of_bars, buffer);
    };
    let scale = words(high);
    let left = u16::try_from(scale.chars().count()).unwrap_or(0) + 1;
    Line::raw(scale).render(of_bars, buffer);
    let shown = points
        .len()
        .min(usize::from(of_bars.width.saturating_sub(left)));
    // The newest round stands on the right.
    let first = of_bars.right() - u16::try_from(shown).unwrap_or(0);
    for (x, point) in (first..).zip(&points[points.len() - shown..]) {
        for (row, y) in (of_bars.top()..of_bars.bottom()).rev().enumerate() {
            // A round that is short beside the others is still there.
            let middle = match row {
                0 => 0.5 * total(point).min(high / f64::from(of_bars.height)),
                _ => (row as f64 + 0.5) / f64::from(of_bars.height) * high,
            };
            if let Some(number) = part_at(parts, point, middle) {
                buffer.set_string(x, y, parts[number].sign, style(number));
            }
        }
    }
}

/// The part of a bar at a height; none above it.
fn part_at(parts: &[Part], point: &Point, height: f64) -> Option<usize> {
    let mut top = 0.0;
    parts.iter().position(|part| {
        top += (part.of)(point);
        height < top
    })
}
