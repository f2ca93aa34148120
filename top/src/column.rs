//! The columns of the table of daemons. A new figure is a field of [`Row`] and an entry of [`COLUMNS`].

use crate::row::Row;
use crate::theme::Tone;
use murmurate_node::api::words::{percent, rate, time};
use std::cmp::Ordering;

/// The narrowest strip of rounds that is worth its room.
pub(crate) const STRIP_MIN: u16 = 8;

/// The rounds of a strip.
pub(crate) const STRIP_MAX: u16 = 32;

const UNKNOWN: &str = "–";

#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) head: &'static str,
    pub(crate) width: u16,
    /// Columns of the highest ranks are left out where there is no room.
    pub(crate) rank: u8,
    pub(crate) figure: fn(&Row) -> Figure,
}

/// What a column shows of a row, and what rows are sorted by.
pub(crate) struct Figure {
    pub(crate) text: String,
    pub(crate) key: Key,
}

/// Sort key of rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Key {
    Number(f64),
    Text(String),
    Unknown,
}

/// The place of the strip in [`COLUMNS`]. It takes the room that is left.
pub(crate) const STRIP: usize = 3;

pub(crate) const COLUMNS: [Column; 12] = [
    column("peer", 10, 0, |row| words(Some(&row.name))),
    column("state", 11, 0, |row| Figure {
        text: format!("{} {}", row.state.sign(), row.state.word()),
        key: Key::Number(row.state.rank().into()),
    }),
    column("round", 9, 0, |row| Figure {
        text: known(row.round, |round| format!("{round}{}", lag(row.lag))),
        key: number(row.round.map(|round| round as f64)),
    }),
    column("last rounds", STRIP_MIN, 0, |row| Figure {
        text: row.strip.chars().map(|letter| sign(letter).0).collect(),
        key: Key::Number(row.counted() as f64),
    }),
    column("share", 5, 2, |row| figure(row.share, percent)),
    column("waited", 7, 1, |row| figure(row.waited_s, time)),
    column("RTT", 7, 3, |row| figure(row.rtt_s, time)),
    column("lost", 6, 4, |row| figure(row.lost, lost)),
    column("rate", 11, 5, |row| figure(row.bytes_per_s, rate)),
    column("path", 8, 6, |row| words(row.path.as_ref())),
    column("accuracy", 8, 7, |row| figure(row.accuracy, accuracy)),
    column("version", 10, 8, |row| words(row.version.as_ref())),
];

const fn column(head: &'static str, width: u16, rank: u8, figure: fn(&Row) -> Figure) -> Column {
    Column {
        head,
        width,
        rank,
        figure,
    }
}

fn figure(value: Option<f64>, words: fn(f64) -> String) -> Figure {
    Figure {
        text: known(value, words),
        key: number(value),
    }
}

fn words(text: Option<&String>) -> Figure {
    Figure {
        text: known(text, String::clone),
        key: text.cloned().map_or(Key::Unknown, Key::Text),
    }
}

impl Key {
    /// The order of two keys. Unknown keys come last, also in reverse.
    pub(crate) fn compare(&self, other: &Self, reversed: bool) -> Ordering {
        let order = match (self, other) {
            (Self::Unknown, Self::Unknown) => Ordering::Equal,
            (Self::Unknown, _) => return Ordering::Greater,
            (_, Self::Unknown) => return Ordering::Less,
            (Self::Number(a), Self::Number(b)) => a.total_cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Number(_), Self::Text(_)) => Ordering::Less,
            (Self::Text(_), Self::Number(_)) => Ordering::Greater,
        };
        if reversed { order.reverse() } else { order }
    }
}

fn number(value: Option<f64>) -> Key {
    value.map_or(Key::Unknown, Key::Number)
}

/// A figure in words, or what stands for one that is not known.
pub(crate) fn known<T>(value: Option<T>, words: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), words)
}

/// Lag or lead of a peer, after its round.
pub(crate) fn lag(lag: Option<i64>) -> String {
    match lag {
        None | Some(0) => String::new(),
        Some(lag) => format!(" ({:+})", -lag),
    }
}

/// The share of bytes that were lost. Small shares matter here.
pub(crate) fn lost(share: f64) -> String {
    if share > 0.0 && share < 0.01 {
        format!("{:.2} %", 100.0 * share)
    } else {
        percent(share)
    }
}

/// An accuracy. Near its end each tenth of a percent counts.
pub(crate) fn accuracy(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// The letters of a strip, each with its sign, its meaning and its tone.
pub(crate) const LETTERS: [(char, char, &str, Tone); 8] = [
    ('c', '█', "counted", Tone::Good),
    ('p', '▄', "in parts", Tone::Waits),
    ('l', '▁', "left out", Tone::Bad),
    ('k', '↷', "kept", Tone::Waits),
    ('a', '·', "absent", Tone::Quiet),
    ('n', '×', "no result", Tone::Bad),
    ('m', '~', "mixed", Tone::Good),
    ('?', '?', "unknown", Tone::Quiet),
];

/// The sign of a round in a strip, and its tone.
pub(crate) fn sign(letter: char) -> (char, Tone) {
    let known = LETTERS.iter().find(|(known, ..)| *known == letter);
    known.map_or(('?', Tone::Quiet), |(_, sign, _, tone)| (*sign, *tone))
}
