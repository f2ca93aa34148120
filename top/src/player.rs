//! Plays a recording: which moment is shown, and how fast it moves.

use crate::draw::Moment;
use crate::picture::Picture;
use crate::recording::Recording;
use crate::scene::Scene;

/// The slowest and the fastest speed.
const SPEEDS: (f64, f64) = (0.125, 64.0);

/// A recording at a moment.
#[derive(Debug)]
pub(crate) struct Player {
    recording: Recording,
    scene: Scene,
    taken: usize,
    start: f64,
    end: f64,
    /// Unix time, seconds.
    at: f64,
    speed: f64,
    playing: bool,
}

impl Player {
    /// At the start.
    pub(crate) fn new(recording: Recording) -> Self {
        let times = || recording.entries.iter().map(|entry| entry.time);
        let start = times().reduce(f64::min).unwrap_or(0.0);
        let end = times().reduce(f64::max).unwrap_or(0.0);
        Self {
            scene: Scene::new(&recording.me, &recording.names),
            taken: 0,
            start,
            end,
            at: start,
            speed: 1.0,
            playing: true,
            recording,
        }
    }

    pub(crate) fn seek(&mut self, seconds: f64) {
        self.at = (self.at + seconds).clamp(self.start, self.end);
        let entries = self.recording.entries.iter();
        let due = entries.take_while(|entry| entry.time <= self.at).count();
        if due < self.taken {
            self.scene = Scene::new(&self.recording.me, &self.recording.names);
            self.taken = 0;
        }
        let fresh = &self.recording.entries[self.taken..due];
        fresh.iter().for_each(|entry| self.scene.take(entry));
        self.taken = due;
    }

    /// Lets this many seconds of the viewer pass.
    pub(crate) fn pass(&mut self, seconds: f64) {
        if self.playing {
            self.seek(seconds * self.speed);
        }
    }

    /// Stops, or goes on.
    pub(crate) fn pause(&mut self) {
        self.playing = !self.playing;
    }

    /// Multiplies the speed.
    pub(crate) fn faster(&mut self, times: f64) {
        self.speed = (self.speed * times).clamp(SPEEDS.0, SPEEDS.1);
    }

    /// Moves to the end.
    pub(crate) fn finish(&mut self) {
        self.seek(f64::INFINITY);
    }

    pub(crate) fn moment(&self) -> Moment {
        Moment {
            unix_s: self.at,
            at_s: self.at - self.start,
            of_s: self.end - self.start,
            speed: self.speed,
            playing: self.playing,
        }
    }

    pub(crate) fn picture(&self) -> Picture {
        self.scene.picture(self.at)
    }
}
