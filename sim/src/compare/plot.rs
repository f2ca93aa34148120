//! Draws curves as an inline SVG chart.

use std::fmt::Write;

/// Width and height of a chart, and the margins for numbers at its left and bottom.
const SIZE: (f64, f64) = (420.0, 260.0);
const MARGIN: (f64, f64) = (52.0, 30.0);

/// One curve: its name, the number of its colour, and its points.
#[derive(Clone, Debug)]
pub(super) struct Curve<'a> {
    pub(super) name: &'a str,
    pub(super) index: usize,
    pub(super) points: Vec<(f64, f64)>,
}

/// Contents of a chart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axes<'a> {
    /// Title of the horizontal axis.
    pub(super) x: &'a str,
    pub(super) logarithmic: bool,
    /// Value of a horizontal line.
    pub(super) target: f64,
}

/// A different colour for each number: hues differ by the golden angle.
pub(super) fn colour(index: usize) -> String {
    let hue = (index as f64 * 137.508) % 360.0;
    let light = [42, 56, 34][index % 3];
    format!("hsl({hue:.0} 70% {light}%)")
}

/// Maps values of one axis to the chart.
struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Scale {
    fn new(values: impl Iterator<Item = f64>, logarithmic: bool) -> Option<Self> {
        let values = values.filter(|v| v.is_finite() && (!logarithmic || *v > 0.0));
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
            (low.min(v), high.max(v))
        });
        if low > high {
            return None;
        }
        // An axis needs two different ends, even for a single value.
        let high = if high > low {
            high
        } else {
            low + low.abs().max(1.0) * 0.1
        };
        Some(Self {
            low,
            high,
            logarithmic,
        })
    }

    /// Position of a value: 0 at the low end, 1 at the high end.
    fn share(&self, value: f64) -> f64 {
        if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }

    fn value(&self, share: f64) -> f64 {
        if self.logarithmic {
            self.low * (self.high / self.low).powf(share)
        } else {
            self.low + (self.high - self.low) * share
        }
    }
}

/// A number with few characters.
fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 1e9 => format!("{:.1}G", value / 1e9),
        v if v >= 1e6 => format!("{:.1}M", value / 1e6),
        v if v >= 1e4 => format!("{:.0}k", value / 1e3),
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 1.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// The chart, or a line of text if no point is finite.
pub(super) fn svg(axes: Axes<'_>, curves: &[Curve<'_>]) -> String {
    let points = || curves.iter().flat_map(|curve| curve.points.iter().copied());
    let x = Scale::new(points().map(|(x, _)| x), axes.logarithmic);
    let y = Scale::new(points().map(|(_, y)| y).chain([axes.target]), false);
    let (Some(x), Some(y)) = (x, y) else {
        return "<p>no finite point</p>\n".to_owned();
    };
    let (width, height) = SIZE;
    let (left, bottom) = MARGIN;
    let place = |px: f64, py: f64| {
        let across = left + x.share(px) * (width - left - 8.0);
        let down = (height - bottom) - y.share(py) * (height - bottom - 8.0);
        (across, down)
    };
    let mut out = format!(
        "<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">\n"
    );
    for tick in 0..=4 {
        let share = f64::from(tick) / 4.0;
        let (value, at) = (y.value(share), x.value(share));
        let ((_, down), (across, _)) = (place(x.low, value), place(at, y.low));
        let (end, foot) = (width - 8.0, height - bottom + 14.0);
        let _ = writeln!(
            out,
            "<line class=\"grid\" x1=\"{left}\" x2=\"{end}\" y1=\"{down:.1}\" y2=\"{down:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <text x=\"{across:.1}\" y=\"{foot}\" text-anchor=\"middle\">{}</text>",
            left - 4.0,
            down + 4.0,
            short(value),
            short(at),
        );
    }
    let (_, goal) = place(x.low, axes.target);
    let _ = writeln!(
        out,
        "<line class=\"target\" x1=\"{left}\" x2=\"{}\" y1=\"{goal:.1}\" y2=\"{goal:.1}\"/>\n\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        width - 8.0,
        (left + width) / 2.0,
        height - 2.0,
        axes.x
    );
    for curve in curves {
        let drawn = curve.points.iter().filter(|(px, py)| {
            px.is_finite() && py.is_finite() && (!axes.logarithmic || *px > 0.0)
        });
        let path: Vec<_> = drawn
            .map(|(px, py)| place(*px, *py))
            .map(|(across, down)| format!("{across:.1},{down:.1}"))
            .collect();
        let _ = writeln!(
            out,
            "<polyline stroke=\"{}\" points=\"{}\"><title>{}</title></polyline>",
            colour(curve.index),
            path.join(" "),
            curve.name
        );
    }
    out.push_str("</svg>\n");
    out
}
