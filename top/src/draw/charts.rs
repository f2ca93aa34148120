//! Small charts of the rounds: loss, accuracy, time, bytes.

use super::frame::View;
use crate::column::{self, known};
use crate::theme::Tone;
use murmurate_node::api::Point;
use murmurate_node::api::words::time;
use murmurate_node::progress::bytes;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Axis, Chart, Dataset, GraphType, Widget};
use std::f64::consts::LN_2;

/// Charts of fewer rows have no room for the numbers of the rounds.
const AXIS_ROWS: u16 = 9;

struct Curve {
    name: &'static str,
    /// Mark that distinguishes it without colours.
    sign: &'static str,
    marker: Marker,
    of: fn(&Point) -> Option<f64>,
}

const fn curve(
    name: &'static str,
    sign: &'static str,
    marker: Marker,
    of: fn(&Point) -> Option<f64>,
) -> Curve {
    Curve {
        name,
        sign,
        marker,
        of,
    }
}

const TRAINING: Curve = curve("training", "⠤", Marker::Braille, |point| point.loss);
const HELD_OUT: Curve = curve("held-out", "•", Marker::Dot, |point| point.eval_loss);
const ACCURACY: Curve = curve("held-out", "•", Marker::Dot, |point| point.accuracy);

struct Part {
    name: &'static str,
    /// Sign of its cells, which distinguishes it without colours.
    sign: &'static str,
    of: fn(&Point) -> f64,
}

const fn part(name: &'static str, sign: &'static str, of: fn(&Point) -> f64) -> Part {
    Part { name, sign, of }
}

const TIMES: [Part; 4] = [
    part("train", "█", |point| point.train_s),
    part("exchange", "▓", |point| point.exchange_s),
    part("wait", "░", |point| point.wait_s),
    part("other", "·", |point| {
        (point.seconds - point.train_s - point.exchange_s - point.wait_s).max(0.0)
    }),
];

const BYTES: [Part; 2] = [
    part("out", "█", |point| point.bytes_sent as f64),
    part("in", "░", |point| point.bytes_received as f64),
];

/// Loss, accuracy and time side by side.
pub(super) fn row(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let [of_loss, _, of_accuracy, _, of_time] = Layout::horizontal([
        Constraint::Fill(5),
        Constraint::Length(1),
        Constraint::Fill(4),
        Constraint::Length(1),
        Constraint::Fill(7),
    ])
    .areas(area);
    loss(view, of_loss, buffer);
    accuracy(view, of_accuracy, buffer);
    times(view, of_time, buffer);
}

/// Loss and accuracy above time and bytes.
pub(super) fn square(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let halves = [
        Constraint::Fill(1),
        Constraint::Length(2),
        Constraint::Fill(1),
    ];
    let rows = [Constraint::Fill(1), Constraint::Fill(1)];
    let [above, below] = Layout::vertical(rows).areas(area);
    let [of_loss, _, of_accuracy] = Layout::horizontal(halves).areas(above);
    let [of_time, _, of_bytes] = Layout::horizontal(halves).areas(below);
    loss(view, of_loss, buffer);
    accuracy(view, of_accuracy, buffer);
    times(view, of_time, buffer);
    if view.picture.recorded {
        let title = Line::styled("bytes of a round", view.theme.style(Tone::Title));
        let reason = "an event log does not hold them";
        let reason = Line::styled(reason, view.theme.style(Tone::Quiet));
        return Text::from(vec![title, reason]).render(of_bytes, buffer);
    }
    let words = |value| bytes(value as u64);
    bars(view, of_bytes, buffer, "bytes of a round", &BYTES, words);
}

fn loss(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let words = |value: f64| format!("{value:.3}");
    let both = [TRAINING, HELD_OUT];
    curves(view, area, buffer, "loss", &both, 1.0, words);
}

/// The accuracy, or of a language model the bits per byte of text.
fn accuracy(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let swarm = view.picture.swarm.as_ref();
    match swarm.and_then(|swarm| swarm.daemon.bytes_per_token) {
        Some(bytes) => {
            let each = 1.0 / (LN_2 * bytes);
            let (both, words) = ([TRAINING, HELD_OUT], |value| format!("{value:.3}"));
            curves(view, area, buffer, "bits per byte", &both, each, words);
        }
        None => {
            let words = column::accuracy;
            curves(view, area, buffer, "accuracy", &[ACCURACY], 1.0, words);
        }
    }
}

fn times(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    bars(view, area, buffer, "time of a round", &TIMES, time);
}

/// Curves over rounds, times a factor, below a line with their names and last values.
fn curves(
    view: &View<'_>,
    area: Rect,
    buffer: &mut Buffer,
    title: &str,
    curves: &[Curve],
    factor: f64,
    words: impl Fn(f64) -> String,
) {
    let points = &view.picture.history.points;
    let of = |curve: &Curve| -> Vec<(f64, f64)> {
        let values = points
            .iter()
            .filter_map(|p| Some((p.round as f64, factor * (curve.of)(p)?)));
        values.filter(|(_, value)| value.is_finite()).collect()
    };
    let all: Vec<Vec<(f64, f64)>> = curves.iter().map(of).collect();
    let mut legend = vec![Span::styled(
        title.to_owned(),
        view.theme.style(Tone::Title),
    )];
    for (number, (curve, values)) in curves.iter().zip(&all).enumerate() {
        let last = known(values.last().map(|(_, value)| *value), &words);
        let name = if curves.len() > 1 && area.width >= 44 {
            curve.name
        } else {
            ""
        };
        let style = view.theme.style(Tone::Curve(number));
        legend.push(Span::styled(format!(" {}", curve.sign), style));
        legend.push(Span::raw(format!("{name} {last}").replace("  ", " ")));
    }
    let [of_legend, of_chart] =
        Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    Line::from(legend).render(of_legend, buffer);
    let flat = || all.iter().flatten();
    let (Some(low), Some(high)) = (
        flat().map(|(_, value)| *value).reduce(f64::min),
        flat().map(|(_, value)| *value).reduce(f64::max),
    ) else {
        let empty = Line::styled("nothing measured yet", view.theme.style(Tone::Quiet));
        return empty.render(of_chart, buffer);
    };
    // A curve without height has a middle.
    let margin = if high > low {
        0.0
    } else {
        high.abs().max(1e-3) * 0.1
    };
    let bounds = [low - margin, high + margin];
    let first = flat()
        .map(|(round, _)| *round)
        .fold(f64::INFINITY, f64::min);
    let last = flat().map(|(round, _)| *round).fold(first + 1.0, f64::max);
    let sets = curves
        .iter()
        .zip(&all)
        .enumerate()
        .map(|(number, (curve, values))| {
            let graph = match curve.marker {
                Marker::Braille => GraphType::Line,
                _ => GraphType::Scatter,
            };
            Dataset::default()
                .marker(curve.marker)
                .graph_type(graph)
                .style(view.theme.style(Tone::Curve(number)))
                .data(values)
        });
    let mut of_rounds = Axis::default().bounds([first, last]);
    if area.height >= AXIS_ROWS {
        of_rounds = of_rounds.labels([format!("round {first}"), format!("{last}")]);
    }
    let of_values = Axis::default().bounds(bounds).labels(bounds.map(&words));
    Chart::new(sets.collect())
        .x_axis(of_rounds)
        .y_axis(of_values)
        .legend_position(None)
        .render(of_chart, buffer);
}

/// Bars with the names of their parts above and the scale on the left.
fn bars(
    view: &View<'_>,
    area: Rect,
    buffer: &mut Buffer,
    title: &str,
    parts: &[Part],
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
