//! A trainer that does not train: each of its inner steps replaces the parameters by numbers drawn
//! from (peer, step, index). It stores no parameters, so a benchmark with it measures the exchange
//! alone. It can also compute the expected mean over all peers.

use crate::{cpu_time, fresh_pages};
use murmurate_protocol::{Evaluation, InnerStep};
use murmurate_strategies::state::{StateError, StateSink, StateSource};
use murmurate_strategies::{Layout, Proceed, StepControl, TrainError, TrainReport, Trainer};
use std::ops::Range;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Number of values drawn at a time. They fit into the processor's cache.
const PIECE: usize = 16 * 1024;

/// One of this many pieces is compared with the expected mean.
const CHECKED: usize = 16;

/// Magnitude of the values, similar to that of a delta.
const SCALE: f32 = 0.01;

/// The start of an inner step, with the error of the last mean.
#[derive(Clone, Copy, Debug)]
pub struct Lap {
    /// The time.
    pub at: Instant,
    /// CPU time of the process up to this time.
    pub cpu: Duration,
    /// Pages that the process has touched for the first time up to this time.
    pub fresh_pages: u64,
    /// Sum of the squared errors of the anchor against the expected mean, over the checked values.
    pub error: f64,
    /// Sum of the squares of the expected mean, over the checked values.
    pub norm: f64,
}

/// The laps of a [`Still`] trainer, shared with the function that gave it to the daemon.
pub type Laps = Arc<Mutex<Vec<Lap>>>;

/// A trainer that does not train; see the module.
#[derive(Debug)]
pub struct Still {
    layout: Layout,
    rank: u32,
    peers: u32,
    steps: u64,
    error: f64,
    norm: f64,
    piece: Vec<f32>,
    laps: Laps,
    /// Duration of an inner step.
    pace: Duration,
}

impl Still {
    /// The trainer of peer `rank` among `peers`.
    pub fn new(parameters: usize, rank: u32, peers: u32, laps: Laps) -> Self {
        Self {
            layout: Layout::new([("still", vec![parameters as u64])]),
            rank,
            peers,
            steps: 0,
            error: 0.0,
            norm: 0.0,
            piece: vec![0.0; PIECE],
            laps,
            pace: Duration::ZERO,
        }
    }

    /// Lets every inner step last this long, without work.
    #[must_use]
    pub fn pacing(self, pace: Duration) -> Self {
        Self { pace, ..self }
    }

    fn compare(&mut self, start: usize, len: usize) {
        let (mut sums, mut drawn) = (vec![0.0; len], vec![0.0; len]);
        for rank in 0..self.peers {
            draw(rank, self.steps, start, &mut drawn);
            let pairs = sums.iter_mut().zip(&drawn);
            pairs.for_each(|(sum, value)| *sum += f64::from(*value));
        }
        for (sum, found) in sums.into_iter().zip(&self.piece) {
            let mean = sum / f64::from(self.peers);
            let off = f64::from(*found) - mean;
            self.error += off * off;
            self.norm += mean * mean;
        }
    }
}

/// The numbers that peers draw, each beginning at another place in each step. To read parameters costs as much of a
/// trainer that has them. They are the low bits of a wrapping product, mapped to [-SCALE, SCALE).
static DRAWN: LazyLock<Vec<f32>> = LazyLock::new(|| {
    let value = |index: u32| {
        let mixed = index.wrapping_mul(0xC2B2_AE35);
        let mixed = (mixed ^ (mixed >> 15)).wrapping_mul(0x27D4_EB2F);
        (mixed as i32) as f32 * (SCALE / 2_147_483_648.0)
    };
    (0..1 << 20).map(value).collect()
});

/// The parameters of peer `rank` after `steps` inner steps, from `start` on; zeros before the first.
fn draw(rank: u32, steps: u64, start: usize, into: &mut [f32]) {
    if steps == 0 {
        return into.fill(0.0);
    }
    let key = (rank + 1).wrapping_mul(0x9E37_79B9) ^ (steps as u32).wrapping_mul(0x85EB_CA6B);
    let (mut at, mut rest) = ((key as usize + start) % DRAWN.len(), into);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at_mut(rest.len().min(DRAWN.len() - at));
        piece.copy_from_slice(&DRAWN[at..][..piece.len()]);
        (at, rest) = (0, after);
    }
}

impl Trainer for Still {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn steps(&mut self, control: &mut dyn StepControl) -> Result<TrainReport, TrainError> {
        let lap = Lap {
            at: Instant::now(),
            cpu: cpu_time(),
            fresh_pages: fresh_pages(),
            error: std::mem::take(&mut self.error),
            norm: std::mem::take(&mut self.norm),
        };
        let mut laps = self.laps.lock().unwrap_or_else(PoisonError::into_inner);
        laps.push(lap);
        drop(laps);
        let mut report = TrainReport::default();
        while control.before(InnerStep(report.steps)) == Proceed::Go {
            std::thread::sleep(self.pace);
            self.steps += 1;
            control.after(InnerStep(report.steps), 1);
            report.steps += 1;
        }
        report.samples = report.steps;
        Ok(report)
    }

    fn batch(&self) -> u64 {
        1
    }

    fn gradients(
        &mut self,
        _on_ready: &mut dyn FnMut(usize, &mut [f32]),
    ) -> Result<TrainReport, TrainError> {
        Err(TrainError::Backend(
            "this trainer has no gradients: choose a preset that exchanges deltas".to_owned(),
        ))
    }

    fn is_at_hand(&self) -> bool {
        true
    }

    fn visit(&mut self, range: Range<usize>, f: &mut dyn FnMut(usize, &mut [f32])) {
        let (rank, steps) = (self.rank, self.steps);
        for start in range.clone().step_by(PIECE) {
            let piece = &mut self.piece[..PIECE.min(range.end - start)];
            draw(rank, steps, start, piece);
            f(start, piece);
        }
    }

    fn read(&mut self, offset: usize, into: &mut [f32]) {
        draw(self.rank, self.steps, offset, into);
    }

    fn write(&mut self, offset: usize, values: &[f32]) {
        for (count, piece) in values.chunks(PIECE).enumerate() {
            // Written as a trainer would, so that its share of the memory bandwidth is measured.
            self.piece[..piece.len()].copy_from_slice(piece);
            if count % CHECKED == 0 {
                self.compare(offset + count * PIECE, piece.len());
            }
        }
    }

    fn evaluate(&mut self) -> Result<Evaluation, TrainError> {
        Ok(Evaluation {
            loss: 0.0,
            accuracy: None,
            top_5: None,
            samples: 0,
        })
    }

    fn save(&mut self, sink: &mut dyn StateSink) -> Result<(), StateError> {
        sink.bytes("trainer.steps", &self.steps.to_le_bytes())
    }

    fn load(&mut self, source: &dyn StateSource) -> Result<(), StateError> {
        let bytes = source.bytes("trainer.steps")?;
        let bytes = <[u8; 8]>::try_from(bytes.as_slice()).map_err(|_| StateError::Malformed {
            name: "trainer.steps".to_owned(),
            reason: format!("{} bytes instead of 8", bytes.len()),
        })?;
        self.steps = u64::from_le_bytes(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Once;

    impl StepControl for Once {
        fn before(&mut self, step: InnerStep) -> Proceed {
            if step.0 == 0 {
                Proceed::Go
            } else {
                Proceed::Stop
            }
        }
    }

    #[test]
    fn peers_start_alike_and_the_mean_is_known() {
        let laps = Laps::default();
        let len = 40_000;
        let mut peers: Vec<Still> = (0..3)
            .map(|rank| Still::new(len, rank, 3, Arc::clone(&laps)))
            .collect();
        let mut mean = vec![0.0f32; len];
        for peer in &mut peers {
            peer.steps(&mut Once).unwrap();
            peer.visit(0..len, &mut |offset, piece| {
                for (at, value) in piece.iter().enumerate() {
                    mean[offset + at] += value / 3.0;
                }
            });
        }
        let install = |peer: &mut Still, values: &[f32]| {
            peer.write(0, values);
            peer.steps(&mut Once).unwrap();
            let lap = *laps.lock().unwrap().last().unwrap();
            (lap.error / lap.norm).sqrt()
        };
        assert!(install(&mut peers[0], &mean) < 1e-6);
        mean.iter_mut().for_each(|m| *m *= 1.5);
        assert!((install(&mut peers[1], &mean) - 0.5).abs() < 1e-3);
    }
}
