//! How many seeds the tests of this crate run.

/// As many as `MURMURATE_SEEDS` says, `long` if it says `long`, and a fifth of that without it.
#[allow(
    clippy::disallowed_methods,
    reason = "tests read settings of their own"
)]
pub(crate) fn seeds(long: u64) -> core::ops::Range<u64> {
    let count = match std::env::var("MURMURATE_SEEDS").as_deref() {
        Err(_) => long.div_ceil(5),
        Ok("long") => long,
        Ok(text) => text.parse().expect("`long` or a number"),
    };
    assert!(count > 0, "MURMURATE_SEEDS=0 would test nothing");
    println!("seeds 0..{count}");
    0..count
}
