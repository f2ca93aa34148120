//! `murmurate bench codecs`: the speed of codecs on one core, beside memcpy of the same buffer.

mod measure;
mod report;

pub use report::{CodecSpeed, CodecsReport, table};

use crate::codecs::measure::Buffers;
use crate::exchange::CodecFlag;
use crate::{BenchError, wrong};
use clap::Args;
use murmurate_strategies::compress::{CODECS, CodecKind, without_vectors};

/// The density of codecs that have no default for it.
const DENSITY: f64 = 0.01;

/// Values of a buffer at most: 4 GB.
const VALUES_MAX: usize = 1_000_000_000;

/// The settings of a measurement, from the flags of `murmurate bench codecs`.
#[derive(Clone, Debug, Args)]
pub struct CodecsOptions {
    /// Codecs with their parameters, such as top-k:density=0.01 [default: all]
    #[arg(value_name = "CODEC[:KEY=VALUE,...]")]
    pub codecs: Vec<CodecFlag>,
    /// Number of values of the buffer
    #[arg(long, default_value_t = 10_000_000)]
    pub values: usize,
    /// Runs of each, of which the best counts
    #[arg(long, default_value_t = 7)]
    pub runs: u32,
    /// Use no vector instructions
    #[arg(long)]
    pub scalar: bool,
}

impl CodecsOptions {
    fn check(&self) -> Result<(), BenchError> {
        if !(4096..=VALUES_MAX).contains(&self.values) {
            return wrong("--values", format!("give 4096 to {VALUES_MAX} values"));
        }
        if !(1..=1000).contains(&self.runs) {
            return wrong("--runs", "give 1 to 1000 runs");
        }
        Ok(())
    }

    fn kinds(&self) -> Result<Vec<(String, CodecKind)>, BenchError> {
        let wrong = |message: String| BenchError::Flag {
            flag: "CODEC",
            message,
        };
        if self.codecs.is_empty() {
            let all = CODECS.iter().map(|spec| {
                let required = spec.parameters.iter().filter(|p| p.default.is_none());
                let given: Vec<_> = required.map(|p| (p.name, DENSITY)).collect();
                let kind = CodecKind::new(spec.name, &given);
                kind.map(|kind| (spec.name.to_owned(), kind))
            });
            let all = all.collect::<Result<_, _>>();
            return all.map_err(|error| wrong(error.to_string()));
        }
        let some = self.codecs.iter().map(|flag| {
            let kind: CodecKind = toml::from_str(&flag.fields())
                .map_err(|error| wrong(format!("{flag}: {}", error.message())))?;
            Ok((flag.to_string(), kind))
        });
        some.collect()
    }
}

/// Measures the codecs, one after the other. `measured` is called after each.
///
/// # Errors
/// If a flag is invalid or names no codec.
pub fn run_codecs(
    options: &CodecsOptions,
    mut measured: impl FnMut(&CodecSpeed),
) -> Result<CodecsReport, BenchError> {
    options.check()?;
    let kinds = options.kinds()?;
    let mut buffers = Buffers::new(options.values);
    let mut codecs = Vec::with_capacity(kinds.len());
    for (name, kind) in kinds {
        let mut codec = kind.build();
        let times = if options.scalar {
            without_vectors(|| buffers.measure(&mut *codec, options.runs))
        } else {
            buffers.measure(&mut *codec, options.runs)
        };
        let speed = CodecSpeed::new(name, options.values, &times);
        measured(&speed);
        codecs.push(speed);
    }
    Ok(CodecsReport {
        values: options.values,
        runs: options.runs,
        scalar: options.scalar,
        codecs,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(codecs: &[&str]) -> CodecsOptions {
        CodecsOptions {
            codecs: codecs.iter().map(|codec| codec.parse().unwrap()).collect(),
            values: 8192,
            runs: 1,
            scalar: false,
        }
    }

    #[test]
    fn all_codecs_are_measured_and_each_has_a_speed() {
        let mut told = 0;
        let report = run_codecs(&options(&[]), |_| told += 1).unwrap();
        assert_eq!((report.codecs.len(), told), (CODECS.len(), CODECS.len()));
        for codec in &report.codecs {
            let speeds = [codec.encode_gb_s, codec.encode_residual_gb_s];
            assert!(
                speeds.iter().flatten().any(|speed| *speed > 0.0),
                "{codec:?}"
            );
            assert!(codec.decode_add_gb_s > 0.0 && codec.memcpy_gb_s > 0.0);
        }
    }

    #[test]
    fn parameters_count_and_what_is_no_codec_is_refused_by_name() {
        let few = run_codecs(&options(&["top-k:density=0.01"]), |_| ()).unwrap();
        let many = run_codecs(&options(&["top-k:density=0.5"]), |_| ()).unwrap();
        assert!(many.codecs[0].bits > 10.0 * few.codecs[0].bits);
        for wrong in ["carrier-pigeon", "top-k", "top-k:width=3"] {
            let error = run_codecs(&options(&[wrong]), |_| ()).unwrap_err();
            assert!(error.to_string().starts_with("CODEC: "), "{error}");
        }
        let none = CodecsOptions {
            values: 0,
            ..options(&[])
        };
        assert!(run_codecs(&none, |_| ()).is_err());
    }
}
