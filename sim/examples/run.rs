//! Runs scenario files: `cargo run --release -p murmurate-sim --example run -- FILE...`.
//! `SEED=n` overrides the seed, `TRACE=file` writes a JSON line for every input and output.

use murmurate_sim::{RunOptions, ToyTasksOnly, run_file};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let seed = std::env::var("SEED")
            .ok()
            .map(|seed| seed.parse())
            .transpose()?;
        let trace = std::env::var("TRACE")
            .ok()
            .map(std::fs::File::create)
            .transpose()?;
        let trace =
            trace.map(|file| Box::new(std::io::BufWriter::new(file)) as Box<dyn std::io::Write>);
        let report = run_file(Path::new(&path), &ToyTasksOnly, RunOptions { seed, trace });
        println!("{}", report.map_err(|error| error.to_string())?);
    }
    Ok(())
}
