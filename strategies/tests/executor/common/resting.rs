//! A trainer that changes nothing.

use super::{Draw, bare_trainer};
use murmurate_protocol::InnerStep;
use murmurate_strategies::{Layout, Proceed, StepControl, TrainError, TrainReport, Trainer, Visit};

/// Takes inner steps that change nothing: what moves the parameters is gossip alone.
pub struct Resting {
    layout: Layout,
    pub x: Vec<f32>,
    /// Where every round's inner steps lead back to, if anywhere.
    home: Option<Vec<f32>>,
}

impl Resting {
    pub fn new(index: usize, dim: usize) -> Self {
        let mut draw = Draw(index as u64 + 1);
        let x = (0..dim).map(|_| draw.below(2001) as f32 / 100.0 - 10.0);
        Self {
            layout: Layout::new([("x", vec![dim as u64])]),
            x: x.collect(),
            home: None,
        }
    }

    /// Inner steps that lead back to where the peer began, whatever was mixed.
    pub fn home(index: usize, dim: usize) -> Self {
        let resting = Self::new(index, dim);
        let home = Some(resting.x.clone());
        Self { home, ..resting }
    }
}

impl Trainer for Resting {
    bare_trainer!(x);

    fn steps(&mut self, control: &mut dyn StepControl) -> Result<TrainReport, TrainError> {
        if let Some(home) = &self.home {
            self.x.copy_from_slice(home);
        }
        let mut report = TrainReport::default();
        while control.before(InnerStep(report.steps)) == Proceed::Go {
            control.after(InnerStep(report.steps), 1);
            report.steps += 1;
            report.samples += 1;
        }
        Ok(report)
    }

    fn gradients(&mut self, _: Visit<'_>) -> Result<TrainReport, TrainError> {
        Err(TrainError::Backend("gossip asks for none".to_owned()))
    }
}
