//! The murmurate command.
fn main() {}
