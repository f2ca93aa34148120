//! `murmurate generate`: a language model continues a text.

use crate::cli::GenerateArgs;
use crate::exit::Ended;
use crate::out;
use murmurate_tasks::{DeviceChoice, Generator, Sampling};

pub(crate) fn run(args: &GenerateArgs) -> anyhow::Result<()> {
    if !(0.0..=100.0).contains(&args.temperature) {
        return Err(Ended::usage("--temperature: give a number from 0 to 100"));
    }
    let device = match &args.device {
        Some(name) => name.parse()?,
        None => DeviceChoice::default(),
    };
    let generator = Generator::open(&args.model, &device)?;
    let sampling = Sampling {
        max_tokens: args.max_tokens,
        temperature: args.temperature,
        top_k: args.top_k,
        seed: args.seed,
    };
    let mut generated = Ok(());
    out::with(|out| {
        let mut written = write!(out, "{}", args.prompt);
        let each = &mut |text: &str| {
            if written.is_ok() {
                written = write!(out, "{text}").and_then(|()| out.flush());
            }
        };
        generated = generator
            .generate(&args.prompt, &sampling, each)
            .map(|_| ());
        written.and_then(|()| writeln!(out))
    })?;
    Ok(generated?)
}
