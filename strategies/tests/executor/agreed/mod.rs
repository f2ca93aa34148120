//! Exchanges in which a group agrees on the result: all-reduce, gathered contributions, servers in step.

mod all_reduce;
mod demo;
mod double_squeeze;
mod gathered;
mod in_common;
mod layers;
mod robust;
mod two_passes;
