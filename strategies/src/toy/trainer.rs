//! The trainer of all toy tasks: parameters in a vector, an objective, an inner optimizer. Random numbers
//! are cheap, and the same on every machine.

use crate::inner::{InnerKind, InnerOptimizer};
use crate::state::{StateError, StateSink, StateSource};
use crate::{Gate, Layout, Proceed, StepControl, TrainError, TrainReport, Trainer, Visit};
use murmurate_protocol::{Evaluation, InnerStep, Round};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::ops::Range;
use std::sync::Arc;

/// The function that one peer minimizes.
pub trait Objective: Send {
    /// Names and shapes of the parameters.
    fn layout(&self) -> Layout;

    /// Samples of one batch.
    fn batch(&self) -> u64;

    /// Draws a batch, writes the gradient of its mean loss at `x`, and returns that loss.
    fn sample(&self, rng: &mut ChaCha8Rng, x: &[f32], gradient: &mut [f32]) -> f64;

    /// The loss of all peers together at `x`.
    fn evaluate(&self, x: &[f32]) -> Evaluation;
}

/// Words of random numbers between the held samples of two rounds, for each batch: more than a batch draws.
const HELD_WORDS: u128 = 1 << 24;

/// Takes inner steps on an [`Objective`], starting from zeros on all peers.
pub struct ToyTrainer<O> {
    objective: O,
    layout: Layout,
    x: Vec<f32>,
    gradient: Vec<f32>,
    inner: InnerOptimizer,
    rng: ChaCha8Rng,
    /// What a forward pass has computed before its gradients were asked for.
    begun: Option<Begun>,
    /// Seed and stream of the held sample.
    held: (u64, u64),
}

struct Begun {
    /// Where the draws were before it.
    position: u128,
    loss: f64,
}

impl<O: Objective> ToyTrainer<O> {
    /// For the peer whose own draws are this stream of the seed.
    pub fn new(objective: O, inner: &InnerKind, seed: u64, stream: u64) -> Self {
        let layout = objective.layout();
        let len = layout.len();
        Self {
            objective,
            x: vec![0.0; len],
            gradient: vec![0.0; len],
            inner: inner.build_for(&layout),
            layout,
            rng: draws_of(seed, stream),
            begun: None,
            held: (seed, stream),
        }
    }

    /// The objective.
    pub fn objective(&self) -> &O {
        &self.objective
    }

    /// The parameters.
    pub fn parameters(&self) -> &[f32] {
        &self.x
    }

    fn sample(&mut self) -> Result<f64, TrainError> {
        let loss = self
            .objective
            .sample(&mut self.rng, &self.x, &mut self.gradient);
        if loss.is_finite() {
            Ok(loss)
        } else {
            Err(TrainError::NotFinite)
        }
    }
}

impl<O: Objective> Trainer for ToyTrainer<O> {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn steps(&mut self, control: &mut dyn StepControl) -> Result<TrainReport, TrainError> {
        let mut report = TrainReport::default();
        while control.before(InnerStep(report.steps)) == Proceed::Go {
            report.loss += self.sample()?;
            for tensor in self.layout.tensors() {
                let range = tensor.range();
                let gradient = &mut self.gradient[range.clone()];
                control.correct(range.start, &self.x[range], gradient);
            }
            self.inner.set_rule(control.rule(InnerStep(report.steps)));
            self.inner.begin_step();
            self.inner
                .apply(0..self.x.len(), &mut self.x, &self.gradient);
            control.after(InnerStep(report.steps), self.objective.batch());
            report.steps += 1;
        }
        report.samples = report.steps * self.objective.batch();
        report.loss /= report.steps.max(1) as f64;
        Ok(report)
    }

    fn batch(&self) -> u64 {
        self.objective.batch()
    }

    fn gradients(&mut self, on_ready: Visit<'_>) -> Result<TrainReport, TrainError> {
        let loss = match self.begun.take() {
            Some(begun) => begun.loss,
            None => self.sample()?,
        };
        for tensor in self.layout.tensors().iter().rev() {
            let range = tensor.range();
            on_ready(range.start, &mut self.gradient[range]);
        }
        Ok(TrainReport {
            steps: 1,
            samples: self.objective.batch(),
            loss,
        })
    }

    fn forward(&mut self, gate: &Arc<dyn Gate>) -> Result<bool, TrainError> {
        for tensor in self.layout.tensors() {
            let range = tensor.range();
            if !gate.read(range.clone(), &mut self.x[range]) {
                return Ok(false);
            }
        }
        let position = self.rng.get_word_pos();
        let loss = self.sample()?;
        self.begun = Some(Begun { position, loss });
        Ok(true)
    }

    fn drop_forward(&mut self) {
        if let Some(begun) = self.begun.take() {
            self.rng.set_word_pos(begun.position);
        }
    }

    fn is_at_hand(&self) -> bool {
        true
    }

    fn visit(&mut self, range: Range<usize>, f: Visit<'_>) {
        if !range.is_empty() {
            f(range.start, &mut self.x[range]);
        }
    }

    fn evaluate(&mut self) -> Result<Evaluation, TrainError> {
        Ok(self.objective.evaluate(&self.x))
    }

    fn holds_a_sample(&self) -> bool {
        true
    }

    fn held_loss(&mut self, round: Round, batches: u16) -> Result<f64, TrainError> {
        // Of this peer's own data, in a stream that no training reaches.
        let (seed, stream) = self.held;
        let mut rng = draws_of(seed, STREAM_SCORES ^ stream);
        let each = u128::from(batches) * HELD_WORDS;
        rng.set_word_pos(u128::from(round.0) * each);
        let mut unused = vec![0.0; self.x.len()];
        let losses = (0..batches).map(|_| self.objective.sample(&mut rng, &self.x, &mut unused));
        Ok(losses.sum::<f64>() / f64::from(batches.max(1)))
    }

    fn save(&mut self, sink: &mut dyn StateSink) -> Result<(), StateError> {
        let begun = self.begun.as_ref().map(|begun| begun.position);
        let position = begun.unwrap_or_else(|| self.rng.get_word_pos());
        sink.bytes("trainer.position", &position.to_le_bytes())?;
        self.inner.save("trainer.inner", sink)
    }

    fn load(&mut self, source: &dyn StateSource) -> Result<(), StateError> {
        let bytes = source.bytes("trainer.position")?;
        let position = <[u8; 16]>::try_from(bytes.as_slice()).map_err(|_| {
            let reason = format!("{} bytes instead of 16", bytes.len());
            StateError::Malformed {
                name: "trainer.position".to_owned(),
                reason,
            }
        })?;
        self.inner.load("trainer.inner", source)?;
        self.begun = None;
        self.rng.set_word_pos(u128::from_le_bytes(position));
        Ok(())
    }
}

/// Streams of a seed that no peer uses for its own draws.
pub(super) const STREAM_TASK: u64 = u64::MAX;
/// Held samples of peers: combined with the peer's own stream.
pub(super) const STREAM_SCORES: u64 = 1 << 63;
/// Held data.
pub(super) const STREAM_HELD: u64 = u64::MAX - 1;

/// The generator of one stream; a peer's own stream is its index.
pub(super) fn draws_of(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    rng
}

/// Uniform in `[0, 1)`, 53 bits.
pub(super) fn uniform(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Nearly normal with mean 0 and variance 1: the sum of four uniform numbers from one draw. It
/// needs only sums and one product, so it is the same on every machine.
pub(super) fn normal(rng: &mut ChaCha8Rng) -> f32 {
    let bits = rng.next_u64();
    let sum = (0..4)
        .map(|part| (bits >> (16 * part)) & 0xffff)
        .sum::<u64>() as i64;
    // Four uniforms over 2^16 values have mean 2 (2^16 - 1) and variance 4 (2^32 - 1) / 12.
    const SCALE: f64 = 1.732_050_807_568_877_2 / 65536.0;
    ((sum - 2 * 65535) as f64 * SCALE) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_draws_have_mean_zero_and_variance_one() {
        let mut rng = draws_of(1, 2);
        let draws: Vec<f64> = (0..100_000).map(|_| f64::from(normal(&mut rng))).collect();
        let mean = draws.iter().sum::<f64>() / 1e5;
        let variance = draws.iter().map(|d| d * d).sum::<f64>() / 1e5;
        // Five standard errors.
        assert!(
            mean.abs() < 0.016 && (variance - 1.0).abs() < 0.023,
            "{mean} {variance}"
        );
    }
}
