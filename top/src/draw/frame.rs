//! All that a frame shows, and helpers for text in its cells.

use crate::choice::Choice;
use crate::picture::Picture;
use crate::theme::Theme;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::symbols;

/// Where a picture comes from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Origin {
    /// A daemon, and whether the picture stands still.
    Live { target: String, paused: bool },
    /// An event log.
    Recorded(Moment),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moment {
    /// Unix time, seconds.
    pub(crate) unix_s: f64,
    /// Seconds since the first entry.
    pub(crate) at_s: f64,
    /// Seconds from the first entry to the last.
    pub(crate) of_s: f64,
    pub(crate) speed: f64,
    pub(crate) playing: bool,
}

/// All that a frame shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub(crate) picture: &'a Picture,
    pub(crate) choice: &'a Choice,
    pub(crate) origin: &'a Origin,
    pub(crate) theme: Theme,
    /// Unix time, seconds.
    pub(crate) now: f64,
}

/// The space between two things in a line.
const GAP: &str = "  ";

pub(super) fn fill(buffer: &mut Buffer, area: Rect, style: Style) {
    buffer.set_style(area, style);
}

/// A vertical line in the first column of an area.
pub(super) fn rule(buffer: &mut Buffer, area: Rect) {
    for y in area.top()..area.bottom() {
        buffer.set_string(area.x, y, symbols::line::VERTICAL, Style::new());
    }
}

/// Things one after the other, with a new line where the next has no room. What has no line is left out.
pub(super) fn flowed(things: &[String], width: u16, lines: u16) -> Vec<String> {
    let (width, lines) = (usize::from(width), usize::from(lines));
    let mut flowed: Vec<String> = Vec::new();
    for thing in things {
        let long = thing.chars().count();
        let full = flowed.len() >= lines;
        match flowed.last_mut() {
            Some(line) if line.chars().count() + GAP.len() + long <= width => {
                line.push_str(GAP);
                line.push_str(thing);
            }
            _ if full => break,
            _ => flowed.push(thing.clone()),
        }
    }
    flowed
}

/// Words in lines of a width. If they need more lines, the last one ends in `…`.
pub(super) fn wrapped(text: &str, width: u16, lines: u16) -> Vec<String> {
    let (width, lines) = (usize::from(width), usize::from(lines));
    let mut wrapped: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let long = word.chars().count();
        match wrapped.last_mut() {
            Some(line) if line.chars().count() + 1 + long <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => wrapped.push(word.to_owned()),
        }
    }
    if wrapped.len() > lines {
        wrapped.truncate(lines);
        if let Some(last) = wrapped.last_mut() {
            while last.chars().count() + 2 > width {
                let kept = last.rfind(' ').unwrap_or(0);
                last.truncate(kept);
            }
            last.push_str(" …");
        }
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_full_and_not_longer() {
        let things = ["aa", "bbb", "cc", "d"].map(str::to_owned);
        assert_eq!(flowed(&things, 8, 9), ["aa  bbb", "cc  d"]);
        assert_eq!(flowed(&things, 8, 1), ["aa  bbb"]);
        assert_eq!(wrapped("one two three", 7, 9), ["one two", "three"]);
        assert_eq!(wrapped("one two three four", 7, 2), ["one two", "three …"]);
        assert_eq!(wrapped("one two three", 7, 1), ["one …"]);
        assert!(wrapped("", 7, 2).is_empty());
    }
}
