//! The train lane where a contribution is the gradient of one batch: whole after the backward pass,
//! or in pieces during it.

use super::frame::Handed;
use super::gates::Forward;
use super::train_lane::{TrainLane, summary};
use crate::trainer::{TrainError, TrainReport, Trainer};
use murmurate_protocol::{FragmentId, Participants, Round, StepBudget, TrainSummary};
use std::sync::atomic::Ordering;

impl TrainLane {
    /// Hands over the gradient of one batch as the cut, or the one that an earlier order has
    /// computed. The parameters do not change. Without a cut the gradient is kept until its round
    /// is cut.
    pub(super) fn gradient(
        &mut self,
        budget: StepBudget,
        cut: bool,
    ) -> Result<TrainSummary, TrainError> {
        let none_left = budget == StepBudget::Steps(0);
        if let Some(frame) = self.ahead.take().filter(|_| none_left && cut) {
            // The order that computed it has reported its samples and loss already.
            self.frames.send(Handed::Cut(frame));
            return Ok(TrainSummary::default());
        }
        self.stopwatch.start();
        let mut frame = self.take_buffer();
        let values = &mut frame.values;
        let trainer = self.trainer.here()?;
        let report = trainer.gradients(&mut |offset, piece| {
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

    /// Hands over each fragment of one batch's gradient as soon as the backward pass has computed
    /// it. The parameters do not change.
    pub(super) fn gradient_in_pieces(
        &mut self,
        on_cut: &mut dyn FnMut(FragmentId, u64),
    ) -> Result<TrainSummary, TrainError> {
        self.stopwatch.start();
        let buffer = self.take_buffer();
        self.frames.send(Handed::Empty(buffer));
        let trainer = self.trainer.here()?;
        let samples = trainer.batch();
        let (frames, pieces) = (&self.frames, &mut self.pieces);
        let pieces = pieces.as_mut().expect("only called where there are pieces");
        while let Some((fragment, room)) = frames.spare() {
            pieces.recycle(fragment, room);
        }
        pieces.begin();
        if let Some(forward) = &mut self.forward {
            forward.begun = None;
        }
        let report = trainer.gradients(&mut |offset, gradient| {
            pieces.take(offset, gradient, &mut |fragment, values| {
                frames.send(Handed::Piece(fragment, values));
                on_cut(fragment, samples);
            });
        })?;
        Ok(self.counted(report))
    }

    /// The forward pass of a round's batch, layer by layer as fragments of the round before are
    /// decided. Its time is not counted: most of it may be waiting.
    pub(super) fn forward_ahead(
        &mut self,
        round: Round,
        peers: &Participants,
    ) -> Result<TrainSummary, TrainError> {
        let Some(forward) = &mut self.forward else {
            return Ok(TrainSummary::default());
        };
        let gate = forward.open();
        let trainer = self.trainer.here()?;
        let begun = trainer.forward(&gate);
        let (complete, came) = forward.drain();
        if complete && matches!(begun, Ok(true)) {
            forward.begun = Some((round, peers.clone()));
        } else {
            trainer.drop_forward();
        }
        for (fragment, values) in came {
            if forward.begun.is_none() {
                trainer.write(forward.start(fragment), &values);
            }
            if let Some(pieces) = &mut self.pieces {
                pieces.recycle(fragment, values);
            }
        }
        match begun {
            // Of a pass that was given up no loss counts.
            Err(error) if complete => Err(error),
            _ => Ok(TrainSummary::default()),
        }
    }

    /// A round is trained: a forward pass of another round, or for which the data was divided among
    /// others, is not its own.
    pub(super) fn keep_forward_of(&mut self, round: Round, peers: &Participants) {
        let begun = self.forward.as_ref().and_then(|f| f.begun.as_ref());
        if begun.is_some_and(|(of, among)| *of != round || among != peers)
            && let Ok(trainer) = self.trainer.here()
        {
            Self::drop_forward(&mut self.forward, trainer);
        }
    }

    /// Drops a forward pass whose parameters or data are no longer those of the round.
    pub(super) fn drop_forward(forward: &mut Option<Forward>, trainer: &mut dyn Trainer) {
        if let Some(forward) = forward
            && forward.begun.take().is_some()
        {
            trainer.drop_forward();
        }
    }

    /// Counts a batch for other threads and makes the answer of its report.
    fn counted(&mut self, report: TrainReport) -> TrainSummary {
        let seconds = self.stopwatch.elapsed(report.steps).as_secs_f64();
        let signals = &self.signals;
        signals.steps.fetch_add(report.steps, Ordering::Relaxed);
        signals.samples.fetch_add(report.samples, Ordering::Relaxed);
        summary(report, seconds)
    }
}
