//! The whole system, in real processes on loopback. The tests of this binary take turns, two at a time (see
//! `murmurate_tests::turn`).
//!
//! `node/src/net/gate/tests.rs` tests that daemons without a wire version in common refuse each other, because
//! a program of a later release can be played there. To measure the memory of a model of 50 million parameters, run the following
//! by hand; it is not a test, because the two daemons hold 4 GB and take a minute:
//!
//! ```text
//! yes 'the quick brown fox' | head -c 1000000 > text
//! printf '[run]\nname = "big"\nrounds = 3\nstart_with = 2\n[network]\nmdns = false\n' > big.toml
//! printf '[daemon]\nevaluate_every = 0\n' >> big.toml
//! printf '[task]\nkind = "language-model"\ndata = "text"\nlayers = 4\nwidth = 1024\n' >> big.toml
//! printf 'heads = 8\ncontext = 32\nbatch = 1\n' >> big.toml
//! murmurate run --config big.toml --dir big-0
//! murmurate run --config big.toml --dir big-1 --join ADDRESS
//! curl http://ADDRESS/status          # memory.overhead_bytes, between two rounds
//! ```

#![allow(clippy::unwrap_used, reason = "helpers of tests may, as tests do")]

mod attach;
mod control;
mod data;
mod demo;
mod faults;
mod files;
mod grid;
mod islands;
mod liars;
mod lifecycle;
mod links;
mod membership;
mod model;
mod own_task;
mod page;
mod presets;
mod privacy;
mod proxied;
mod refused;
mod replay;
mod restart;
mod resumed;
mod roles;
mod shown;
mod split;
mod state;
mod swarm;
mod tracking;
mod upgrade;
mod why;
