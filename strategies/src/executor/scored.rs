//! Contributions that are scored before they are merged: one by one, the anchor moved by a contribution alone
//! goes to the train lane, which measures its loss and keeps its own parameters.
//!
//! `s_i = L(a) - L(a + C(d_i))` on the trainer's held sample; the peer computes the difference.
//!
//! **Source:** Lidin et al. 2025 (Gauntlet), section 3 (number not verified).

use super::frame::{Frame, Lent};
use super::host::{Host, WorkResult};
use super::mix_lane::MixLane;
use super::train_lane::{TrainLane, swap};
use crate::trainer::TrainError;
use murmurate_protocol::{Done, Round, SliceId, WorkError};

impl MixLane {
    /// Puts the anchor aside, moved by one contribution alone.
    pub(super) fn stage(&mut self, slice: Option<SliceId>, host: &dyn Host) -> WorkResult<Done> {
        let anchor = self.core.anchor.parameters();
        let mut staged = std::mem::take(&mut self.staged);
        staged.resize(anchor.len(), 0.0);
        match slice {
            None => staged.copy_from_slice(anchor),
            Some(slice) => {
                if host.get(&slice).is_none() {
                    return Err(WorkError::Gone { slice });
                }
                self.core.codecs.set_checked(&mut staged, slice, host)?;
                staged.iter_mut().zip(anchor).for_each(|(s, a)| *s += a);
            }
        }
        self.staged = staged;
        Ok(Done::Combined)
    }

    /// Lends the train lane the parameters that were put aside.
    pub(super) fn lend_staged(&mut self) {
        let staged = std::mem::take(&mut self.staged);
        let frame = Frame::new(staged, Vec::new());
        self.core.local.frames.send(Some(Lent::Values(frame)));
    }
}

impl TrainLane {
    /// The loss of what the mix lane has lent, on the trainer's held sample. A loss that is not a number is
    /// infinite: that contribution is worth nothing.
    pub(super) fn measure(&mut self, round: Round, batches: u16) -> Result<f64, TrainError> {
        let received = self.frames.receive();
        let trainer = self.trainer.here()?;
        let Some(Some(Lent::Values(mut staged))) = received else {
            let text = "nothing was put aside to be measured";
            return Err(TrainError::Backend(text.to_owned()));
        };
        swap(trainer, &mut staged.values);
        let measured = trainer.held_loss(round, batches);
        swap(trainer, &mut staged.values);
        match measured {
            Err(TrainError::NotFinite) => Ok(f64::INFINITY),
            Ok(loss) if !loss.is_finite() => Ok(f64::INFINITY),
            measured => measured,
        }
    }
}
