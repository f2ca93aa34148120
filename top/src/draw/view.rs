//! All that a frame shows, and where it comes from.

use crate::choice::Choice;
use crate::picture::Picture;
use crate::theme::Theme;

/// Where a picture comes from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Origin {
    /// A daemon, and whether the picture stands still.
    Live { target: String, paused: bool },
    /// An event log.
    Recorded(Moment),
}

/// A moment of a recorded run.
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
