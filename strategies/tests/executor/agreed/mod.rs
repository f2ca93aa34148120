//! Exchanges in which a group agrees on the result: all-reduce, gathered contributions, servers in step.

mod all_reduce;
mod demo;
mod densities;
mod double_squeeze;
mod fed_nova;
mod forward;
mod gathered;
mod in_common;
mod layers;
mod one_bit_adam;
mod private_mean;
mod robust;
mod secure_mean;
mod two_passes;
