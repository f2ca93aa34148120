//! Exchanges between neighbours, peer by peer: what is pushed, mixed and conserved, and what happens
//! when a neighbour dies, stalls or lies. The rule of pulling is tested beside its source, because
//! its tests look at single signals.

mod gossip;
mod relay_sum;
