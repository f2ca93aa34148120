//! Congestion controllers for quinn: what fills a lossy long link without flooding it.
//!
//! [`Congestion`] is the choice a configuration makes; [`Bbr3`] is ours and the default, CUBIC is
//! quinn's. [`MaxRate`] is a hard limit on top of either, which can be changed while connections run.
//! [`path_model`] reads what the controller of a connection knows.

mod bbr3;
mod choice;
mod max_rate;

pub use bbr3::{Bbr3, Bbr3Config, PathModel, Phase};
pub use choice::{Congestion, UnknownCongestion};
pub use max_rate::{Limited, LimitedController, Limits, MaxRate, Throttle};

use quinn::congestion::Controller;
use std::time::Duration;

/// What the controller of a connection (`quinn::Connection::congestion_state`) knows about its path;
/// `None` where another controller than [`Bbr3`] runs.
#[must_use]
pub fn path_model(controller: Box<dyn Controller>) -> Option<PathModel> {
    let any = match controller.into_any().downcast::<LimitedController>() {
        Ok(limited) => limited.into_inner().into_any(),
        Err(any) => any,
    };
    any.downcast::<Bbr3>().ok().map(|bbr| bbr.model())
}

/// The shortest round trip above zero that a connection has seen, from its controller
/// (`quinn::Connection::congestion_state`); `None` before the first one, and where the controller is not
/// one of [`Limited`].
#[must_use]
pub fn least_rtt(controller: Box<dyn Controller>) -> Option<Duration> {
    let limited = controller.into_any().downcast::<LimitedController>().ok()?;
    limited.least_rtt()
}
