//! The anchor: the last parameters agreed on, or those that opened the round, the optimizers that move it, and
//! its moving average.

use super::host::StateBytes;
use super::late::Halves;
use super::rules::Rules;
use crate::inner::InnerOptimizer;
use crate::outer::{SavedOuter, StoredOuter};
use crate::state::{StateError, StateSink, StateSource, finite, number};
use murmurate_protocol::{Round, TrainingRules};
use std::io::{self, Write};
use std::ops::Range;

/// Bytes that are checked at a time. They fit into the processor's cache.
const PIECE_BYTES: usize = 256 << 10;

/// The name of first halves in a checkpoint.
const HALVES: &str = "overlap.halves";

/// The anchor with its companion, and what moves it.
pub(super) struct Anchor {
    pub(super) values: Vec<f32>,
    /// Number of parameters; the companion comes behind them.
    parameters: usize,
    outer: StoredOuter,
    /// The shared inner optimizer of methods that exchange gradients.
    inner: Option<InnerOptimizer>,
    /// First halves of steps whose gradients come in two rounds.
    halves: Option<Halves>,
    /// The last round in which the shared inner optimizer took its step.
    inner_round: Option<Round>,
    /// Room for momenta that are sent in place of gradients.
    momenta: Vec<f32>,
    /// The rules of the shared inner optimizer's steps.
    rules: Rules,
    /// The round that this peer trains: the clock of steps that belong to no round.
    clock: Round,
}

impl Anchor {
    pub(super) fn new(
        values: Vec<f32>,
        parameters: usize,
        outer: StoredOuter,
        inner: Option<InnerOptimizer>,
        halves: Option<Halves>,
        rules: Rules,
    ) -> Self {
        Self {
            values,
            parameters,
            outer,
            inner,
            halves,
            inner_round: None,
            momenta: Vec::new(),
            rules,
            clock: Round(0),
        }
    }

    /// This peer begins to train a round.
    pub(super) const fn round_begins(&mut self, round: Round) {
        self.clock = round;
    }

    /// What the owner of the run has changed of the round that is trained or applied next.
    pub(super) fn direct(&mut self, rules: TrainingRules) {
        self.rules.direct(rules);
    }

    /// The parameters, without the companion.
    pub(super) fn parameters(&self) -> &[f32] {
        &self.values[..self.parameters]
    }

    /// The parameters and the companion, and the outer optimizer that moves the parameters.
    pub(super) fn split(&mut self) -> (&mut [f32], &mut [f32], &mut StoredOuter) {
        let (parameters, companion) = self.values.split_at_mut(self.parameters);
        (parameters, companion, &mut self.outer)
    }

    /// Moves the anchor by an aggregated delta (outer optimizer) or gradient (inner optimizer), and
    /// the companion by its aggregate.
    pub(super) fn step(&mut self, round: Round, range: Range<usize>, aggregate: &mut [f32]) {
        let values = &mut self.values[range.clone()];
        if range.start >= self.parameters {
            let moved = values.iter_mut().zip(&*aggregate);
            return moved.for_each(|(c, d)| *c += d);
        }
        match (&mut self.inner, &mut self.halves) {
            (Some(inner), Some(halves)) => {
                let rule = self.rules.of_round(round);
                halves.step(inner, round, rule, range, values, aggregate);
            }
            (Some(inner), None) => {
                // A round is one inner step, whose fragments come one after another.
                if self.inner_round != Some(round) {
                    self.inner_round = Some(round);
                    inner.set_rule(self.rules.of_round(round));
                    inner.begin_step();
                }
                inner.apply(range, values, aggregate);
            }
            (None, _) => self.outer.apply(range, values, aggregate),
        }
    }

    /// Set where [`Anchor::step`] may take a fragment's aggregate in pieces.
    pub(super) const fn steps_in_pieces(&self) -> bool {
        self.inner.is_none() && self.outer.is_elementwise()
    }

    /// What the shared inner optimizer takes the mean of, made of this peer's gradient, and the anchor
    /// at these places. Usually it is the gradient itself.
    pub(super) fn outgoing<'a>(
        &'a mut self,
        range: Range<usize>,
        gradient: &'a [f32],
    ) -> (&'a [f32], &'a [f32]) {
        let anchor = &self.values[range.clone()];
        match &self.inner {
            Some(inner) if inner.takes_momenta() => {
                self.momenta.clear();
                self.momenta.extend_from_slice(gradient);
                inner.outgoing(range, &mut self.momenta);
                (&self.momenta, anchor)
            }
            _ => (gradient, anchor),
        }
    }

    /// Moves values that lie elsewhere, such as a center's, by one aggregate as one step. Arrivals at
    /// a center belong to no round: the rate is that of the round which its owner trains.
    pub(super) fn step_elsewhere(
        &mut self,
        range: Range<usize>,
        values: &mut [f32],
        aggregate: &mut [f32],
    ) {
        match &mut self.inner {
            Some(inner) => {
                inner.set_rule(self.rules.of_round(self.clock));
                inner.begin_step();
                inner.apply(range, values, aggregate);
            }
            None => self.outer.apply(range, values, aggregate),
        }
    }

    /// The outer optimizer begins again: another anchor took the place of this one. Sides that exchange gradients
    /// are not merged, so a shared inner optimizer has nothing to forget.
    pub(super) fn reset_outer(&mut self) {
        self.outer.reset();
    }

    /// Bytes of the states of both optimizers, and of first halves.
    pub(super) fn state_bytes(&self) -> usize {
        let values = self.inner_len() + self.halves().len();
        self.outer.as_bytes().len() + size_of::<f32>() * values
    }

    fn halves(&self) -> &[f32] {
        self.halves.as_ref().map_or(&[], Halves::state)
    }

    fn inner_len(&self) -> usize {
        self.inner.as_ref().map_or(0, |inner| inner.state().len())
    }

    /// Inner steps that the shared inner optimizer has taken.
    pub(super) fn inner_steps(&self) -> u64 {
        self.inner.as_ref().map_or(0, |inner| inner.step_count())
    }

    /// Bytes that [`Anchor::write`] appends.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.values.as_slice()) + self.state_bytes()
    }

    /// Writes values, outer and inner optimizer, and first halves, little-endian.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(bytemuck::cast_slice(&self.values))?;
        out.write_all(self.outer.as_bytes())?;
        if let Some(inner) = &self.inner {
            out.write_all(bytemuck::cast_slice(inner.state()))?;
        }
        out.write_all(bytemuck::cast_slice(self.halves()))
    }

    /// Takes over what [`Anchor::write`] wrote: the [`Anchor::bytes`] bytes of `state` that start
    /// at `at`.
    pub(super) fn overwrite(
        &mut self,
        state: &dyn StateBytes,
        mut at: u64,
        inner_steps: u64,
    ) -> io::Result<()> {
        let mut fill = |bytes: &mut [u8]| {
            let read = state.read_at(at, bytes);
            at += bytes.len() as u64;
            read
        };
        fill(bytemuck::cast_slice_mut(&mut self.values))?;
        fill(self.outer.as_bytes_mut())?;
        if let Some(optimizer) = &mut self.inner {
            fill(bytemuck::cast_slice_mut(optimizer.state_mut()))?;
            optimizer.set_step_count(inner_steps);
        }
        if let Some(halves) = &mut self.halves {
            fill(bytemuck::cast_slice_mut(halves.state_mut()))?;
        }
        Ok(())
    }

    /// All values are finite in what [`Anchor::write`] wrote: the [`Anchor::bytes`] bytes of
    /// `state` that start at `at`.
    pub(super) fn all_finite(&self, state: &dyn StateBytes, at: u64) -> io::Result<bool> {
        let outer = at + size_of_val(self.values.as_slice()) as u64;
        let inner = outer + self.outer.as_bytes().len() as u64;
        let end = at + self.bytes() as u64;
        let finite = |part: &[u8]| {
            let values: &[f32] = bytemuck::cast_slice(part);
            values.iter().all(|value| value.is_finite())
        };
        Ok(all_pieces(state, at..outer, finite)?
            && all_pieces(state, outer..inner, |part| self.outer.all_finite(part))?
            && all_pieces(state, inner..end, finite)?)
    }

    /// Writes `anchor` and `companion` to a checkpoint.
    pub(super) fn save_values(&self, sink: &mut dyn StateSink) -> Result<(), StateError> {
        let (parameters, companion) = self.values.split_at(self.parameters);
        sink.tensor("anchor", parameters)?;
        match companion {
            [] => Ok(()),
            companion => sink.tensor("companion", companion),
        }
    }

    /// Writes the outer optimizer's state to a checkpoint.
    pub(super) fn save_outer(&self, sink: &mut dyn StateSink) -> Result<(), StateError> {
        self.outer.save(sink)
    }

    /// Writes the shared inner optimizer's state and first halves to a checkpoint.
    pub(super) fn save_inner(&self, sink: &mut dyn StateSink) -> Result<(), StateError> {
        if let Some(halves) = &self.halves {
            sink.tensor(HALVES, halves.state())?;
        }
        self.inner
            .as_ref()
            .map_or(Ok(()), |inner| inner.save("inner", sink))
    }

    /// Reads and checks what the three `save_` functions wrote, without a change.
    pub(super) fn read(&self, source: &dyn StateSource) -> Result<SavedAnchor, StateError> {
        let mut values = finite(source, "anchor", self.parameters)?;
        let companion = self.values.len() - self.parameters;
        values.append(&mut finite(source, "companion", companion)?);
        let inner = match &self.inner {
            Some(_) => Some((
                number(source, "inner.steps")?,
                finite(source, "inner.state", self.inner_len())?,
            )),
            None => None,
        };
        Ok(SavedAnchor {
            values,
            outer: self.outer.read(source)?,
            inner,
            halves: finite(source, HALVES, self.halves().len())?,
        })
    }

    /// Takes over what [`Anchor::read`] found.
    pub(super) fn restore(&mut self, saved: SavedAnchor) {
        self.values = saved.values;
        self.outer.restore(saved.outer);
        if let (Some(inner), Some((steps, state))) = (&mut self.inner, saved.inner) {
            inner.state_mut().copy_from_slice(&state);
            inner.set_step_count(steps);
        }
        if let Some(halves) = &mut self.halves {
            halves.state_mut().copy_from_slice(&saved.halves);
        }
    }
}

/// An anchor and its optimizers' states from a checkpoint, checked.
pub(super) struct SavedAnchor {
    values: Vec<f32>,
    outer: SavedOuter,
    /// The shared inner optimizer: steps and state.
    inner: Option<(u64, Vec<f32>)>,
    /// First halves of steps; empty where steps have none.
    halves: Vec<f32>,
}

/// `holds` is true for every piece of a range of a state. Pieces are aligned for f32 and consist
/// of whole values.
fn all_pieces(
    state: &dyn StateBytes,
    range: Range<u64>,
    holds: impl Fn(&[u8]) -> bool,
) -> io::Result<bool> {
    let mut room = vec![0.0f32; PIECE_BYTES / size_of::<f32>()];
    let mut at = range.start;
    while at < range.end {
        let len = (range.end - at).min(PIECE_BYTES as u64);
        let piece = &mut bytemuck::cast_slice_mut(&mut room)[..len as usize];
        state.read_at(at, piece)?;
        if !holds(piece) {
            return Ok(false);
        }
        at += len;
    }
    Ok(true)
}

/// Its name in a checkpoint.
const EMA: &str = "ema";

/// The exponential moving average of the anchor.
///
/// ```text
/// e' = d e + (1 - d) a,   d = min(decay, (1 + r) / (10 + r))
/// ```
///
/// after each round r that changes the anchor a, fragment by fragment. The smaller d of the first rounds
/// makes e forget where it began. Shapes: `[len]`, f32: one time the parameters. It is this peer's own
/// and changes nothing that others see. Source: Polyak and Juditsky, "Acceleration of stochastic
/// approximation by averaging" (1992); d as in `tf.train.ExponentialMovingAverage`. Special case:
/// `decay = 0` is the anchor.
#[derive(Clone, Debug)]
pub(super) struct Ema {
    decay: f64,
    values: Vec<f32>,
}

impl Ema {
    pub(super) fn new(decay: f64, anchor: &[f32]) -> Self {
        Self {
            decay,
            values: anchor.to_vec(),
        }
    }

    /// Number of f32 that it keeps.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// A fragment's round has ended with this anchor. A fragment of the companion is left out.
    pub(super) fn follow(&mut self, round: Round, range: Range<usize>, anchor: &[f32]) {
        let Some(values) = self.values.get_mut(range.clone()) else {
            return;
        };
        let rounds = round.0 as f64;
        let keep = self.decay.min((1.0 + rounds) / (10.0 + rounds)) as f32;
        for (e, a) in values.iter_mut().zip(&anchor[range]) {
            *e = keep * *e + (1.0 - keep) * a;
        }
    }

    /// The anchor was replaced by another state: begins again there.
    pub(super) fn start_over(&mut self, anchor: &[f32]) {
        let len = self.values.len();
        self.values.copy_from_slice(&anchor[..len]);
    }

    pub(super) fn save(&self, sink: &mut dyn StateSink) -> Result<(), StateError> {
        sink.tensor(EMA, &self.values)
    }

    /// Reads it from a checkpoint; `None` from one that was written without it.
    pub(super) fn read(&self, source: &dyn StateSource) -> Result<Option<Vec<f32>>, StateError> {
        let there = source.contains(EMA);
        there
            .then(|| finite(source, EMA, self.values.len()))
            .transpose()
    }

    /// Takes over what [`Ema::read`] found.
    pub(super) fn restore(&mut self, values: Vec<f32>) {
        self.values = values;
    }
}
