//! A task of your own in one file: a burn model with its batches and its loss, trained by real
//! daemons. Run two of them, in two terminals:
//!
//! ```text
//! cargo run --release --example own_task -- --dir spirals-0 --start-with 2
//! cargo run --release --example own_task -- --dir spirals-1 --start-with 2 --join ADDRESS
//! ```
//!
//! ADDRESS is one that the first daemon prints. Exchange, checkpoints, catching up and `/status`
//! work as for the built-in tasks.

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::sigmoid;
use burn::tensor::{Device, Tensor, TensorData};
use clap::Parser;
use murmurate_node::config::{Config, Overrides};
use murmurate_node::daemon::{self, RunOptions};
use murmurate_node::progress::LogMode;
use murmurate_strategies::Trainer;
// The version of burn that the daemon uses. burn's derive macros expect this name.
use murmurate_tasks::burn;
use murmurate_tasks::{BurnTrainer, Score, Segments, Task, TaskError};
use std::f32::consts::TAU;
use std::path::{Path, PathBuf};

/// Points in a batch.
const BATCH: u64 = 64;

/// First number of the held-out batches, which no daemon trains on.
const HELD_FROM: u64 = 1 << 40;

/// The strategy. Any `[strategy]` works.
const STRATEGY: &str = r#"
[strategy]
preset = "local-sgd"
[strategy.inner]
optimizer = "adam-w"
lr = 0.01
"#;

/// A gated hidden layer: `logit = w . (tanh(A x) * sigmoid(B x))`.
#[derive(Module, Debug)]
struct Gated {
    value: Linear,
    gate: Linear,
    output: Linear,
}

impl Gated {
    fn forward(&self, points: Tensor<2>) -> Tensor<2> {
        let value = self.value.forward(points.clone()).tanh();
        self.output
            .forward(value * sigmoid(self.gate.forward(points)))
    }
}

/// Predicts on which of two interleaved spirals a point lies.
struct Spirals {
    /// Seed of the points. Each daemon has another one, as if it had its own data.
    seed: u64,
}

/// A number in `[0, 1)` that depends on the arguments only (splitmix64), so that a run can be
/// resumed and repeated.
fn draw(seed: u64, index: u64) -> f32 {
    let mut z = seed
        .wrapping_mul(0xd134_2543_de82_ef95)
        .wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 24) as f32
}

impl Task for Spirals {
    type Model = Gated;
    type Batch = (Tensor<2>, Tensor<2>);

    fn model(&self, device: &Device) -> Gated {
        Gated {
            value: LinearConfig::new(5, 32).init(device),
            gate: LinearConfig::new(5, 32).init(device),
            output: LinearConfig::new(32, 1).init(device),
        }
    }

    fn samples(&self) -> u64 {
        BATCH
    }

    fn batch(&mut self, number: u64, device: &Device) -> Result<Self::Batch, TaskError> {
        let (mut points, mut sides) = (Vec::new(), Vec::new());
        for index in number * BATCH..(number + 1) * BATCH {
            let side = (index % 2) as f32;
            let along = draw(self.seed, index);
            let angle = TAU * (along + side / 2.0);
            let (x, y) = (along * angle.cos(), along * angle.sin());
            points.extend([x, y, x * x, y * y, x * y]);
            sides.push(side);
        }
        let n = sides.len();
        Ok((
            Tensor::from_data(TensorData::new(points, [n, 5]), device),
            Tensor::from_data(TensorData::new(sides, [n, 1]), device),
        ))
    }

    /// Logistic loss, `log(1 + exp(-t z))` with `t = -1` or `1`.
    fn loss(&self, model: &Gated, (points, sides): Self::Batch, _: &mut Segments) -> Tensor<1> {
        let signed = model.forward(points) * (sides * 2.0 - 1.0);
        ((-signed).exp() + 1.0).log().mean()
    }

    fn held_batches(&self) -> usize {
        8
    }

    fn score(&mut self, model: &Gated, index: usize, device: &Device) -> Result<Score, TaskError> {
        let own = std::mem::replace(&mut self.seed, 0);
        let batch = self.batch(HELD_FROM + index as u64, device);
        self.seed = own;
        let (points, sides) = batch?;
        let signed = model.forward(points.clone()) * (sides.clone() * 2.0 - 1.0);
        let right = signed.greater_elem(0.0).int().sum().into_scalar::<i64>();
        let loss = self.loss(model, (points, sides), &mut Segments::whole());
        let loss = loss.into_scalar::<f32>();
        Ok(Score {
            loss_sum: f64::from(loss) * BATCH as f64,
            right: u64::try_from(right).ok(),
            right_5: None,
            samples: BATCH,
        })
    }
}

/// Trains spirals with others.
#[derive(Parser)]
struct Args {
    /// The daemon's directory
    #[arg(long)]
    dir: PathBuf,
    /// Address of another daemon, as it prints it
    #[arg(long)]
    join: Vec<String>,
    /// Daemons that the run waits for
    #[arg(long, default_value_t = 1)]
    start_with: u32,
    /// Which of the daemons this is: its data depend on it
    #[arg(long, default_value_t = 0)]
    index: u64,
    /// Rounds in all
    #[arg(long, default_value_t = 40)]
    rounds: u64,
    /// How to tell what happens
    #[arg(long, value_enum, default_value_t = LogMode::Auto)]
    log: LogMode,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    let flags = Overrides {
        name: Some("spirals".to_owned()),
        dir: Some(args.dir),
        join: args.join,
        start_with: Some(args.start_with),
        rounds: Some(args.rounds),
        listen: vec!["/ip4/127.0.0.1/udp/0/quic-v1".to_owned()],
        no_mdns: true,
        // This example lets everyone in; your own runs need not.
        open: true,
        ..Overrides::default()
    };
    let config = Config::from_text(Path::new("own_task"), STRATEGY, &flags)?;
    let options = RunOptions {
        log: args.log,
        ..RunOptions::default()
    };
    let seed = 1 + args.index;
    daemon::run_with_trainer(config, options, |config| {
        // The first parameters depend on the run's seed, so all daemons start equal. The data
        // differ.
        let trainer = BurnTrainer::new(
            Spirals { seed },
            config.strategy.inner_kind(),
            &config.daemon.device,
            config.run.seed,
        )?;
        Ok(Box::new(trainer) as Box<dyn Trainer>)
    })?;
    Ok(())
}
