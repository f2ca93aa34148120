//! How many seeds the tests of this crate run.

/// As many as `MURMURATE_SEEDS` says, `long` if it says `long`, and a fifth of that without it. The variable is
/// read when the tests are compiled, because nothing in this crate reads the environment.
pub(crate) fn seeds(long: u64) -> core::ops::Range<u64> {
    let count = match option_env!("MURMURATE_SEEDS") {
        None => long.div_ceil(5),
        Some("long") => long,
        Some(text) => text.parse().expect("`long` or a number"),
    };
    assert!(count > 0, "MURMURATE_SEEDS=0 would test nothing");
    println!("seeds 0..{count}");
    0..count
}
