//! `docs/codecs.md`: every codec on two real deltas. Bits and errors are computed here and compared
//! with the page; speeds are measured when the page is written, and only then.
//!
//! `UPDATE_DOCS=1 cargo test --release -p murmurate-strategies --test codecs table` writes the page;
//! `UPDATE_DOCS=facts` leaves the speeds as they are, and `-` where there are none yet.
#![allow(
    clippy::disallowed_methods,
    reason = "speeds are measured with the clock"
)]
#![allow(
    clippy::disallowed_types,
    reason = "speeds are measured with the clock"
)]

use murmurate_strategies::Layout;
use murmurate_strategies::compress::{Agreed, Contributed};
use murmurate_strategies::compress::{
    CODECS, CodecKind, CodecSpec, EncodeContext, Matrix, PLANES_MAX, Reduction,
};
use serde::Deserialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Values of the buffer that speeds are measured on.
const LEN: usize = 10_000_000;

/// Runs of each, of which the best counts.
const RUNS: usize = 5;

/// Encodings that an error is the mean of: codecs draw random numbers.
const DRAWS: u64 = 16;

#[derive(Deserialize)]
struct Deltas {
    delta: Vec<Sample>,
}

#[derive(Deserialize)]
struct Sample {
    name: String,
    about: String,
    shapes: Vec<Vec<u64>>,
    #[serde(skip)]
    values: Vec<f32>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn samples() -> Vec<Sample> {
    let data = root().join("strategies/tests/data");
    let text = std::fs::read_to_string(data.join("deltas.toml")).unwrap();
    let mut samples = toml::from_str::<Deltas>(&text).unwrap().delta;
    for sample in &mut samples {
        let bytes = std::fs::read(data.join(format!("{}-delta.f32", sample.name))).unwrap();
        let values = bytes
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes(b.try_into().unwrap()));
        sample.values = values.collect();
    }
    samples
}

impl Sample {
    fn matrices(&self) -> Vec<Matrix> {
        let named = self.shapes.iter().map(|shape| ("x", shape.clone()));
        let layout = Layout::new(named);
        assert_eq!(layout.len(), self.values.len(), "{}", self.name);
        let whole = layout
            .tensors()
            .iter()
            .filter(|tensor| tensor.shape.len() > 1);
        whole
            .map(|tensor| Matrix {
                offset: tensor.range().start,
                rows: tensor.shape[0] as usize,
                columns: tensor.len() / tensor.shape[0] as usize,
            })
            .collect()
    }
}

fn kind(spec: &CodecSpec) -> CodecKind {
    let needed = spec.parameters.iter().filter(|p| p.default.is_none());
    let given: Vec<_> = needed.map(|p| (p.name, p.range.example())).collect();
    CodecKind::new(spec.name, &given).unwrap()
}

/// What members keep in common after a round in which they sent these values exactly; nothing where
/// a first round is not exact.
fn after_an_exact_round(kind: &CodecKind, values: &[f32], matrices: &[Matrix]) -> Vec<f32> {
    let (mut codec, mut memory, mut out) = (kind.build(), Vec::new(), Vec::new());
    let (mut moved, mut shared) = (vec![0.0; values.len()], Vec::new());
    if codec.gathering().is_none() {
        return shared;
    }
    let mut context = EncodeContext::seeded(1, &mut memory);
    context.matrices = matrices;
    codec.encode(values, &mut context, &mut out);
    let contributions = [Contributed {
        bytes: &out,
        share: 1.0,
        held: &[],
    }];
    let agreed = Agreed {
        contributions: &contributions,
        own: Some(0),
        round: 0,
        shared_seed: 1,
        shared: &[],
    };
    let gathering = codec.gathering().unwrap();
    gathering.gather(&agreed, &mut moved).unwrap();
    if moved == values {
        gathering.settle(&agreed, &moved, &mut shared);
    }
    shared
}

/// Bits a value, and `||C(x) - x|| / ||x||`, of a codec on a delta: the mean over some seeds, each
/// from a fresh state.
fn measure(kind: &CodecKind, sample: &Sample) -> [f64; 2] {
    let properties = kind.build().properties();
    let (values, matrices) = (&sample.values, sample.matrices());
    let draws = if properties.stochastic { DRAWS } else { 1 };
    let named = if properties.matrices {
        &matrices[..]
    } else {
        &[]
    };
    let shared = after_an_exact_round(kind, values, named);
    let (mut bits, mut error) = (0.0, 0.0);
    for seed in 0..draws {
        let (mut codec, mut memory, mut out) = (kind.build(), Vec::new(), Vec::new());
        let mut planes: [Vec<f32>; PLANES_MAX] = Default::default();
        planes
            .iter_mut()
            .take(properties.planes)
            .for_each(|p| p.resize(values.len(), 0.0));
        let mut context = EncodeContext::seeded(seed + 1, &mut memory);
        context.matrices = named;
        context.planes = planes.each_mut().map(Vec::as_mut_slice);
        context.shared = &shared;
        codec.encode(values, &mut context, &mut out);
        let mut left = values.clone();
        codec.decode_own(&out, &shared, -1.0, &mut left).unwrap();
        bits += 8.0 * out.len() as f64 / values.len() as f64 / draws as f64;
        error += squares(&left) / squares(values) / draws as f64;
    }
    [bits, error.sqrt()]
}

fn squares(values: &[f32]) -> f64 {
    values.iter().map(|v| f64::from(*v).powi(2)).sum()
}

/// A row without its speeds: what must be true at any time.
fn facts(spec: &CodecSpec, samples: &[Sample]) -> [String; 2] {
    let kind = kind(spec);
    let properties = kind.build().properties();
    let parameters = kind.to_table();
    let parameters: Vec<_> = parameters
        .iter()
        .map(|(key, value)| format!("{key} {value}"))
        .collect();
    let mut before = format!(
        "| `{}` | {} | {} |",
        spec.name,
        spec.source,
        parameters.join(", ")
    );
    for [bits, error] in samples.iter().map(|sample| measure(&kind, sample)) {
        // Signs without a scale are no estimate of x.
        let error = match properties.scaled {
            true => format!("{error:.3}"),
            false => "-".to_owned(),
        };
        let _ = write!(before, " {bits:.2} | {error} |");
    }
    let summed = match properties.reduction {
        Reduction::WhileEncoded => "while encoded",
        Reduction::AfterDecoding => "yes",
        Reduction::Squeezed => "by stable owners",
        Reduction::TwoPasses => "in a second pass",
        Reduction::Gathered => "no",
    };
    let state = properties.planes + usize::from(properties.needs_feedback);
    [before, format!(" {state} | {summed} |")]
}

/// GB/s of f32 that are encoded and added.
fn speeds(kind: &CodecKind, values: &[f32]) -> [f64; 2] {
    let properties = kind.build().properties();
    let (mut codec, mut memory, mut out) = (kind.build(), Vec::new(), Vec::new());
    let mut planes: [Vec<f32>; PLANES_MAX] = Default::default();
    planes
        .iter_mut()
        .take(properties.planes)
        .for_each(|p| p.resize(values.len(), 0.0));
    let matrix = [Matrix {
        offset: 0,
        rows: values.len() / 1000,
        columns: 1000,
    }];
    let named = if properties.matrices {
        &matrix[..]
    } else {
        &[]
    };
    let shared = after_an_exact_round(kind, values, named);
    let mut acc = vec![0.0; values.len()];
    let mut best = [f64::INFINITY; 2];
    for seed in 0..RUNS {
        out.clear();
        let mut context = EncodeContext::seeded(seed as u64 + 1, &mut memory);
        context.matrices = named;
        context.planes = planes.each_mut().map(Vec::as_mut_slice);
        context.shared = &shared;
        let start = Instant::now();
        codec.encode(values, &mut context, &mut out);
        best[0] = best[0].min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        codec.decode_own(&out, &shared, 0.25, &mut acc).unwrap();
        best[1] = best[1].min(start.elapsed().as_secs_f64());
    }
    best.map(|seconds| 4e-9 * values.len() as f64 / seconds)
}

/// Nearly normal values: what deltas look like.
fn values() -> Vec<f32> {
    let mut state = 1u64;
    let mut uniform = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / 16_777_216.0 - 0.5
    };
    (0..LEN)
        .map(|_| 0.01 * (uniform() + uniform() + uniform() + uniform()))
        .collect()
}

/// Where the speeds were measured, with memcpy for comparison.
fn machine(values: &[f32]) -> String {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let name = name.map_or("unknown", |name| name.trim_matches([' ', '\t', ':']));
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("?");
    let mut copy = vec![0.0; values.len()];
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        let start = Instant::now();
        std::hint::black_box(&mut copy).copy_from_slice(values);
        best = best.min(start.elapsed().as_secs_f64());
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let copied = 4e-9 * values.len() as f64 / best;
    format!(
        "\nSpeeds: {name}, {}, one core of {cores}, load average {load}; memcpy of the same values: {copied:.2} GB/s.\n",
        std::env::consts::ARCH
    )
}

fn head(samples: &[Sample]) -> String {
    let about: Vec<_> = samples
        .iter()
        .map(|s| format!("- {}: {}, {} values", s.name, s.about, s.values.len()))
        .collect();
    format!(
        "# Codecs\n\nEvery codec on two real deltas of 16 inner steps, without error feedback, with default parameters or\n\
         those shown:\n\n{}\n\nBits are those of the whole encoding, per value. The error is `||C(x) - x|| / ||x||`. An unbiased codec\n\
         may exceed 1, because its errors cancel out over peers and rounds. Speeds are GB/s of f32 on one\n\
         core, for 10 million nearly normal values encoded without a residual. To measure them on your\n\
         machine, also with a residual and as fractions of memcpy, run\n\
         `murmurate bench codecs`. State is in multiples of the parameters and\n\
         includes the residual of error feedback. Reduced says whether an all-reduce may sum contributions\n\
         on the way. Written by `strategies/tests/codecs/table.rs` from the deltas of\n\
         `tasks/examples/delta_samples.rs`; do not edit.\n\n\
         The first round of `gradiveq` is exact, and members compute components from its result. Its row is of the\n\
         round after that, of the same delta: of another delta, components leave out more.\n\n\
         Four codecs cannot reach 1 GB/s, because of their arithmetic. For each value, `count-sketch` reads or\n\
         writes 2 x 3 sums at random places while it encodes, and 3 while it decodes; `fetch-sgd` has 5 rows. The\n\
         tables of a large slice outgrow the first cache, so most of these accesses wait for the second. `atomo`\n\
         takes for each value of 64 rows of b columns 32 multiplications and additions in f64 (the Gram matrix),\n\
         64 in f32 (the projections), and up to 16,000 / b rotations of 12 operations in f64 for the\n\
         eigenvectors: at 1000 columns up to 380 operations for 4 bytes. `sufficient-factors` goes over the\n\
         matrix twice for each of its 32 samples. With a residual, `de-mo` transforms every value twice: 88\n\
         multiplications and as many additions.\n\n\
         | codec | source | parameters | mnist: bits | error | transformer: bits | error | encode | decode_add | state | reduced |\n\
         |---|---|---|---|---|---|---|---|---|---|---|\n",
        about.join("\n")
    )
}

/// The page with the speeds of the old page.
fn without_speeds(old: &str, samples: &[Sample]) -> String {
    let mut page = head(samples);
    for spec in CODECS {
        let [before, after] = facts(spec, samples);
        let name = format!("| `{}` |", spec.name);
        let row = old.lines().find(|line| line.starts_with(&name));
        let cells: Vec<&str> = row.map_or_else(Vec::new, |row| row.split(" | ").collect());
        let speed = |at: usize| cells.get(at).copied().unwrap_or("-");
        let _ = writeln!(page, "{before} {} | {} |{after}", speed(7), speed(8));
    }
    let last = old.lines().rfind(|line| line.starts_with("Speeds:"));
    let _ = writeln!(page, "\n{}", last.unwrap_or_default());
    page
}

#[test]
fn the_page_says_what_codecs_do() {
    let (samples, path) = (samples(), root().join("docs/codecs.md"));
    match std::env::var("UPDATE_DOCS").as_deref() {
        Ok("facts") => {
            let page = without_speeds(&std::fs::read_to_string(&path).unwrap(), &samples);
            std::fs::write(&path, page).unwrap();
        }
        Ok(_) => {
            let (mut page, values) = (head(&samples), values());
            for spec in CODECS {
                let ([before, after], [encode, add]) =
                    (facts(spec, &samples), speeds(&kind(spec), &values));
                let _ = writeln!(page, "{before} {encode:.2} | {add:.2} |{after}");
            }
            page.push_str(&machine(&values));
            std::fs::write(&path, page).unwrap();
        }
        Err(_) => {}
    }
    let page = std::fs::read_to_string(&path).unwrap();
    let again = "UPDATE_DOCS=1 cargo test --release -p murmurate-strategies --test codecs table";
    assert!(
        page.starts_with(&head(&samples)),
        "docs/codecs.md is stale: {again}"
    );
    for spec in CODECS {
        let [before, after] = facts(spec, &samples);
        let found = page
            .lines()
            .any(|line| line.starts_with(&before) && line.ends_with(&after));
        assert!(
            found,
            "docs/codecs.md is stale at `{}`: {before}; {again}",
            spec.name
        );
    }
    let rows = page.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, CODECS.len(), "a codec that is gone: {again}");
}

#[test]
fn samples_are_small_and_real() {
    let all = samples();
    let bytes: usize = all.iter().map(|sample| 4 * sample.values.len()).sum();
    assert!(all.len() == 2 && bytes <= 300_000, "{bytes}");
    for sample in &all {
        assert!(!sample.matrices().is_empty() && squares(&sample.values) > 0.0);
        assert!(
            sample.values.iter().all(|v| v.is_finite()),
            "{}",
            sample.name
        );
    }
}
