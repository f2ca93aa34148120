//! A comparison as one self-contained HTML page with charts and tables.

use super::outcome::{Point, measure};
use super::plot::{Axes, Curve, colour, svg};
use super::report::{ComparisonReport, Row, bytes};
use super::spec::{Data, NetworkChoice, TaskChoice};
use std::fmt::Write;

const STYLE: &str = "\
body { font: 15px/1.45 system-ui, sans-serif; max-width: 84rem; margin: 2rem auto; padding: 0 1rem; \
color: #1c1c1c; background: #fff }\n\
h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc }\n\
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums }\n\
th, td { padding: .15rem .7rem; text-align: right; border-bottom: 1px solid #e4e4e4 }\n\
th:first-child, td:first-child { text-align: left }\n\
td.best { font-weight: 700 }\n\
.pictures { display: flex; flex-wrap: wrap; gap: 1rem }\n\
figure { margin: 0 } figcaption { font-size: .85rem; color: #555 }\n\
svg text { font-size: 10px; fill: #666 } svg .grid { stroke: #e8e8e8 }\n\
svg .target { stroke: #999; stroke-dasharray: 4 3 } svg polyline { fill: none; stroke-width: 1.6 }\n\
.mark { display: inline-block; width: .8em; height: .8em; margin-right: .4em; border-radius: 2px }\n\
pre { overflow-x: auto; background: #f6f6f6; padding: .8rem }\n";

/// Horizontal axis of a chart: its title, whether it is logarithmic, and its value.
type Across = (&'static str, bool, fn(&Point) -> f64);

const ROUNDS: Across = ("rounds", false, |p| p.round as f64);
const BYTES: Across = ("bytes a peer sent", true, |p| p.bytes);
const SECONDS: Across = ("virtual seconds", true, |p| p.at_s);

impl ComparisonReport {
    /// Formats the report as an HTML page. `binary` is the version and commit of the program.
    pub fn to_html(&self, binary: &str) -> String {
        let comparison = &self.comparison;
        let seeds: Vec<_> = comparison.seeds.iter().map(u64::to_string).collect();
        let mut out = format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <title>Presets beside each other</title>\n<style>\n{STYLE}</style>\n\
             <h1>Presets beside each other</h1>\n<p>murmurate {}; <code>{}</code>; seeds {}. Every peer takes \
             the same inner steps whatever the preset; bytes are what a peer sent on average, control \
             messages included; a preset needs what it needed when the mean over the peers passed the \
             target (dashed), and nothing where it did not. Where there are several seeds, tables have means \
             and pictures the first seed.</p>\n",
            escape(binary),
            escape(&comparison.file),
            seeds.join(", ")
        );
        for task in &comparison.task {
            for data in &task.data {
                for &peers in &comparison.peers {
                    self.section(&mut out, task, data, peers);
                }
            }
        }
        let text = toml::to_string(comparison).unwrap_or_default();
        let _ = writeln!(
            out,
            "<h2>The comparison</h2>\n<pre>{}</pre>\n</html>",
            escape(&text)
        );
        out
    }

    fn section(&self, out: &mut String, task: &TaskChoice, data: &Data, peers: usize) {
        let (name, split) = (escape(&task.name), escape(&data.name));
        let _ = writeln!(out, "<h2>{name}, {split}, {peers} peers</h2>");
        let networks: Vec<_> = self.comparison.network.iter().collect();
        let rows =
            |network: &NetworkChoice| self.rows((&task.name, &data.name, peers, &network.name));
        let all: Vec<_> = networks
            .iter()
            .map(|network| (*network, rows(network)))
            .collect();
        table(out, task, &all);
        out.push_str("<div class=\"pictures\">\n");
        if let Some((network, rows)) = all.first() {
            picture(out, task, (network, rows), ROUNDS);
            picture(out, task, (network, rows), BYTES);
        }
        for (network, rows) in &all {
            picture(out, task, (network, rows), SECONDS);
        }
        out.push_str("</div>\n");
    }
}

/// One row for each preset: its last value, and the rounds, bytes and seconds to the goal on each network.
fn table(out: &mut String, task: &TaskChoice, all: &[(&NetworkChoice, Vec<Row<'_>>)]) {
    let (what, goal) = goal(task);
    let _ = write!(
        out,
        "<table>\n<tr><th rowspan=\"2\">preset</th><th rowspan=\"2\">{what} at the end</th>"
    );
    for (network, _) in all {
        let name = escape(&network.name);
        let _ = write!(out, "<th colspan=\"3\">{name}: to {what} {goal}</th>");
    }
    out.push_str("</tr>\n<tr>");
    for _ in all {
        out.push_str("<th>rounds</th><th>bytes</th><th>seconds</th>");
    }
    out.push_str("</tr>\n");
    let best: Vec<_> = all.iter().map(|(_, rows)| least(rows)).collect();
    let presets = all.first().map_or(&[][..], |(_, rows)| rows.as_slice());
    for (index, row) in presets.iter().enumerate() {
        let (preset, mark) = (escape(row.preset), colour(index));
        let last = row
            .last(task)
            .map_or_else(|| "–".to_owned(), |v| format!("{v:.4}"));
        let _ = write!(
            out,
            "<tr><td><span class=\"mark\" style=\"background:{mark}\"></span>{preset}</td><td>{last}</td>"
        );
        for ((_, rows), best) in all.iter().zip(&best) {
            let row = rows.iter().find(|other| other.preset == row.preset);
            cells(out, row, *best);
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n");
}

/// The smallest bytes and seconds of any preset.
fn least(rows: &[Row<'_>]) -> (f64, f64) {
    let needs = rows.iter().filter_map(Row::needs);
    needs.fold((f64::INFINITY, f64::INFINITY), |(sent, seconds), needs| {
        (needs.bytes.min(sent), needs.at_s.min(seconds))
    })
}

fn cells(out: &mut String, row: Option<&Row<'_>>, (sent, seconds): (f64, f64)) {
    if let Some(reason) = row.and_then(Row::error) {
        let _ = write!(
            out,
            "<td colspan=\"3\" title=\"{0}\">{0}</td>",
            escape(reason)
        );
        return;
    }
    let Some(needs) = row.and_then(Row::needs) else {
        out.push_str("<td>–</td><td>–</td><td>–</td>");
        return;
    };
    let class = |best: bool| if best { " class=\"best\"" } else { "" };
    let _ = write!(
        out,
        "<td>{:.1}</td><td{}>{}</td><td{}>{:.2}</td>",
        needs.round,
        class(needs.bytes <= sent),
        bytes(needs.bytes),
        class(needs.at_s <= seconds),
        needs.at_s
    );
}

fn picture(
    out: &mut String,
    task: &TaskChoice,
    (network, rows): (&NetworkChoice, &[Row<'_>]),
    (title, logarithmic, across): Across,
) {
    let (what, target) = goal(task);
    let curves: Vec<_> = rows
        .iter()
        .enumerate()
        .map(|(index, row)| Curve {
            name: row.preset,
            index,
            points: row.runs.first().map_or_else(Vec::new, |run| {
                let looks = run.points.iter();
                looks
                    .filter_map(|p| Some((across(p), measure(p, task.target)?)))
                    .collect()
            }),
        })
        .collect();
    let axes = Axes {
        x: title,
        logarithmic,
        target,
    };
    let name = escape(&network.name);
    let _ = writeln!(
        out,
        "<figure>{}<figcaption>{what} against {title}, {name}</figcaption></figure>",
        svg(axes, &curves)
    );
}

fn goal(task: &TaskChoice) -> (&'static str, f64) {
    match (task.target.accuracy, task.target.loss) {
        (Some(goal), _) => ("accuracy", goal),
        (None, goal) => ("loss", goal.unwrap_or_default()),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
