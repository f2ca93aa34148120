//! The parts above the table: which daemon, what its round does, the most important figures.

use super::frame::{Origin, View, flowed, wrapped};
use crate::column::{accuracy, known};
use crate::picture::Picture;
use crate::row::{PeerState, Row};
use crate::theme::Tone;
use murmurate_node::api::words::{percent, short, time};
use murmurate_node::api::{Answer, DaemonView, PromiseStatus, Swarm};
use murmurate_node::events::utc;
use murmurate_node::progress::bytes;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Widget};

/// From this width on, the figures fit into one line.
const ONE_LINE: u16 = 150;

/// Figures older than this are called old, seconds.
const OLD_S: f64 = 3.0;

pub(super) const fn figure_rows(width: u16) -> u16 {
    if width >= ONE_LINE { 1 } else { 2 }
}

/// The run and the daemon on the left, how old the figures are on the right.
pub(super) fn title(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let mut left = vec![Span::styled("murmurate top", view.theme.style(Tone::Title))];
    if let Some(swarm) = &view.picture.swarm {
        let me = &swarm.daemon;
        let name = view.picture.name(&me.peer);
        let name = if name == short(&me.peer) {
            format!("daemon {name}")
        } else {
            format!("{name} ({})", short(&me.peer))
        };
        let words = [me.run.as_str(), &name, &me.preset, &me.version];
        for word in words.iter().filter(|word| !word.is_empty()) {
            left.push(Span::raw(format!("  {word}")));
        }
    }
    Line::from(left).render(area, buffer);
    let right = match view.origin {
        Origin::Live { .. } => match age(view) {
            Some(age) if age < 1.0 => " now".to_owned(),
            Some(age) => format!(" {} ago", seconds(age)),
            None => " asking".to_owned(),
        },
        Origin::Recorded(_) => " recorded".to_owned(),
    };
    let right = Line::styled(right, view.theme.style(Tone::Quiet)).right_aligned();
    let width = u16::try_from(right.width())
        .unwrap_or(area.width)
        .min(area.width);
    let [_, place] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Length(width)]).areas(area);
    right.render(place, buffer);
}

/// An age in words. Tenths of a second say nothing to people, and would change in every frame.
fn seconds(age: f64) -> String {
    if age < 120.0 {
        format!("{age:.0} s")
    } else {
        time(age)
    }
}

/// Seconds since the last answer.
fn age(view: &View<'_>) -> Option<f64> {
    let at = view.picture.answered_unix_s?;
    Some((view.now - at).max(0.0).round())
}

/// A line that says that the shown figures are not the present ones, if that is so.
pub(super) fn banner(view: &View<'_>) -> Option<(String, Tone)> {
    let old = || known(age(view), seconds);
    match (view.origin, &view.picture.trouble) {
        (Origin::Recorded(moment), _) => {
            let sign = if moment.playing { "▶" } else { "‖ stopped" };
            let ends = moment.at_s >= moment.of_s;
            let sign = if ends { "■ the end" } else { sign };
            let text = format!(
                "{sign}  {} UTC  {:.1} s of {:.1} s  speed {}x",
                utc(moment.unix_s),
                moment.at_s,
                moment.of_s,
                moment.speed
            );
            Some((text, Tone::Chosen))
        }
        (Origin::Live { paused: true, .. }, _) => {
            let text = format!("‖ paused: the figures are {} old; p goes on", old());
            Some((text, Tone::Chosen))
        }
        (Origin::Live { .. }, Some(_)) if view.picture.farewell().is_some() => {
            let how = view.picture.farewell().unwrap_or_default();
            let text = format!("■ {how}; the figures are {} old", old());
            Some((text, Tone::Good))
        }
        (Origin::Live { .. }, Some(trouble)) => {
            let figures = match age(view) {
                Some(_) => format!("the figures are {} old", old()),
                None => "there are no figures yet".to_owned(),
            };
            let text = format!("✕ connecting again; {figures}: {trouble}");
            Some((text, Tone::Bad))
        }
        (Origin::Live { .. }, None) if age(view).is_some_and(|age| age > OLD_S) => {
            let text = format!("… waiting for an answer: the figures are {} old", old());
            Some((text, Tone::Waits))
        }
        (Origin::Live { target, .. }, None) if view.picture.swarm.is_none() => {
            Some((format!("… asking {target}"), Tone::Waits))
        }
        _ => None,
    }
}

/// The verdict on the round in two lines, and the remedy in a third one.
pub(super) fn verdict(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let Some(swarm) = &view.picture.swarm else {
        return;
    };
    let verdict = &swarm.verdict;
    let (sign, tone) = match (verdict.asks_to_act(), swarm.waiting.is_empty()) {
        (true, _) => ("! ", Tone::Bad),
        (false, false) => ("… ", Tone::Waits),
        (false, true) => ("✓ ", Tone::Good),
    };
    let sentences = named(view, &verdict.sentences.join(" "));
    let style = view.theme.style(tone);
    let mut lines: Vec<Line<'_>> = Vec::new();
    let wrapped = wrapped(&sentences, area.width.saturating_sub(2), area.height - 1);
    for (index, text) in wrapped.into_iter().enumerate() {
        let sign = if index == 0 { sign } else { "  " };
        lines.push(Line::from(vec![Span::styled(sign, style), Span::raw(text)]));
    }
    let action = named(view, &verdict.action);
    lines.push(Line::styled(format!("  {action}"), style));
    Paragraph::new(lines).render(area, buffer);
}

/// A text of a daemon with the names of the peers that have one.
fn named(view: &View<'_>, text: &str) -> String {
    let mut text = text.to_owned();
    let picture = view.picture;
    let claimed = picture.claimed.keys();
    let others = claimed.filter(|id| !picture.names.contains_key(*id));
    for id in picture.names.keys().chain(others) {
        text = text.replace(&format!("daemon {}", short(id)), &picture.name(id));
    }
    text
}

pub(super) fn figures(view: &View<'_>, rows: &[Row], area: Rect, buffer: &mut Buffer) {
    let Some(swarm) = &view.picture.swarm else {
        return;
    };
    let me = &swarm.daemon;
    let fixed = |value: f64| format!("{value:.3}");
    let of = match me.rounds {
        0 => String::new(),
        rounds => format!(" of {rounds}"),
    };
    let peers = rows.iter().filter(|row| !row.is_this());
    let linked = peers
        .clone()
        .filter(|row| !matches!(row.state, PeerState::Gone | PeerState::Left));
    let last = view.picture.history.points.last();
    let recorded = matches!(view.origin, Origin::Recorded(_));
    let mut figures = vec![
        format!("round {}{of}", me.round),
        format!("phase {}", me.phase),
        format!("linked {} of {}", linked.count(), peers.count()),
        format!("loss {}", known(me.loss, fixed)),
    ];
    figures.extend(held_out(me));
    if me.round_steps > 0 {
        let of = swarm.control.inner_steps;
        let of = of.map_or(String::new(), |steps| format!(" of {steps}"));
        figures.push(format!("step {}{of}", me.round_steps));
    }
    if !recorded {
        let hourly = swarm
            .measured
            .map(|measured| measured.bytes_per_hour as u64);
        figures.extend([
            format!("left at most {}", known(swarm.eta_s, time)),
            known(me.inner_steps_per_s, |rate| {
                format!("{rate:.1} inner steps/s")
            }),
            format!("out {} a round", known(last.map(|p| p.bytes_sent), bytes)),
            format!(
                "in {} a round",
                known(last.map(|p| p.bytes_received), bytes)
            ),
            format!("{} an hour", known(hourly, bytes)),
            format!("memory {}", known(me.rss_bytes, bytes)),
        ]);
    }
    figures.push(format!(
        "saved round {}",
        known(me.saved_round, |r| r.to_string())
    ));
    figures.extend(sites(view.picture, swarm));
    let hidden = swarm.privacy.unwrap_or_default();
    figures.extend(hidden.promise.map(epsilon));
    figures.extend(
        hidden
            .masked
            .map(|members| format!("masked, sums of {members} or more")),
    );
    let lines = flowed(&figures, area.width, area.height);
    let lines: Vec<Line<'_>> = lines.into_iter().map(Line::raw).collect();
    Paragraph::new(lines).render(area, buffer);
}

/// The accuracies of all daemons, where they differ.
fn sites(picture: &Picture, swarm: &Swarm) -> Option<String> {
    let all = swarm.totals.accuracy.as_ref();
    let all = all.filter(|all| all.best > all.worst)?;
    let name = |peer: &str| picture.name(peer);
    Some(format!(
        "accuracy of {} daemons {:.3} ± {:.3}, {:.3} ({}) to {:.3} ({})",
        all.daemons,
        all.mean,
        all.deviation,
        all.worst,
        name(&all.worst_peer),
        all.best,
        name(&all.best_peer)
    ))
}

/// Epsilon of this daemon's contributions.
fn epsilon(privacy: PromiseStatus) -> String {
    let epsilon = known(privacy.epsilon, |epsilon| format!("{epsilon:.2}"));
    match privacy.budget {
        Some(budget) => format!("privacy epsilon {epsilon} of {budget}"),
        None => format!("privacy epsilon {epsilon}"),
    }
}

/// Figures of an evaluation on held-out data, in the unit of the task.
fn held_out(me: &DaemonView) -> Vec<String> {
    let found = me.evaluation.clone().unwrap_or_default();
    let fixed = |value: f64| format!("{value:.3}");
    let mut figures = match me.bytes_per_token {
        Some(_) => vec![
            format!("perplexity {}", known(found.perplexity, fixed)),
            format!("bits per byte {}", known(found.bits_per_byte, fixed)),
        ],
        None => vec![format!("accuracy {}", known(found.accuracy, accuracy))],
    };
    let named = found.named.iter();
    figures.extend(named.map(|(name, value)| format!("{name} {value:.3}")));
    figures
}

/// My contribution in one line.
pub(super) fn mine(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let title = Span::styled("my contribution  ", view.theme.style(Tone::Title));
    let width = area.width.saturating_sub(17);
    let text = wrapped(&of_mine(view), width, 1).into_iter().next();
    Line::from(vec![title, Span::raw(text.unwrap_or_default())]).render(area, buffer);
}

/// My contribution, and what takes the time of a round.
pub(super) fn contribution(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let title = |text| Line::styled(text, view.theme.style(Tone::Title));
    let mut lines = vec![title("my contribution")];
    lines.extend(
        wrapped(&of_mine(view), area.width, 2)
            .into_iter()
            .map(Line::raw),
    );
    let slow = all_of(&view.picture.slow);
    if !slow.is_empty() {
        lines.push(title("the time of a round"));
        let slow = wrapped(&named(view, &slow), area.width, 3);
        lines.extend(slow.into_iter().map(Line::raw));
    }
    Paragraph::new(lines).render(area, buffer);
}

fn of_mine(view: &View<'_>) -> String {
    let answer = all_of(&view.picture.mine);
    if !answer.is_empty() {
        return named(view, &answer);
    }
    let Some(swarm) = &view.picture.swarm else {
        return String::new();
    };
    let strip = &swarm.daemon.strip;
    let counted = strip.chars().filter(|letter| *letter == 'c').count();
    let rounds = strip.chars().count();
    match rounds {
        0 => "no round has ended yet".to_owned(),
        rounds => format!(
            "counted in {counted} of the last {rounds} rounds ({})",
            percent(counted as f64 / rounds as f64)
        ),
    }
}

/// An answer in one text, with its action if it asks for one.
fn all_of(answer: &Answer) -> String {
    let mut text = answer.sentences.join(" ");
    if answer.asks_to_act() {
        text.push(' ');
        text.push_str(&answer.action);
    }
    text
}
