//! The columns of the table of daemons. A new figure is a field of [`Row`] and an entry of [`COLUMNS`].

use crate::row::Row;
use crate::theme::Tone;
use murmurate_node::api::words::{percent, rate, time};
use std::cmp::Ordering;

/// The narrowest strip of rounds that is worth its room.
pub(crate) const STRIP_MIN: u16 = 8;

/// The rounds of a strip.
pub(crate) const STRIP_MAX: u16 = 32;

/// Sign for an unknown figure.
const UNKNOWN: &str = "–";

/// A column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) head: &'static str,
    pub(crate) width: u16,
    /// Columns of the highest ranks are left out where there is no room.
    pub(crate) rank: u8,
    /// The text of a row.
    pub(crate) text: fn(&Row) -> String,
    /// Sort key of rows.
    pub(crate) key: fn(&Row) -> Key,
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

/// All columns, from left to right.
pub(crate) const COLUMNS: [Column; 12] = [
    Column {
        head: "peer",
        width: 10,
        rank: 0,
        text: |row| row.name.clone(),
        key: |row| Key::Text(row.name.clone()),
    },
    Column {
        head: "state",
        width: 11,
        rank: 0,
        text: |row| format!("{} {}", row.state.sign(), row.state.word()),
        key: |row| Key::Number(row.state.rank().into()),
    },
    Column {
        head: "round",
        width: 9,
        rank: 0,
        text: |row| known(row.round, |round| format!("{round}{}", lag(row.lag))),
        key: |row| number(row.round.map(|round| round as f64)),
    },
    Column {
        head: "last rounds",
        width: STRIP_MIN,
        rank: 0,
        text: |row| row.strip.chars().map(|letter| sign(letter).0).collect(),
        key: |row| Key::Number(row.counted() as f64),
    },
    Column {
        head: "share",
        width: 5,
        rank: 2,
        text: |row| known(row.share, percent),
        key: |row| number(row.share),
    },
    Column {
        head: "waited",
        width: 7,
        rank: 1,
        text: |row| known(row.waited_s, time),
        key: |row| number(row.waited_s),
    },
    Column {
        head: "RTT",
        width: 7,
        rank: 3,
        text: |row| known(row.rtt_s, time),
        key: |row| number(row.rtt_s),
    },
    Column {
        head: "lost",
        width: 6,
        rank: 4,
        text: |row| known(row.lost, lost),
        key: |row| number(row.lost),
    },
    Column {
        head: "rate",
        width: 11,
        rank: 5,
        text: |row| known(row.bytes_per_s, rate),
        key: |row| number(row.bytes_per_s),
    },
    Column {
        head: "path",
        width: 8,
        rank: 6,
        text: |row| known(row.path.clone(), |path| path),
        key: |row| row.path.clone().map_or(Key::Unknown, Key::Text),
    },
    Column {
        head: "accuracy",
        width: 8,
        rank: 7,
        text: |row| known(row.accuracy, accuracy),
        key: |row| number(row.accuracy),
    },
    Column {
        head: "version",
        width: 10,
        rank: 8,
        text: |row| known(row.version.clone(), |version| version),
        key: |row| row.version.clone().map_or(Key::Unknown, Key::Text),
    },
];

impl Key {
    /// The order of two keys. What is not known comes last, also in reverse.
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
