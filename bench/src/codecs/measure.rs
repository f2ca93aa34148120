//! The measurement of one codec.

use murmurate_strategies::compress::{Codec, EncodeContext, Matrix};
use std::hint::black_box;
use std::time::Instant;

/// Columns of the matrix that the values are taken for, by codecs of matrices.
const COLUMNS: usize = 4096;

/// Best seconds of each kind of work; infinite where the codec does not have it.
pub(super) struct Times {
    pub(super) memcpy: f64,
    pub(super) encode: f64,
    pub(super) encode_residual: f64,
    pub(super) decode_add: f64,
    pub(super) encoded: usize,
}

pub(super) struct Buffers {
    values: Vec<f32>,
    copy: Vec<f32>,
    residual: Vec<f32>,
    acc: Vec<f32>,
    out: Vec<u8>,
}

/// Nearly normal values with now and then a small one: what deltas look like.
fn values(count: usize) -> Vec<f32> {
    let mut state = 1u64;
    let mut uniform = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / 16_777_216.0 - 0.5
    };
    (0..count)
        .map(|at| {
            let sum = uniform() + uniform() + uniform() + uniform();
            sum * if at % 1000 == 0 { 0.05 } else { 0.01 }
        })
        .collect()
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

impl Buffers {
    pub(super) fn new(count: usize) -> Self {
        Self {
            values: values(count),
            copy: vec![0.0; count],
            residual: vec![0.0; count],
            acc: vec![0.0; count],
            out: Vec::with_capacity(5 * count),
        }
    }

    /// Encodes and decodes some times, with a memcpy of the same values between.
    pub(super) fn measure(&mut self, codec: &mut dyn Codec, runs: u32) -> Times {
        let count = self.values.len();
        let mut times = Times {
            memcpy: f64::INFINITY,
            encode: f64::INFINITY,
            encode_residual: f64::INFINITY,
            decode_add: f64::INFINITY,
            encoded: 0,
        };
        let mut memory = Vec::new();
        let properties = codec.properties();
        let feedback = properties.error <= 1.0;
        // Nearly all of the values are one matrix.
        let matrix = [Matrix {
            offset: 0,
            rows: count / COLUMNS,
            columns: COLUMNS,
        }];
        let mut plane = vec![0.0; if properties.planes > 0 { count } else { 0 }];
        self.residual.fill(0.0);
        for run in 0..u64::from(runs) {
            let copying = || black_box(&mut self.copy).copy_from_slice(&self.values);
            times.memcpy = times.memcpy.min(seconds(copying));
            if feedback {
                let mut context = EncodeContext {
                    matrices: &matrix,
                    planes: [&mut plane, &mut []],
                    ..EncodeContext::seeded(run, &mut memory)
                };
                self.out.clear();
                let (values, residual) = (black_box(&self.values), &mut self.residual);
                let work = || codec.encode_residual(values, residual, &mut context, &mut self.out);
                times.encode_residual = times.encode_residual.min(seconds(work));
            }
            let mut context = EncodeContext {
                matrices: &matrix,
                ..EncodeContext::seeded(run, &mut memory)
            };
            self.out.clear();
            let work = || codec.encode(black_box(&self.values), &mut context, &mut self.out);
            times.encode = times.encode.min(seconds(work));
            let work = || {
                let decoded = codec.decode_add(black_box(&self.out), 0.25, &mut self.acc);
                assert!(decoded.is_ok(), "a codec decodes what it encoded");
            };
            times.decode_add = times.decode_add.min(seconds(work));
        }
        times.encoded = self.out.len();
        times
    }
}
