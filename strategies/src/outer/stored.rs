//! An outer optimizer with its state in memory, in f32 or in bf16.

use super::kind::STATE;
use super::{OuterKind, OuterOptimizer};
use crate::compress::{bf16_to_f32, f32_to_bf16};
use crate::state::{StateError, StateSink, StateSource, finite};
use std::ops::Range;

/// Values that are widened at a time for a step. They fit into the processor's cache.
const STEP_VALUES: usize = 4096;

/// Values that are widened at a time for a checkpoint: 16 MiB, and few names.
const SAVED_VALUES: usize = 1 << 22;

/// How a value of the state is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatePrecision {
    /// 4 bytes, exact.
    #[default]
    F32,
    /// 2 bytes, rounded after every step.
    Bf16,
}

impl StatePrecision {
    /// Bytes of a value.
    pub const fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::Bf16 => 2,
        }
    }

    /// How the configuration of an optimizer keeps its state.
    pub fn of(kind: &OuterKind) -> Self {
        if kind.has(STATE.name) && kind.count(STATE.name) == 1 {
            Self::Bf16
        } else {
            Self::F32
        }
    }
}

/// An outer optimizer whose state is kept in a [`StatePrecision`].
///
/// With [`StatePrecision::Bf16`] every step widens the momentum to f32, takes the optimizer's step, and
/// rounds the new momentum to the nearest bf16, ties to even. The anchor moves by the momentum before it
/// is rounded.
///
/// **Bound.** Rounding changes a value by at most `2^-8` of it (8 significant bits). A momentum
/// `m' = mu m + g` forgets by `mu`, so its error after any number of rounds is at most
///
/// ```text
/// |m_bf16 - m_f32| <= 2^-8 / (1 - mu) * max |m|          0.039 max |m| at mu = 0.9
/// ```
///
/// Equivalently, it is the exact momentum of pseudo-gradients that are wrong by at most `2^-8 |m|`: less
/// than what a codec with 8 bits leaves out. A second moment, or a sum that forgets nothing, has no such
/// bound, because steps smaller than `2^-9` of a value are lost. So only `nesterov` and `slow-mo` take it.
/// For the same reason the anchor is always f32.
///
/// Source of the format: Kalamkar et al., "A study of BFLOAT16 for deep learning training"
/// (arXiv 1905.12322). All peers round the same values in the same way, so they hold the same bits.
pub struct StoredOuter {
    /// With its whole state, or with room for one step's values where the state is in `halves`.
    optimizer: OuterOptimizer,
    halves: Option<Vec<u16>>,
    elementwise: bool,
}

impl StoredOuter {
    /// For `len` parameters.
    ///
    /// # Panics
    /// If the optimizer's state cannot be kept in bf16; the grid refuses such configurations.
    pub fn new(kind: &OuterKind, precision: StatePrecision, len: usize) -> Self {
        let (values, halves) = match precision {
            StatePrecision::F32 => (len, None),
            StatePrecision::Bf16 => {
                assert!(kind.is_momentum(), "{} has no bound in bf16", kind.name());
                (STEP_VALUES, Some(vec![0; len]))
            }
        };
        Self {
            optimizer: kind.build(values),
            halves,
            elementwise: kind.is_linear(),
        }
    }

    /// Set where a fragment may be applied piece by piece: no value's step depends on others, nor on their number.
    pub const fn is_elementwise(&self) -> bool {
        self.elementwise
    }

    /// As [`OuterOptimizer::apply`].
    pub fn apply(&mut self, range: Range<usize>, anchor: &mut [f32], delta: &mut [f32]) {
        let Some(halves) = &mut self.halves else {
            return self.optimizer.apply(range, anchor, delta);
        };
        assert!(anchor.len() == range.len() && delta.len() == range.len());
        let pieces = halves[range].chunks_mut(STEP_VALUES);
        let values = anchor
            .chunks_mut(STEP_VALUES)
            .zip(delta.chunks_mut(STEP_VALUES));
        for (kept, (anchor, delta)) in pieces.zip(values) {
            let len = kept.len();
            widen(kept, &mut self.optimizer.state_mut()[..len]);
            self.optimizer.apply(0..len, anchor, delta);
            round(&self.optimizer.state()[..len], kept);
        }
    }

    /// Begins again, as if no delta had come yet.
    pub fn reset(&mut self) {
        self.optimizer.reset();
        if let Some(halves) = &mut self.halves {
            halves.fill(0);
        }
    }

    /// The state as it is transferred: little-endian f32 or bf16.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.halves {
            Some(halves) => bytemuck::cast_slice(halves),
            None => bytemuck::cast_slice(self.optimizer.state()),
        }
    }

    /// The state, for a transferred one to be written into.
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.halves {
            Some(halves) => bytemuck::cast_slice_mut(halves),
            None => bytemuck::cast_slice_mut(self.optimizer.state_mut()),
        }
    }

    /// Check that all values are finite in a part of a transferred state: whole values, in a buffer that is
    /// aligned for them.
    pub fn all_finite(&self, part: &[u8]) -> bool {
        match self.halves {
            Some(_) => {
                let halves: &[u16] = bytemuck::cast_slice(part);
                halves.iter().all(|half| bf16_to_f32(*half).is_finite())
            }
            None => {
                let values: &[f32] = bytemuck::cast_slice(part);
                values.iter().all(|value| value.is_finite())
            }
        }
    }

    /// Writes the state to a checkpoint, as f32: `outer.state`, or `outer.half.N` in runs.
    ///
    /// # Errors
    /// The sink's.
    pub fn save(&self, sink: &mut dyn StateSink) -> Result<(), StateError> {
        let Some(halves) = &self.halves else {
            return self.optimizer.save(sink);
        };
        let mut room = Vec::new();
        for (index, piece) in halves.chunks(SAVED_VALUES).enumerate() {
            room.resize(piece.len(), 0.0);
            widen(piece, &mut room);
            sink.tensor(&name(index), &room)?;
        }
        Ok(())
    }

    /// Reads and checks what [`StoredOuter::save`] wrote, without a change.
    ///
    /// # Errors
    /// When it is missing, has another length, or a value is not finite.
    pub fn read(&self, source: &dyn StateSource) -> Result<SavedOuter, StateError> {
        let Some(halves) = &self.halves else {
            let state = finite(source, "outer.state", self.optimizer.state().len())?;
            return Ok(SavedOuter(Saved::Full(state)));
        };
        let mut saved = vec![0; halves.len()];
        for (index, piece) in saved.chunks_mut(SAVED_VALUES).enumerate() {
            round(&finite(source, &name(index), piece.len())?, piece);
        }
        Ok(SavedOuter(Saved::Halves(saved)))
    }

    /// Takes over what [`StoredOuter::read`] found.
    ///
    /// # Panics
    /// If another optimizer read it.
    pub fn restore(&mut self, saved: SavedOuter) {
        match (&mut self.halves, saved.0) {
            (Some(halves), Saved::Halves(saved)) => *halves = saved,
            (None, Saved::Full(saved)) => self.optimizer.state_mut().copy_from_slice(&saved),
            _ => panic!("a state is restored by the optimizer that read it"),
        }
    }
}

/// The state of an outer optimizer from a checkpoint, checked.
pub struct SavedOuter(Saved);

enum Saved {
    Full(Vec<f32>),
    Halves(Vec<u16>),
}

/// The name of a run of halves in a checkpoint.
fn name(index: usize) -> String {
    format!("outer.half.{index}")
}

fn widen(halves: &[u16], into: &mut [f32]) {
    let values = halves.iter().map(|half| bf16_to_f32(*half));
    into.iter_mut()
        .zip(values)
        .for_each(|(to, value)| *to = value);
}

fn round(values: &[f32], into: &mut [u16]) {
    let halves = values.iter().map(|value| f32_to_bf16(*value));
    into.iter_mut()
        .zip(halves)
        .for_each(|(to, half)| *to = half);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::MemoryState;

    const LEN: usize = 2 * STEP_VALUES + 77;
    /// With their default parameters.
    fn kinds() -> [OuterKind; 2] {
        ["nesterov", "slow-mo"].map(|name| OuterKind::new(name, &[]).unwrap())
    }

    /// The delta of a round: from -1 to 1, and of every size down to 2^-19.
    fn delta(round: usize) -> Vec<f32> {
        let value = |i: usize| ((round * 13 + i * 7) % 19) as f32 / 9.0 - 1.0;
        (0..LEN)
            .map(|i| value(i) * 0.5f32.powi((i % 20) as i32))
            .collect()
    }

    /// Applies rounds in two fragments.
    fn run(kind: OuterKind, precision: StatePrecision, rounds: usize) -> (Vec<f32>, StoredOuter) {
        let mut outer = StoredOuter::new(&kind, precision, LEN);
        let mut anchor = vec![0.5; LEN];
        for round in 0..rounds {
            let mut delta = delta(round);
            for fragment in [5000..LEN, 0..5000] {
                let part = fragment.clone();
                outer.apply(fragment, &mut anchor[part.clone()], &mut delta[part]);
            }
        }
        (anchor, outer)
    }

    #[test]
    fn the_error_of_the_momentum_stays_within_its_bound() {
        for kind in kinds() {
            let mu = kind.number("momentum");
            let mut exact = vec![0.0f64; LEN];
            let mut largest = vec![0.0f64; LEN];
            let mut outer = StoredOuter::new(&kind, StatePrecision::Bf16, LEN);
            let mut anchor = vec![0.5; LEN];
            for round in 0..200 {
                let mut delta = delta(round);
                for ((m, most), d) in exact.iter_mut().zip(&mut largest).zip(&delta) {
                    *m = mu * *m - f64::from(*d);
                    *most = most.max(m.abs());
                }
                outer.apply(0..LEN, &mut anchor, &mut delta);
                let kept: &[u16] = outer.halves.as_deref().unwrap();
                for ((half, m), most) in kept.iter().zip(&exact).zip(&largest) {
                    let error = (f64::from(bf16_to_f32(*half)) - m).abs();
                    // What is rounded is the momentum in bf16, which may exceed the exact one by the
                    // bound itself; and f32 adds its own rounding.
                    let bound = most / 256.0 / (1.0 - mu);
                    let slack = 1.0 + 1.0 / 256.0 / (1.0 - mu) + 1e-4;
                    assert!(error <= bound * slack, "{kind:?}: {error} > {bound}");
                }
            }
        }
    }

    #[test]
    fn the_first_step_is_exact() {
        for kind in kinds() {
            let (half, _) = run(kind, StatePrecision::Bf16, 1);
            let (full, _) = run(kind, StatePrecision::F32, 1);
            assert_eq!(half, full);
        }
    }

    #[test]
    fn the_state_takes_half_the_bytes_and_survives_a_checkpoint_and_a_transfer() {
        for kind in kinds() {
            let (anchor, mut outer) = run(kind, StatePrecision::Bf16, 9);
            assert_eq!(outer.as_bytes().len(), 2 * LEN);
            let mut state = MemoryState::default();
            outer.save(&mut state).unwrap();
            let mut restored = StoredOuter::new(&kind, StatePrecision::Bf16, LEN);
            let saved = restored.read(&state).unwrap();
            restored.restore(saved);
            let mut loaded = StoredOuter::new(&kind, StatePrecision::Bf16, LEN);
            assert!(loaded.all_finite(outer.as_bytes()));
            loaded.as_bytes_mut().copy_from_slice(outer.as_bytes());
            let next = |outer: &mut StoredOuter| {
                let mut anchor = anchor.clone();
                outer.apply(0..LEN, &mut anchor, &mut delta(9));
                anchor
            };
            let expected = next(&mut outer);
            assert_eq!(next(&mut restored), expected);
            assert_eq!(next(&mut loaded), expected);
        }
    }

    #[test]
    fn a_value_that_is_not_finite_is_seen() {
        let outer = StoredOuter::new(&kinds()[0], StatePrecision::Bf16, 4);
        let halves = [0u16, 0x7f80, 0, 0];
        assert!(!outer.all_finite(bytemuck::cast_slice(&halves)));
        assert!(outer.all_finite(bytemuck::cast_slice(&halves[2..])));
    }

    #[test]
    fn after_a_reset_it_is_as_new() {
        let (_, mut outer) = run(kinds()[0], StatePrecision::Bf16, 3);
        outer.reset();
        assert!(outer.as_bytes().iter().all(|byte| *byte == 0));
    }
}
