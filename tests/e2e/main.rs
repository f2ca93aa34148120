//! The whole system, in real processes on loopback. One binary: its tests take turns (see
//! `murmurate_tests::turn`), because two swarms on two cores would disturb each other.
//!
//! What a peer of another wire version is told is tested where frames can be forged: in
//! `protocol/src/wire/codec.rs` and in the peer's own tests. The memory of a model of 50 million
//! parameters is measured by hand, for its size:
//!
//! ```text
//! yes 'the quick brown fox' | head -c 1000000 > text
//! printf '[run]\nname = "big"\nstart_with = 2\nrounds = 3\n[task]\nkind = "language-model"\ndata = "text"
//! layers = 4\nwidth = 1024\nheads = 8\ncontext = 32\nbatch = 1\n' > big.toml
//! murmurate run --config big.toml --dir big-0 --rounds 0   # and a second, with --dir big-1 --join ADDRESS
//! curl http://ADDRESS/status                               # memory.overhead_bytes
//! ```

#![allow(clippy::unwrap_used, reason = "helpers of tests may, as tests do")]

mod faults;
mod files;
mod lifecycle;
mod model;
mod own_task;
mod refused;
mod shown;
mod swarm;
