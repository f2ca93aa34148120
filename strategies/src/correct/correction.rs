//! The trait of corrections of the gradients of inner steps, as the train lane uses it.

/// What a stretch of training took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Inner steps of this round.
    pub steps: u64,
    /// Those and the ones before them since the parameters were last agreed on.
    pub since_agreed: u64,
}

/// Changes gradients by values from earlier rounds.
///
/// It is called for each piece of the flat parameters, with the place of the piece.
pub trait Correction: Send {
    /// Between two stretches of training the parameters of a piece became `taken`, where training
    /// had left `trained` after `steps` inner steps since the last time that they were agreed on.
    /// `agreed` says whether `taken` is the anchor itself, or that and a delta which is kept.
    fn taken_over(
        &mut self,
        offset: usize,
        trained: &[f32],
        taken: &[f32],
        agreed: bool,
        steps: u64,
    );

    /// Corrects the gradient of one inner step in place, of parameters with these values.
    fn correct(&mut self, offset: usize, values: &[f32], gradient: &mut [f32]);

    /// A piece of the companion became `taken`: the result of the exchange.
    fn companion_taken(&mut self, offset: usize, taken: &[f32]) {
        let _ = (offset, taken);
    }

    /// A stretch of training led to `trained`: writes this peer's companion, the second vector of the round.
    fn cut(&mut self, trained: &[f32], work: Work, companion: &mut [f32]) {
        let _ = (trained, work, companion);
    }

    /// What a peer that resumes cannot do without; nothing where the next anchor says it all.
    fn state(&self) -> &[f32] {
        &[]
    }

    /// That state, to be written into.
    fn state_mut(&mut self) -> &mut [f32] {
        &mut []
    }
}
