//! Exchanges between neighbours, peer by peer: what is pushed, mixed and conserved, and what happens
//! when a neighbour dies, stalls or lies. The rule of pulling is tested beside its source, because
//! its tests look at single signals.

#![allow(
    unreachable_pub,
    clippy::disallowed_methods,
    clippy::too_many_lines,
    clippy::type_complexity,
    clippy::collapsible_match,
    reason = "tests read settings of their own, and list one case after the other"
)]

mod gossip;
mod relay_sum;
