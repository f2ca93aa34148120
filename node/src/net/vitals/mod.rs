//! Vitals of the whole swarm: each daemon says a signed summary of itself to the peers that it is linked
//! with, and passes on those of others.
//!
//! They have streams of their own (`/murmurate/vitals/1`), with short queues that drop what does not fit.
//! So they neither delay frames nor need the room of frames. Anti-entropy carries them beyond links: once
//! a second a daemon tells one of its peers how new its vitals are, and either end gets those that it lacks.

mod board;
mod streams;
mod table;
#[cfg(test)]
mod tests;

pub(super) use board::GOSSIP_EVERY;
pub(crate) use board::VitalsBoard;
pub(super) use streams::{VitalsStreams, read, write};
pub(crate) use table::{SeenElsewhere, SeenVitals};
