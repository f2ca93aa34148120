//! Elastic averaging (EASGD): parameters and a center pull at each other. Pure arithmetic, for
//! laws: at a center both halves are those of `executor::mixers::center`, which has many parameters to many peers.

/// One exchange between a peer and the center.
///
/// ```text
/// x'      = x - alpha (x - center)
/// center' = center + alpha (x - center)
/// ```
///
/// with the old x and center on the right, for each peer in turn (asynchronous) or all on the same old center
/// (synchronous: call with each peer's pull added up). Their sum is kept. Shapes: `[len]`, f32; the state is
/// the center, once the parameters, and each peer's own parameters, which never become one. Stable for
/// `0 <= n alpha <= 1` in the synchronous form. Source: Zhang, Choromanska and LeCun, "Deep learning with
/// elastic averaging SGD" (NeurIPS 2015), equations 2 and 3 and algorithm 1. Special cases: alpha = 1/2 is
/// the mean of both; alpha = 0 nothing.
///
/// # Panics
/// If the lengths differ.
pub fn elastic(x: &mut [f32], center: &mut [f32], alpha: f32) {
    assert_eq!(x.len(), center.len());
    for (x, c) in x.iter_mut().zip(center) {
        let pull = alpha * (*x - *c);
        *x -= pull;
        *c += pull;
    }
}
