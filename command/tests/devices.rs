//! A graphics device computes what the processor computes: `cargo test -p murmurate --features wgpu
//! --test devices`. A driver that runs on the processor, such as Mesa's lavapipe, suffices.

#![cfg(feature = "wgpu")]
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic too")]

use murmurate_protocol::InnerStep;
use murmurate_strategies::inner::InnerKind;
use murmurate_strategies::state::MemoryState;
use murmurate_strategies::{Proceed, StepControl, Trainer};
use murmurate_tasks::config::{
    Architecture, CausalConfig, CausalModel, DataSource, FreshModel, ImageConfig, LanguageConfig,
    TaskConfig,
};
use murmurate_tasks::data::Shards;
use murmurate_tasks::{DeviceChoice, build, parameters, take_steps};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

const FLEX: DeviceChoice = DeviceChoice::Flex;
const WGPU: DeviceChoice = DeviceChoice::Wgpu(None);

/// The largest difference between two devices in a loss, in nats.
const CLOSE: f64 = 1e-4;

fn trainer(task: &TaskConfig, inner: &InnerKind, device: &DeviceChoice) -> Box<dyn Trainer> {
    build(task, inner, device, 5, &Shards::whole()).unwrap()
}

fn mlp() -> TaskConfig {
    TaskConfig::ImageClassifier(ImageConfig {
        hidden: 32,
        batch: 32,
        ..ImageConfig::default()
    })
}

fn text(dir: &Path) -> PathBuf {
    let path = dir.join("text.txt");
    let line = "how much wood would a woodchuck chuck if a woodchuck could chuck wood?\n";
    std::fs::write(&path, line.repeat(80)).unwrap();
    path
}

fn transformer(dir: &Path) -> TaskConfig {
    TaskConfig::LanguageModel(LanguageConfig {
        layers: 2,
        width: 32,
        heads: 2,
        context: 16,
        batch: 8,
        ..LanguageConfig::of(DataSource::Path(text(dir)))
    })
}

/// Losses of single inner steps.
fn losses(trainer: &mut dyn Trainer, steps: usize) -> Vec<f64> {
    let step = |_| take_steps(trainer, 1).unwrap().loss;
    (0..steps).map(step).collect()
}

fn assert_close(a: &[f64], b: &[f64]) {
    for (step, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() < CLOSE, "inner step {step}: {a} and {b}");
    }
}

#[test]
fn losses_are_those_of_the_processor_over_fifty_inner_steps() {
    let dir = tempfile::tempdir().unwrap();
    let momentum = InnerKind::sgd(0.05).with("momentum", 0.9);
    let momentum = momentum.with("weight_decay", 1e-4);
    for (task, inner) in [
        (mlp(), momentum),
        (transformer(dir.path()), InnerKind::adam_w(1e-3)),
    ] {
        let mut here = trainer(&task, &inner, &FLEX);
        let mut there = trainer(&task, &inner, &WGPU);
        assert_eq!(parameters(here.as_mut()), parameters(there.as_mut()));
        let (a, b) = (losses(here.as_mut(), 50), losses(there.as_mut(), 50));
        assert!(a[49] < 0.8 * a[0], "it learns: {a:?}");
        assert_close(&a, &b);
        let (a, b) = (here.evaluate().unwrap(), there.evaluate().unwrap());
        assert_close(&[a.loss], &[b.loss]);
    }
}

/// The norm is summed on the device, and accumulated gradients stay there.
#[test]
fn clipped_and_accumulated_gradients_are_those_of_the_processor() {
    let dir = tempfile::tempdir().unwrap();
    let task = TaskConfig::CausalLm(CausalConfig {
        model: CausalModel::Fresh(FreshModel {
            architecture: Architecture::Llama,
            layers: 1,
            width: 32,
            hidden: 64,
            heads: 2,
            kv_heads: 1,
            tied: false,
        }),
        context: Some(16),
        batch: 4,
        accumulate: 2,
        clip_norm: Some(0.5),
        ..CausalConfig::of(DataSource::Path(text(dir.path())))
    });
    let inner = InnerKind::adam_w(3e-3);
    let mut here = trainer(&task, &inner, &FLEX);
    let mut there = trainer(&task, &inner, &WGPU);
    let (a, b) = (losses(here.as_mut(), 10), losses(there.as_mut(), 10));
    assert_close(&a, &b);
}

#[test]
fn a_checkpoint_moves_between_a_device_and_the_processor() {
    let task = mlp();
    let signum = InnerKind::new("signum", &[("lr", 1e-3), ("weight_decay", 0.01)]).unwrap();
    for (inner, from, to) in [
        (InnerKind::adam_w(1e-3), WGPU, FLEX),
        (InnerKind::adam_w(1e-3), FLEX, WGPU),
        (signum, WGPU, FLEX),
    ] {
        let mut first = trainer(&task, &inner, &from);
        take_steps(first.as_mut(), 8).unwrap();
        let mut state = MemoryState::default();
        first.save(&mut state).unwrap();
        let mut second = trainer(&task, &inner, &to);
        second.write(0, &parameters(first.as_mut()));
        second.load(&state).unwrap();
        let (a, b) = (losses(first.as_mut(), 5), losses(second.as_mut(), 5));
        assert_close(&a, &b);
    }
}

#[test]
fn ranges_are_read_and_written_to_the_bit() {
    let mut trainer = trainer(&mlp(), &InnerKind::sgd(0.1), &WGPU);
    let before = parameters(trainer.as_mut());
    // From the middle of the first tensor to the middle of the third.
    let (start, end) = (700, before.len() - 7);
    let values: Vec<f32> = (start..end).map(|i| i as f32 / 3.0).collect();
    trainer.write(start, &values);
    let after = parameters(trainer.as_mut());
    assert_eq!(after[..start], before[..start]);
    assert_eq!(after[start..end], values);
    assert_eq!(after[end..], before[end..]);
    let mut part = vec![0.0; 100];
    trainer.read(start - 50, &mut part);
    assert_eq!(part, after[start - 50..start + 50]);
}

/// Halves every gradient for a few inner steps.
struct Halved(u64);

impl StepControl for Halved {
    fn before(&mut self, step: InnerStep) -> Proceed {
        match step.0 < self.0 {
            true => Proceed::Go,
            false => Proceed::Stop,
        }
    }

    fn correct(&mut self, _: usize, _: &[f32], gradient: &mut [f32]) {
        gradient.iter_mut().for_each(|g| *g *= 0.5);
    }
}

#[test]
fn a_corrected_gradient_reaches_the_device() {
    let mut corrected = trainer(&mlp(), &InnerKind::sgd(0.1), &WGPU);
    let mut slower = trainer(&mlp(), &InnerKind::sgd(0.05), &WGPU);
    corrected.steps(&mut Halved(5)).unwrap();
    take_steps(slower.as_mut(), 5).unwrap();
    let (a, b) = (parameters(corrected.as_mut()), parameters(slower.as_mut()));
    let far = a.iter().zip(&b).map(|(a, b)| (a - b).abs());
    let far = far.fold(0.0, f32::max);
    assert!(far < 1e-6, "{far}");
}

/// A daemon that prints JSON lines.
struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    fn start(dir: &Path, name: &str, more: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_murmurate"))
            .current_dir(dir)
            .args([
                "run",
                "--open",
                "--log",
                "json",
                "--no-mdns",
                "--rounds",
                "4",
            ])
            .args(["--start-with", "2", "--dir", name])
            .args(["--listen", "/ip4/127.0.0.1/udp/0/quic-v1"])
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    fn next(&mut self, event: &str) -> Value {
        loop {
            let mut line = String::new();
            let read = self.lines.read_line(&mut line).unwrap();
            assert!(read > 0, "it ended before `{event}`");
            let value: Value = serde_json::from_str(&line).unwrap();
            if value["event"] == event {
                return value;
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_device_and_a_processor_train_one_model() {
    let dir = tempfile::tempdir().unwrap();
    let mut first = Running::start(dir.path(), "a", &["--device", "wgpu:0"]);
    let address = first.next("listening")["addresses"][0].clone();
    let join = ["--join", address.as_str().unwrap()];
    let mut second = Running::start(dir.path(), "b", &join);
    let (a, b) = (first.next("report"), second.next("report"));
    assert_eq!(a["rounds"], 4);
    assert_eq!(a["voids"], 0, "{a}");
    assert!(a["digest"].is_string(), "{a}");
    assert_eq!(a["digest"], b["digest"]);
    assert!(a["test_accuracy"].as_f64() > Some(0.7), "{a}");
}

#[test]
fn a_device_that_is_not_there_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_murmurate"))
        .current_dir(dir.path())
        .args(["run", "--device", "wgpu:99"])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("there is no device `wgpu:99`"), "{said}");
    assert!(said.contains("counted from 0"), "{said}");
}
