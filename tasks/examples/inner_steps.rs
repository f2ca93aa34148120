//! Measures the inner steps of built-in models: wall-clock and, on Linux, CPU milliseconds of a step, medians
//! over rounds. Threads: `RAYON_NUM_THREADS`.
//!
//!     cargo run --release -p murmurate-tasks --example inner_steps -- [MODELS] [ROUNDS]
//!
//! MODELS is a part of the names to measure, or `all`; or the folder of a language model, for which `KEYS` may have
//! further keys of the task, such as `context = 1024`.

use murmurate_strategies::inner::InnerKind;
use murmurate_tasks::config::TaskConfig;
use murmurate_tasks::data::Shards;
use murmurate_tasks::{DeviceChoice, build, compute_here, keep_pages_for, take_steps};
use std::error::Error;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const IMAGES: &str = "kind = 'image-classifier'";
const TEXT: &str = "kind = 'causal-lm'\ndata = 'DATA'\ntokenizer = 'bytes'\nbatch = 8";

/// Name, keys, and inner steps of a round.
const MODELS: [(&str, &str, &str, u64); 7] = [
    ("mlp", IMAGES, "", 400),
    ("cnn", IMAGES, "model = 'cnn'", 30),
    (
        "resnet18",
        IMAGES,
        "model = 'resnet18'\nwidth = 16\nbatch = 32",
        3,
    ),
    (
        "llama-0.85m",
        TEXT,
        "architecture = 'llama'\nlayers = 4\nwidth = 128\nheads = 4\nkv_heads = 4\nhidden = 352",
        8,
    ),
    (
        "llama-4.9m",
        TEXT,
        "architecture = 'llama'\nlayers = 6\nwidth = 256\nheads = 8\nkv_heads = 8\nhidden = 688",
        3,
    ),
    (
        "gpt2-0.9m",
        TEXT,
        "architecture = 'gpt2'\nlayers = 4\nwidth = 128\nheads = 4\nhidden = 512",
        8,
    ),
    (
        "bytes-0.9m",
        "kind = 'language-model'\ndata = 'DATA'",
        "layers = 4\nwidth = 128\nheads = 4\ncontext = 128\nbatch = 8",
        8,
    ),
];

fn main() -> Result<(), Box<dyn Error>> {
    // As in the daemon.
    let _computing = compute_here(|line| eprintln!("{line}"));
    let mut arguments = std::env::args().skip(1);
    let chosen = arguments.next().unwrap_or_else(|| "all".to_owned());
    let rounds = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let text = folder.path().join("text.txt");
    let bytes: Vec<u8> = (0..200_000_u32)
        .map(|i| 32 + (i * i / 7 % 91) as u8)
        .collect();
    std::fs::write(&text, bytes)?;
    println!(
        "{:<12} {:>9} {:>9} {:>8}",
        "model", "ms/step", "CPU ms", "loss"
    );
    let folder_keys = std::env::var("KEYS").unwrap_or_default();
    let folder_keys = format!("model = '{chosen}'\n{folder_keys}");
    let own = [(chosen.as_str(), TEXT, folder_keys.as_str(), 3)];
    let is_folder = std::path::Path::new(&chosen).is_dir();
    for (name, kind, keys, steps) in if is_folder { &own[..] } else { &MODELS[..] } {
        if !is_folder && chosen != "all" && !name.contains(&chosen) {
            continue;
        }
        let keys = format!("{kind}\n{keys}").replace("DATA", &text.to_string_lossy());
        let task: TaskConfig = toml::from_str(&keys)?;
        let inner = if *kind == IMAGES {
            InnerKind::sgd(0.01)
        } else {
            InnerKind::adam_w(1e-3)
        };
        let shards = Shards::whole();
        let mut trainer = build(&task, &inner, &DeviceChoice::Flex, 1, &shards)?;
        keep_pages_for(trainer.layout().len());
        take_steps(&mut *trainer, steps.div_ceil(4))?;
        let (mut wall, mut cpu, mut loss) = (Vec::new(), Vec::new(), 0.0);
        for _ in 0..rounds {
            let (begin, spent) = (Instant::now(), cpu_ms());
            loss = take_steps(&mut *trainer, *steps)?.loss;
            wall.push(1e3 * begin.elapsed().as_secs_f64() / *steps as f64);
            cpu.push((cpu_ms() - spent) / *steps as f64);
        }
        let (wall, cpu) = (median(wall), median(cpu));
        println!("{name:<12} {wall:>9.2} {cpu:>9.2} {loss:>8.4}");
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// CPU time of all threads, in ticks of 10 ms; zero where there is no `/proc`.
fn cpu_ms() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split(' ').collect();
    let ticks = [12, 13].map(|field| fields.get(field).and_then(|text| text.parse::<f64>().ok()));
    10.0 * ticks.into_iter().flatten().sum::<f64>()
}
