//! Keys of `[daemon]` about watching a run: when to leave, and what to keep.

use super::error::Wrong;
use super::raw::RawDaemon;
use crate::goal::Target;
use crate::telemetry::{Collector, collector};
use std::path::PathBuf;

/// The reasons for which this daemon leaves by itself, and its records of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WatchConfig {
    /// Evaluations that end this daemon's part.
    pub target: Target,
    /// Rounds without a lower loss after which this daemon leaves; zero never.
    pub patience_rounds: u64,
    /// Set where the parameters with the lowest loss are kept in a file.
    pub keep_best: bool,
    /// Directory of metrics.
    pub metrics_dir: Option<PathBuf>,
    /// Where traces and metrics go, in builds with the feature `otlp`.
    pub otlp: Option<Collector>,
    /// Decay of the moving average of the anchor.
    pub ema: Option<f64>,
}

impl WatchConfig {
    /// Something is decided by evaluations, so each round needs one.
    pub(crate) fn judges(&self) -> bool {
        let ends = self.target != Target::default() || self.patience_rounds > 0;
        ends || self.keep_best
    }
}

/// The share that a percentage stands for, in words that follow others; nothing for other numbers.
pub(crate) fn as_share(given: f64) -> String {
    if !(1.0..=100.0).contains(&given) {
        return String::new();
    }
    format!("; {given} % is {}", given / 100.0)
}

/// Reads and checks the keys, for a run with this many rounds; zero has no end.
pub(super) fn watch(raw: &RawDaemon, rounds: u64) -> Result<WatchConfig, Wrong> {
    let share = |value: &f64| (0.0..=1.0).contains(value);
    if raw.until_accuracy.as_ref().is_some_and(|v| !share(v)) {
        let meant = raw.until_accuracy.map(as_share).unwrap_or_default();
        let message = format!("must be a share from 0 to 1{meant}");
        return Err(Wrong::of("daemon.until_accuracy", message));
    }
    if raw.until_loss.is_some_and(|loss| !loss.is_finite()) {
        let message = "must be a number: the loss in nats";
        return Err(Wrong::of("daemon.until_loss", message));
    }
    if raw.ema.is_some_and(|decay| !(0.0..1.0).contains(&decay)) {
        return Err(Wrong::of("daemon.ema", "must be in [0, 1), such as 0.999"));
    }
    let otlp = raw.otlp.as_deref().map(collector).transpose();
    let otlp = otlp.map_err(|why| Wrong::new("daemon.otlp", format!("`daemon.otlp`: {why}")))?;
    let watch = WatchConfig {
        otlp,
        target: Target {
            accuracy: raw.until_accuracy,
            loss: raw.until_loss,
        },
        patience_rounds: raw.patience_rounds,
        keep_best: raw.keep_best.unwrap_or(raw.patience_rounds > 0),
        metrics_dir: raw.metrics_dir.clone(),
        ema: raw.ema,
    };
    let needs_several = raw.patience_rounds > 0 || (rounds == 0 && watch.judges());
    if needs_several && raw.evaluate_every == Some(0) {
        let message = "must be above 0 with patience_rounds, and without `run.rounds` with a goal or keep_best";
        return Err(Wrong::of("daemon.evaluate_every", message));
    }
    Ok(watch)
}
