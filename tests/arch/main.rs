//! The dependency rules, the source rules and the lint settings of the workspace, as tests that can fail.
//!
//! Nothing here runs Murmurate: it reads `cargo metadata` and the files in git. Tests of behaviour live with each
//! crate, and those of whole processes in their own test of this package.

mod budgets;
mod circles;
mod clippy_files;
mod deps;
mod dialect;
mod files;
mod imports;
mod layers;
mod pages;
mod rust_text;
mod sources;
mod structs;
