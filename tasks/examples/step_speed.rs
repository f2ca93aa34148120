//! Measures the fraction of a transformer's inner step that matrix products take: useful GFLOP/s of
//! the whole inner step (`useful_flops`), divided by those of a 1024 x 1024 x
//! 1024 product. Both are measured in turns in the same run, because other programs may use the
//! machine.
//!
//!     cargo run --release -p murmurate-tasks --example step_speed -- [ROUNDS]

use murmurate_strategies::inner::InnerKind;
use murmurate_tasks::burn::tensor::{Device, Tensor, TensorData};
use murmurate_tasks::config::{DataSource, LanguageConfig};
use murmurate_tasks::data::Shards;
use murmurate_tasks::model::TransformerShape;
use murmurate_tasks::{BurnTrainer, DeviceChoice, LanguageTask, take_steps};
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SIDE: usize = 1024;
const PRODUCTS: u32 = 8;
const STEPS: u64 = 4;

fn main() -> Result<(), Box<dyn Error>> {
    let rounds = std::env::args().nth(1).map_or(Ok(5), |text| text.parse())?;
    println!(
        "{:<34} {:>9} {:>9} {:>9} {:>6}",
        "model", "ms/step", "GFLOP/s", "product", "ratio"
    );
    for (width, heads, batch) in [(128, 4, 16), (256, 4, 16), (512, 8, 8)] {
        let usual = LanguageConfig::of(DataSource::Path("text".into()));
        let config = LanguageConfig {
            width,
            heads,
            batch,
            ..usual
        };
        let text: Vec<u8> = (0..100_000_u32).map(|i| (i * i / 7 % 251) as u8).collect();
        let task = LanguageTask::of_text(&config, &text, 1, &Shards::whole())?;
        let shape = task.shape();
        let flops = useful_flops(shape, (config.batch * config.context) as usize);
        let kind = InnerKind::adam_w(1e-3);
        let mut trainer = BurnTrainer::new(task, &kind, &DeviceChoice::Flex, 1)?;
        take_steps(&mut trainer, 2)?;
        let mut measured = Vec::new();
        for _ in 0..rounds {
            let product = 2.0 * (SIDE as f64).powi(3) / product_seconds() / 1e9;
            let begin = Instant::now();
            take_steps(&mut trainer, STEPS)?;
            let seconds = begin.elapsed().as_secs_f64() / STEPS as f64;
            measured.push((seconds, flops / seconds / 1e9, product));
        }
        measured.sort_by(|a, b| (a.1 / a.2).total_cmp(&(b.1 / b.2)));
        let (seconds, speed, product) = measured[measured.len() / 2];
        let name = format!(
            "{} layers, d{width}, ctx{}, batch {batch}",
            shape.layers, shape.context
        );
        let (ms, ratio) = (1e3 * seconds, speed / product);
        println!("{name:<34} {ms:>9.1} {speed:>9.1} {product:>9.1} {ratio:>6.2}");
    }
    Ok(())
}

/// Useful floating-point operations of one inner step on `tokens` bytes.
///
/// `6 P tokens + 12 layers context width tokens`: two operations per weight `P` of a matrix product and byte,
/// once forward and twice backward, and the same for the two products of attention over the whole context
/// (the causal half is not subtracted). Embeddings, norms, softmax and the optimizer are not counted, nor is
/// anything computed twice.
///
/// **Source:** Chowdhery et al., PaLM, 2022, appendix B.
fn useful_flops(shape: TransformerShape, tokens: usize) -> f64 {
    let (layers, width) = (shape.layers as f64, shape.width as f64);
    let weights = layers * 12.0 * width * width + 256.0 * width;
    let attention = 12.0 * layers * shape.context as f64 * width;
    (6.0 * weights + attention) * tokens as f64
}

fn product_seconds() -> f64 {
    let matrix = |scale: f32| {
        let values = (0..SIDE * SIDE)
            .map(|i| (i % 13) as f32 * scale)
            .collect::<Vec<_>>();
        Tensor::<2>::from_data(TensorData::new(values, [SIDE, SIDE]), &Device::flex())
    };
    let (a, b) = (matrix(0.1), matrix(0.2));
    black_box(a.clone().matmul(b.clone()));
    let begin = Instant::now();
    for _ in 0..PRODUCTS {
        black_box(a.clone().matmul(b.clone()));
    }
    begin.elapsed().as_secs_f64() / f64::from(PRODUCTS)
}
