//! A slice as the Executor would give it to a codec: planes, memory and matrices as it asks.
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "helpers of tests; every test file uses its own part of them"
)]

use murmurate_strategies::compress::{
    Codec, CodecKind, CodecSpec, EncodeContext, Matrix, PLANES_MAX,
};

pub struct Slice {
    planes: [Vec<f32>; PLANES_MAX],
    memory: Vec<f32>,
    matrices: Vec<Matrix>,
    pub round: u64,
}

impl Slice {
    /// Of `len` values: those after the first are a matrix of 24 columns and one of three.
    pub fn new(codec: &dyn Codec, len: usize) -> Self {
        let properties = codec.properties();
        let plane = |at: usize| vec![0.0; if at < properties.planes { len } else { 0 }];
        let mut matrices = Vec::new();
        if properties.matrices {
            let rows = len.saturating_sub(1) * 7 / 8 / 24;
            let left = len.saturating_sub(1) - 24 * rows;
            let all = [(1, rows, 24), (1 + 24 * rows, left / 3, 3)];
            let all = all.map(|(offset, rows, columns)| Matrix {
                offset,
                rows,
                columns,
            });
            matrices.extend(all.into_iter().filter(|matrix| matrix.rows > 0));
        }
        Self {
            planes: core::array::from_fn(plane),
            memory: Vec::new(),
            matrices,
            round: 0,
        }
    }

    pub fn context(&mut self, seed: u64) -> EncodeContext<'_> {
        EncodeContext {
            shared_seed: seed,
            round: self.round,
            matrices: &self.matrices,
            planes: self.planes.each_mut().map(Vec::as_mut_slice),
            ..EncodeContext::seeded(seed, &mut self.memory)
        }
    }
}

/// A codec of the list with its defaults, and `required` for what has none.
pub fn kind(spec: &CodecSpec, required: f64) -> CodecKind {
    let missing = spec.parameters.iter().filter(|p| p.default.is_none());
    let given: Vec<_> = missing.map(|p| (p.name, required)).collect();
    CodecKind::new(spec.name, &given).expect("within its range")
}

/// A codec as the configuration writes it.
pub fn parsed(text: &str) -> CodecKind {
    toml::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Products of sparsifiers with codecs for the values, and other settings of what is sparse.
pub fn sparse() -> Vec<CodecKind> {
    let products = [
        "codec = 'top-k'\ndensity = 0.001",
        "codec = 'top-k'\ndensity = 0.4\nvalues = 'int8'",
        "codec = 'top-k'\ndensity = 1.0",
        "codec = 'top-k'\ndensity = 0.05\nvalues = 'qsgd'",
        "codec = 'chunk-top-k'\ndensity = 0.015625\nvalues = 'two-bit'\ndecay = 0.95",
        "codec = 'chunk-top-k'\ndensity = 0.3\nchunk = 64\nvalues = 'fp16'",
        "codec = 'random-k'\ndensity = 0.3\nvalues = 'sign-mean'",
        "codec = 'random-k-unbiased'\ndensity = 0.25\nvalues = 'natural'",
        "codec = 'wangni'\ndensity = 0.3\nvalues = 'bf16'",
        "codec = 'sidco'\ndensity = 0.05\nstages = 1\nvalues = 'ef-sign'",
        "codec = 'gaussian-k'\ndensity = 0.05\nvalues = 'eden'",
        "codec = 'ada-comp'\nbin = 50\nvalues = 'f32'",
        "codec = 'dgc'\ndensity = 0.01\nwarm_up = 3\nclip = 1.0\nmomentum = 0.5",
        "codec = 'de-mo'\nkept = 64\nvalues = 'int8'\ndecay = 1.0",
        "codec = 'power-sgd'\nrank = 1",
        "codec = 'atomo'\nrank = 2",
        "codec = 'sufficient-factors'\nsamples = 3",
        "codec = 'count-sketch'\ndensity = 0.05\nwidth = 0.3\nrows = 4",
    ];
    products.map(parsed).to_vec()
}
