//! The peer over whole rounds. One program: each more would link the crate and its dependencies again.

mod ballots;
mod common;
mod exchange;
mod gathered;
mod liars;
mod membership;
mod neighbours;
mod observe;
mod owed;
mod paced;
mod properties;
mod record;
mod rest;
mod schedules;
mod scored;
#[path = "../../src/seeds.rs"]
mod seeds;
mod sides;
mod trainers;
mod vitals;
mod votes;
mod waiting;
mod wire_golden;
mod witnesses;
