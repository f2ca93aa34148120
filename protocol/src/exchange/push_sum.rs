//! Push-sum mass, for observers.

/// Where a peer's push-sum mass is.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PushSum {
    /// The weight of the parameters, fragment by fragment.
    pub(crate) weights: Vec<f64>,
    /// Weight that is pushed and not acknowledged, or waits to be mixed back in.
    pub(crate) pushed: f64,
    /// Weight that arrived and is not mixed.
    pub(crate) waiting: f64,
    /// Weight that is this peer's: what it pushed is not, until it comes back.
    pub(crate) held: f64,
}
