//! What an attached trainer costs: time of an inner step that does nothing, and of a round's copies.
//!
//! ```sh
//! cargo run --release -p murmurate-attach --example overhead -- python python/tests/idle.py 100000000
//! ```
//!
//! A round copies the parameters from the trainer to the memory file, from there to the daemon, and back.
//! That is all that an attached trainer adds to the exchange itself.

use murmurate_attach::{Mode, RemoteTrainer, Supervisor, Terms, Waiting};
use murmurate_protocol::InnerStep;
use murmurate_strategies::{Proceed, Rank, StepControl, Trainer};
use std::error::Error;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Inner steps whose time is measured.
const STEPS: u64 = 5_000;

/// Rounds of one inner step.
const ROUNDS: u32 = 7;

struct Count(u64);

impl StepControl for Count {
    fn before(&mut self, step: InnerStep) -> Proceed {
        match step.0 < self.0 {
            true => Proceed::Go,
            false => Proceed::Stop,
        }
    }
}

/// Seconds of a round's parts.
#[derive(Default)]
struct Round {
    steps: f64,
    read: f64,
    write: f64,
}

fn round(trainer: &mut RemoteTrainer, frame: &mut [f32]) -> Result<Round, Box<dyn Error>> {
    let begun = Instant::now();
    trainer.steps(&mut Count(1))?;
    let steps = begun.elapsed().as_secs_f64();
    trainer.read(0, frame);
    let read = begun.elapsed().as_secs_f64() - steps;
    trainer.write(0, frame);
    let write = begun.elapsed().as_secs_f64() - steps - read;
    Ok(Round { steps, read, write })
}

/// CPU time of this process, which other programs on the machine do not change.
fn cpu_seconds() -> f64 {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn main() -> Result<(), Box<dyn Error>> {
    let command: Vec<OsString> = std::env::args_os().skip(1).collect();
    if command.is_empty() {
        return Err("give the command of an idle trainer".into());
    }
    let dir = std::env::temp_dir().join(format!("murmurate-overhead-{}", std::process::id()));
    let terms = Terms {
        dir: dir.clone(),
        run: "overhead".to_owned(),
        seed: 1,
        shard: 0,
        dealt: false,
        shards: 1,
        rank: Rank::ALONE,
        mode: Mode::Deltas,
        patience: Duration::from_secs(120),
        notes: Arc::new(|text| println!("{text}")),
    };
    let waiting = Waiting::open(terms.clone())?;
    let supervisor = Supervisor::start(&command, &[waiting.socket()], Arc::clone(&terms.notes))?;
    let mut trainer = waiting.wait(Some(&supervisor), &|| false)?;
    let mut frame = vec![0.0; trainer.layout().len()];
    // First touch of all pages.
    round(&mut trainer, &mut frame)?;
    trainer.steps(&mut Count(1))?;
    let begun = Instant::now();
    trainer.steps(&mut Count(1))?;
    let cut = begun.elapsed();
    trainer.steps(&mut Count(STEPS + 1))?;
    let steps = begun.elapsed().saturating_sub(2 * cut);
    println!(
        "inner step: {:.1} us",
        steps.as_secs_f64() / STEPS as f64 * 1e6
    );
    let (before, mut totals) = (cpu_seconds(), Vec::new());
    for _ in 0..ROUNDS {
        let Round { steps, read, write } = round(&mut trainer, &mut frame)?;
        let total = steps + read + write;
        println!(
            "round: {:.0} ms (install, step and cut {:.0}, read {:.0}, write {:.0})",
            total * 1e3,
            steps * 1e3,
            read * 1e3,
            write * 1e3
        );
        totals.push(total);
    }
    let spent = cpu_seconds() - before;
    println!(
        "daemon: {:.0} ms of CPU a round",
        spent / f64::from(ROUNDS) * 1e3
    );
    totals.sort_by(f64::total_cmp);
    println!(
        "round, best {:.0} ms, median {:.0} ms",
        totals[0] * 1e3,
        totals[totals.len() / 2] * 1e3
    );
    drop(trainer);
    supervisor.finish();
    std::fs::remove_dir_all(dir)?;
    Ok(())
}
