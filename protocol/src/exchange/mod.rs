//! Exchanges: contributions in, an agreed aggregate or a mix out. They share one interface, and none
//! of them holds a tensor.

mod agreed;
mod center;
mod foreign;
mod interface;
mod kind;
mod neighbours;
mod none;
mod outcome;
mod push_sum;
mod signal;

pub use agreed::{Schedule, ScheduleCost};
pub(crate) use agreed::{inputs_of, slices_of};
pub(crate) use foreign::{foreign_message, foreign_tag};
pub(crate) use interface::{Exchange, PastRounds};
pub use kind::{CenterPlan, ExchangeFacts, ExchangeKind, KindError, LeadPlan, ServerPlan};
pub use neighbours::Standing;
pub(crate) use outcome::{Ending, Outcome};
pub(crate) use push_sum::PushSum;
pub(crate) use signal::{Arrived, Signal};

use crate::Topology;
use crate::core::context::Context;

/// Makes the exchange that a plan asks for.
///
/// # Panics
/// When a plan that needs a topology comes without one: the driver passes both.
pub(crate) fn build(cx: &Context, topology: Option<Box<dyn Topology>>) -> Box<dyn Exchange> {
    match cx.plan.exchange {
        ExchangeKind::None => Box::new(none::NoExchange::new(&cx.plan)),
        ExchangeKind::Center(center) => Box::new(center::Center::new(&cx.plan, center)),
        kind if kind.agrees() => Box::new(agreed::Agreed::new()),
        _ => {
            let topology = topology.expect("an exchange between neighbours comes with a topology");
            neighbours::build(&cx.plan, topology).expect("it is one between neighbours")
        }
    }
}
