//! The train lane where a contribution is a gradient: of one batch, whole at the end of the backward pass
//! or in pieces under it.

use super::frame::Handed;
use super::train_lane::{TrainLane, summary};
use crate::trainer::{TrainError, TrainReport};
use murmurate_protocol::{FragmentId, StepBudget, TrainSummary};
use std::sync::atomic::Ordering;

impl TrainLane {
    /// One batch's gradient as the cut, or that which was taken ahead; the parameters stay. Without a cut
    /// it is kept until its round is.
    pub(super) fn gradient(
        &mut self,
        budget: StepBudget,
        cut: bool,
    ) -> Result<TrainSummary, TrainError> {
        let none_left = budget == StepBudget::Steps(0);
        if let Some(frame) = self.ahead.take().filter(|_| none_left && cut) {
            // Its report was the answer to the order that it was taken by.
            self.frames.send(Handed::Cut(frame));
            return Ok(TrainSummary::default());
        }
        self.stopwatch.start();
        let mut frame = self.take_buffer();
        let values = &mut frame.values;
        let report = self.trainer.gradients(&mut |offset, piece| {
            values[offset..offset + piece.len()].copy_from_slice(piece);
        })?;
        let summary = self.counted(report);
        if cut {
            self.frames.send(Handed::Cut(frame));
        } else {
            self.ahead = Some(frame);
        }
        Ok(summary)
    }

    /// One batch's gradient, each fragment as soon as the backward pass is through with it; the parameters
    /// stay.
    pub(super) fn gradient_in_pieces(
        &mut self,
        on_cut: &mut dyn FnMut(FragmentId, u64),
    ) -> Result<TrainSummary, TrainError> {
        self.stopwatch.start();
        let buffer = self.take_buffer();
        self.frames.send(Handed::Empty(buffer));
        let samples = self.trainer.batch();
        let (frames, pieces) = (&self.frames, &mut self.pieces);
        let pieces = pieces.as_mut().expect("only called where there are pieces");
        while let Some((fragment, room)) = frames.spare() {
            pieces.recycle(fragment, room);
        }
        pieces.begin();
        let report = self.trainer.gradients(&mut |offset, gradient| {
            pieces.take(offset, gradient, &mut |fragment, values| {
                frames.send(Handed::Piece(fragment, values));
                on_cut(fragment, samples);
            });
        })?;
        Ok(self.counted(report))
    }

    /// What a batch came to, counted for other threads.
    fn counted(&mut self, report: TrainReport) -> TrainSummary {
        let seconds = self.stopwatch.elapsed(report.steps).as_secs_f64();
        let signals = &self.signals;
        signals.steps.fetch_add(report.steps, Ordering::Relaxed);
        signals.samples.fetch_add(report.samples, Ordering::Relaxed);
        summary(report, seconds)
    }
}
