//! The daemon: everything between the pure crates and the world.

pub mod bulk;
pub mod net;
