//! Congestion controllers for quinn that fill a long lossy link without flooding it.
//!
//! [`Congestion`] is the choice in a configuration: [`Bbr3`], which is the default, or quinn's
//! CUBIC. [`MaxRate`] is a hard limit on top of either; it can be changed while connections run.
//! [`path_model`] reads the path model of a connection's controller.

mod bbr3;
mod choice;
mod max_rate;

pub use bbr3::{Bbr3, Bbr3Config, PathModel, Phase};
pub use choice::{Congestion, UnknownCongestion};
pub use max_rate::{Limited, LimitedController, Limits, MaxRate, Throttle};

use quinn::congestion::Controller;
use std::time::Duration;

/// The path model of a connection's controller (`quinn::Connection::congestion_state`); `None` if
/// the controller is not [`Bbr3`].
#[must_use]
pub fn path_model(controller: Box<dyn Controller>) -> Option<PathModel> {
    let any = match controller.into_any().downcast::<LimitedController>() {
        Ok(limited) => limited.into_inner().into_any(),
        Err(any) => any,
    };
    any.downcast::<Bbr3>().ok().map(|bbr| bbr.model())
}

/// The smallest round-trip time above zero that a connection has seen, from its controller
/// (`quinn::Connection::congestion_state`). `None` before the first sample, and if the controller
/// is not one of [`Limited`].
#[must_use]
pub fn least_rtt(controller: Box<dyn Controller>) -> Option<Duration> {
    let limited = controller.into_any().downcast::<LimitedController>().ok()?;
    limited.least_rtt()
}
