//! What corrects the gradients of inner steps, as the train lane sees it.

/// Changes gradients by what it knows of earlier rounds.
///
/// Calls come piece by piece, each with its place in the flat parameters.
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
    fn correct(&self, offset: usize, values: &[f32], gradient: &mut [f32]);

    /// What a peer that resumes cannot do without; nothing where the next anchor says it all.
    fn state(&self) -> &[f32] {
        &[]
    }

    /// That state, to be written into.
    fn state_mut(&mut self) -> &mut [f32] {
        &mut []
    }
}
