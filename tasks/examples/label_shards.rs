//! Searches settings for the run without configuration: N trainers in one process, images sharded
//! by label, deltas averaged after every H inner steps, and an outer step on the mean. It computes
//! what the daemons compute, in lockstep and without a network.
//!
//!     RAYON_NUM_THREADS=1 cargo run --release -p murmurate-tasks --example label_shards -- \
//!         lr=0.1 h=8 outer=nesterov:0.7:0.9 rounds=100 target=0.96
//!
//! `shards=iid` splits the images evenly. `leave=R` removes the last peer before round R. The
//! example prints when the anchor of every peer passed the target. With `rounds=0 alone=N` it
//! prints the accuracy of each peer alone after N inner steps.

use murmurate_strategies::Trainer;
use murmurate_strategies::inner::InnerKind;
use murmurate_tasks::TaskConfig;
use murmurate_tasks::config::{Augmentation, ImageConfig, ImageModel};
use murmurate_tasks::data::{ShardKind, Shards};
use murmurate_tasks::{DeviceChoice, build, parameters, take_steps};
use std::collections::BTreeMap;
use std::error::Error;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn Error + Send + Sync>;

struct Settings(BTreeMap<String, String>);

impl Settings {
    fn read() -> Result<Self, Failure> {
        let pairs = std::env::args().skip(1).map(|argument| {
            let (key, value) = argument.split_once('=').ok_or("settings are KEY=VALUE")?;
            Ok::<_, Failure>((key.to_owned(), value.to_owned()))
        });
        Ok(Self(pairs.collect::<Result<_, _>>()?))
    }

    fn number(&self, key: &str, usual: f64) -> Result<f64, Failure> {
        self.0.get(key).map_or(Ok(usual), |text| Ok(text.parse()?))
    }

    fn text<'a>(&'a self, key: &str, usual: &'a str) -> &'a str {
        self.0.get(key).map_or(usual, String::as_str)
    }

    fn task(&self) -> Result<TaskConfig, Failure> {
        let usual = ImageConfig::default();
        Ok(TaskConfig::ImageClassifier(ImageConfig {
            model: match self.text("model", "usual") {
                "mlp" => ImageModel::Mlp,
                "cnn" => ImageModel::Cnn,
                _ => usual.model,
            },
            hidden: self.number("hidden", usual.hidden.into())? as u32,
            batch: self.number("batch", usual.batch.into())? as u32,
            augmentation: match self.text("shift", "usual") {
                "0" => Augmentation::None,
                "1" => Augmentation::Shift1,
                "2" => Augmentation::Shift2,
                _ => usual.augmentation,
            },
            ..usual
        }))
    }

    fn inner(&self) -> Result<InnerKind, Failure> {
        let lr = self.number("lr", 0.1)?;
        let momentum = self.number("momentum", 0.0)?;
        Ok(match self.text("inner", "sgd") {
            "adam-w" => InnerKind::adam_w(lr),
            _ => InnerKind::sgd(lr).with("momentum", momentum),
        })
    }

    /// Rate and momentum of the outer optimizer; plain averaging is (1, 0).
    fn outer(&self) -> Result<(f32, f32), Failure> {
        match self.text("outer", "average").split(':').collect::<Vec<_>>()[..] {
            ["nesterov", rate, momentum] => Ok((rate.parse()?, momentum.parse()?)),
            _ => Ok((1.0, 0.0)),
        }
    }
}

fn main() -> Result<(), Failure> {
    let settings = Settings::read()?;
    let (task, inner) = (settings.task()?, settings.inner()?);
    let nodes = settings.number("nodes", 4.0)? as u32;
    let seed = settings.number("seed", 7.0)? as u64;
    let begin = Instant::now();
    let kind = match settings.text("shards", "by-label") {
        "iid" => ShardKind::Iid,
        _ => ShardKind::ByLabel,
    };
    let shards = |index| Shards {
        kind,
        index,
        of: nodes,
        seed,
        ..Shards::whole()
    };
    let mut trainers = (0..nodes)
        .map(|index| build(&task, &inner, &DeviceChoice::Flex, seed, &shards(index)))
        .collect::<Result<Vec<_>, _>>()?;
    let alone = settings.number("alone", 0.0)? as u64;
    if alone > 0 {
        for (index, trainer) in trainers.iter_mut().enumerate() {
            take_steps(trainer.as_mut(), alone)?;
            let accuracy = trainer.evaluate()?.accuracy.unwrap_or_default();
            println!("alone {index}: {accuracy:.4} after {alone} inner steps");
        }
        return Ok(());
    }
    println!("{task}, {inner:?}, outer {:?}", settings.outer()?);
    swarm(&settings, &mut trainers, begin)
}

fn swarm(
    settings: &Settings,
    trainers: &mut Vec<Box<dyn Trainer>>,
    begin: Instant,
) -> Result<(), Failure> {
    let steps = settings.number("h", 8.0)? as u64;
    let rounds = settings.number("rounds", 40.0)? as u64;
    let target = settings.number("target", 0.96)?;
    let every = settings.number("every", 5.0)? as u64;
    let leave = settings.number("leave", 0.0)? as u64;
    let (rate, momentum) = settings.outer()?;
    let mut anchor = parameters(trainers[0].as_mut());
    let mut velocity = vec![0.0_f32; anchor.len()];
    let mut training = 0.0;
    let mut reached = false;
    for round in 1..=rounds {
        if round == leave {
            trainers.pop();
        }
        let start = Instant::now();
        std::thread::scope(|scope| {
            let lanes: Vec<_> = trainers
                .iter_mut()
                .map(|trainer| scope.spawn(|| take_steps(trainer.as_mut(), steps).map(|_| ())))
                .collect();
            lanes.into_iter().try_for_each(|lane| {
                lane.join()
                    .map_err(|_| "a trainer panicked")?
                    .map_err(Failure::from)
            })
        })?;
        training += start.elapsed().as_secs_f64();
        let mut mean = vec![0.0_f32; anchor.len()];
        for trainer in trainers.iter_mut() {
            trainer.visit(0..anchor.len(), &mut |offset, values| {
                for (at, value) in values.iter().enumerate() {
                    mean[offset + at] += value - anchor[offset + at];
                }
            });
        }
        let count = trainers.len() as f32;
        for ((theta, v), delta) in anchor.iter_mut().zip(&mut velocity).zip(mean) {
            let delta = delta / count;
            *v = momentum * *v + delta;
            *theta += rate * (delta + momentum * *v);
        }
        for trainer in trainers.iter_mut() {
            trainer.visit(0..anchor.len(), &mut |offset, values| {
                values.copy_from_slice(&anchor[offset..offset + values.len()]);
            });
        }
        if round % every == 0 || round == rounds {
            let evaluation = trainers[0].evaluate()?;
            let accuracy = evaluation.accuracy.unwrap_or_default();
            let wall = begin.elapsed().as_secs_f64();
            let mark = if accuracy >= target && !reached {
                " <- target"
            } else {
                ""
            };
            reached |= accuracy >= target;
            println!(
                "round {round:>4} inner steps {:>6} accuracy {accuracy:.4} loss {:.4} train {training:.1} s wall {wall:.1} s{mark}",
                round * steps,
                evaluation.loss
            );
        }
    }
    Ok(())
}
