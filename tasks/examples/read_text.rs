//! How fast `causal-lm` reads a text, how much memory that takes, and whether a reader that begins at a
//! saved place goes on with the same batch:
//!
//! ```text
//! cargo run --release -p murmurate-tasks --example read_text -- big.parquet [tokenizer.json]
//! ```

use burn::tensor::Device;
use murmurate_protocol::{Participants, PeerId};
use murmurate_tasks::config::{CausalConfig, DataSource};
use murmurate_tasks::data::{Dataset, Shards};
use murmurate_tasks::{CausalTask, Task, TaskError, Windows, burn};
use std::time::{Duration, Instant};

/// Tokens of a window, and windows of a batch.
const CONTEXT: u32 = 1023;
const BATCH: u32 = 16;

/// How long to read.
const READ: Duration = Duration::from_secs(30);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments
        .next()
        .ok_or("give a file or folder of text, and a tokenizer.json if you like")?;
    let config = CausalConfig {
        context: Some(CONTEXT),
        batch: BATCH,
        tokenizer: arguments.next(),
        ..CausalConfig::of(DataSource::Path(path.into()))
    };
    let (before, since) = (resident(), Instant::now());
    let mut task = open(&config, &[])?;
    let opened = since.elapsed().as_secs_f64();
    println!(
        "ready after {opened:.2} s, {} MiB more",
        mib(resident(), before)
    );
    let (device, since) = (Device::flex(), Instant::now());
    let (mut most, mut batches) = (before, 0);
    while since.elapsed() < READ {
        task.batch(batches, &device)?;
        batches += 1;
        most = most.max(resident());
    }
    let tokens = batches * u64::from(BATCH) * u64::from(CONTEXT);
    let rate = tokens as f64 / since.elapsed().as_secs_f64();
    println!(
        "{tokens} tokens, {rate:.0} a second, at most {} MiB more",
        mib(most, before)
    );
    let place = task.dataset().map_or(Vec::new(), Dataset::position);
    let mut resumed = open(&config, &place)?;
    let next = bytes(&task.batch(batches, &device)?);
    if bytes(&resumed.batch(batches, &device)?) != next {
        return Err("a reader at the saved place goes on with another batch".into());
    }
    println!("a reader at the saved place goes on with the same batch");
    Ok(())
}

/// A reader of all the text, at a place that another one gave.
fn open(config: &CausalConfig, place: &[u8]) -> Result<CausalTask, TaskError> {
    let me = PeerId::from_bytes([1; 32]);
    let mut task = CausalTask::new(config, 1, &Shards::default())?;
    if let Some(data) = task.dataset_mut() {
        if !data.seek(place) {
            return Err(TaskError::Position);
        }
        data.deal(&Participants::new(me, [me]));
    }
    Ok(task)
}

fn bytes(windows: &Windows) -> Vec<u8> {
    windows.tokens().to_data().bytes().to_vec()
}

fn mib(now: u64, before: u64) -> u64 {
    now.saturating_sub(before) >> 20
}

/// Bytes of memory that this process uses, as Linux counts them; 0 elsewhere.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}
