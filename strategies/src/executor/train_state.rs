//! The train lane's part of a checkpoint.

use super::frame::Handed;
use super::train_lane::TrainLane;
use crate::correct::Correction;
use crate::state::{StateError, StateSink, StateSource};
use crate::trainer::{TrainError, Trainer};

/// A correction's state in a checkpoint, and the inner steps since the parameters were last agreed
/// on.
const CORRECTION: &str = "trainer.correction.state";
const CORRECTION_STEPS: &str = "trainer.correction.steps";

/// The parameters in a checkpoint, where training continues past the anchor.
const PARAMETERS: &str = "trainer.parameters";

impl TrainLane {
    /// Receives what the mix lane gives for a `Save`, after its
    /// [`begin_save`](super::MixLane::begin_save).
    pub fn begin_save(&mut self) {
        if self.trainer.travels() {
            self.install();
        }
    }

    /// Gives the mix lane back what it gave for a `Save`, whatever became of that.
    pub fn end_save(&mut self) {
        if let Some(trainer) = self.trainer.take_borrowed() {
            self.frames.send(Handed::Back(trainer));
        }
    }

    /// Writes the trainer's state.
    ///
    /// # Errors
    /// The sink's; or the trainer is not here.
    pub fn save(&mut self, sink: &mut dyn StateSink) -> Result<(), StateError> {
        match self
            .correction
            .as_deref()
            .map_or(&[][..], Correction::state)
        {
            [] => {}
            state => {
                sink.tensor(CORRECTION, state)?;
                sink.bytes(CORRECTION_STEPS, &self.steps.to_le_bytes())?;
            }
        }
        if self.trains_ahead {
            let mut values = vec![0.0; self.trainer.parameters()];
            self.here()?.read(0, &mut values);
            sink.tensor(PARAMETERS, &values)?;
        }
        self.here()?.save(sink)
    }

    /// Takes the trainer's state back.
    ///
    /// # Errors
    /// When something is missing or does not fit.
    pub fn load(&mut self, source: &dyn StateSource) -> Result<(), StateError> {
        let kept = self.read_correction(source)?;
        let parameters = self.read_parameters(source)?;
        let trainer = self.here()?;
        trainer.load(source)?;
        if let Some(values) = parameters {
            trainer.write(0, &values);
        }
        self.steps = 0;
        if let (Some(correction), Some((state, steps))) = (&mut self.correction, kept) {
            correction.state_mut().copy_from_slice(&state);
            self.steps = steps;
        }
        Ok(())
    }

    fn here(&mut self) -> Result<&mut dyn Trainer, StateError> {
        let missing = |error: TrainError| StateError::Host(error.to_string());
        self.trainer.here().map_err(missing)
    }

    /// Reads the parameters, where a checkpoint holds them.
    fn read_parameters(&self, source: &dyn StateSource) -> Result<Option<Vec<f32>>, StateError> {
        if !self.trains_ahead {
            return Ok(None);
        }
        let mut values = vec![0.0; self.trainer.parameters()];
        source.tensor(PARAMETERS, &mut values)?;
        match values.iter().all(|value| value.is_finite()) {
            true => Ok(Some(values)),
            false => Err(StateError::Malformed {
                name: PARAMETERS.to_owned(),
                reason: "a value is not finite".to_owned(),
            }),
        }
    }

    /// Reads the state of a correction that keeps any, and the inner steps since the last
    /// agreement.
    fn read_correction(
        &self,
        source: &dyn StateSource,
    ) -> Result<Option<(Vec<f32>, u64)>, StateError> {
        let len = self.correction.as_ref().map_or(0, |c| c.state().len());
        if len == 0 {
            return Ok(None);
        }
        let bad = |name: &str, reason: String| StateError::Malformed {
            name: name.to_owned(),
            reason,
        };
        let mut state = vec![0.0; len];
        source.tensor(CORRECTION, &mut state)?;
        if !state.iter().all(|value| value.is_finite()) {
            return Err(bad(CORRECTION, "a value is not finite".to_owned()));
        }
        let bytes = source.bytes(CORRECTION_STEPS)?;
        let steps = <[u8; 8]>::try_from(bytes.as_slice()).map_err(|_| {
            let reason = format!("{} bytes instead of 8", bytes.len());
            bad(CORRECTION_STEPS, reason)
        })?;
        Ok(Some((state, u64::from_le_bytes(steps))))
    }
}
