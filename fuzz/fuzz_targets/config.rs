//! The grid's configuration: an error in one line, or a strategy that parses again from its text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use murmurate_strategies::grid::Strategy;

fuzz_target!(|text: &str| {
    match Strategy::parse(text, None) {
        Ok(strategy) => {
            Strategy::parse(&strategy.to_toml(), None).expect("canonical text parses");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
