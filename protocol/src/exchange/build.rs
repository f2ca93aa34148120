//! Which exchange a plan asks for.

use super::none::NoExchange;
use super::{Agreed, CellsExchange, Center, Exchange, GridExchange, neighbours};
use crate::Topology;
use crate::core::context::Context;

/// Makes the exchange that a plan asks for.
///
/// # Panics
/// When a plan that needs a topology comes without one: the driver passes both.
pub(crate) fn build(cx: &Context, topology: Option<Box<dyn Topology>>) -> Box<dyn Exchange> {
    let facts = cx.plan.exchange.facts();
    if cx.plan.agreement.grouping.is_grid() {
        return Box::new(GridExchange::new());
    }
    if facts.deals_cells {
        return Box::new(CellsExchange::new());
    }
    if facts.agrees {
        return Box::new(Agreed::new());
    }
    if facts.has_neighbours {
        let topology = topology.expect("an exchange between neighbours comes with a topology");
        return neighbours::build(&cx.plan, topology).expect("it is one between neighbours");
    }
    match Center::new(&cx.plan) {
        Some(center) => Box::new(center),
        None => Box::new(NoExchange::new(&cx.plan)),
    }
}
