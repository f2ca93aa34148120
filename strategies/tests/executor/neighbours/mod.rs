//! Exchanges between neighbours, without a group: gossip, exchanges between two, sums along a tree.

mod differences;
mod gossip;
mod pairwise;
mod pulled;
mod relay;
