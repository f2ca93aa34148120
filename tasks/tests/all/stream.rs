//! `causal-lm` on data that does not fit into its memory: bounded memory, and a checkpoint that goes
//! on with the next batch.
//! `examples/read_text.rs` measures the same on a file of your own.

use burn::tensor::Device;
use murmurate_protocol::{Participants, PeerId};
use murmurate_strategies::Trainer;
use murmurate_strategies::inner::InnerKind;
use murmurate_strategies::state::MemoryState;
use murmurate_tasks::config::{CausalConfig, CausalModel, DataSource, FreshModel};
use murmurate_tasks::data::{MEMORY_BYTES_MAX, Shards};
use murmurate_tasks::{
    BurnTrainer, CausalTask, DeviceChoice, Task, TaskConfig, Windows, burn, bytes_per_token,
    parameters, take_steps,
};
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Held by tests that use much memory or measure it.
static MEMORY: Mutex<()> = Mutex::new(());

const WORDS: [&str; 12] = [
    "flock", "turns", "dusk", "starling", "each", "watches", "seven", "nearest", "and", "follows",
    "no", "leader",
];

/// Text of about 1,000 bytes that only its number decides.
fn story(number: u64) -> String {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = format!("Story {number}.");
    while text.len() < 1000 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text.push(' ');
        text.push_str(WORDS[(state % 12) as usize]);
    }
    text
}

/// Stories as one Parquet file, in row groups of `rows`.
fn parquet(path: &Path, stories: u64, rows: u64) {
    let schema = parse_message_type("message m { required binary text (UTF8); }").unwrap();
    let file = File::create(path).unwrap();
    let mut file = SerializedFileWriter::new(file, Arc::new(schema), Arc::default()).unwrap();
    for start in (0..stories).step_by(rows as usize) {
        let values = (start..stories.min(start + rows)).map(|i| story(i).into_bytes());
        let values: Vec<ByteArray> = values.map(ByteArray::from).collect();
        let mut group = file.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let written = column
            .typed::<ByteArrayType>()
            .write_batch(&values, None, None);
        assert_eq!(written.unwrap(), values.len());
        column.close().unwrap();
        group.close().unwrap();
    }
    file.close().unwrap();
}

/// Stories as JSON Lines.
fn json(path: &Path, stories: u64) {
    let mut file = std::io::BufWriter::new(File::create(path).unwrap());
    for number in 0..stories {
        writeln!(file, "{{\"id\":{number},\"text\":\"{}\"}}", story(number)).unwrap();
    }
}

fn config(data: &Path) -> CausalConfig {
    let usual = CausalConfig::of(DataSource::Path(data.to_path_buf()));
    let CausalModel::Fresh(model) = usual.model.clone() else {
        unreachable!("the usual model is a fresh one");
    };
    CausalConfig {
        context: Some(64),
        batch: 4,
        model: CausalModel::Fresh(FreshModel {
            layers: 1,
            width: 16,
            heads: 2,
            kv_heads: 2,
            hidden: 24,
            ..model
        }),
        ..usual
    }
}

fn participants(all: u8) -> Participants {
    let peer = |number: u8| PeerId::from_bytes([number; 32]);
    Participants::new(peer(1), (1..=all).map(peer))
}

/// Bytes of memory that this process uses, as Linux counts them.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}

fn bytes(windows: &Windows) -> Vec<i32> {
    windows
        .tokens()
        .to_data()
        .convert::<i32>()
        .try_to_vec()
        .unwrap()
}

#[test]
fn memory_is_bounded_and_a_pass_reads_each_story_once() {
    let _memory = MEMORY
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("stories.parquet");
    let stories = 40_000;
    parquet(&path, stories, 3000);
    let config = CausalConfig {
        context: Some(1000),
        batch: 16,
        ..config(&path)
    };
    let before = resident();
    let mut task = CausalTask::new(&config, 1, &Shards::default()).unwrap();
    task.dataset_mut().unwrap().deal(&participants(1));
    let device = Device::flex();
    let (mut most, mut numbers) = (0, Vec::new());
    // Most of a pass: the last twentieth is held out.
    let batches = stories * 1005 * 9 / 10 / (1000 * 16);
    for number in 0..batches {
        let batch = bytes(&task.batch(number, &device).unwrap());
        let text: Vec<u8> = batch.iter().map(|&byte| byte as u8).collect();
        let text = String::from_utf8(text).unwrap();
        let begins = text
            .match_indices("Story ")
            .filter_map(|(at, _)| text[at + 6..].split_once('.')?.0.parse::<u64>().ok());
        numbers.extend(begins);
        most = most.max(resident().saturating_sub(before));
    }
    println!(
        "{batches} batches, {} MiB above {} MiB",
        most >> 20,
        before >> 20
    );
    // As tokens of 32 bits the text would take 160 MB. A stream has at most three legs of 8 MiB of text
    // at once: one in use and one being read, which is text, too, for a moment.
    if before > 0 {
        assert!(most < 120 << 20, "{most}");
    }
    let all = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    // A few stories begin at the cut of two windows of one batch, whose parts then look like numbers.
    assert!(all - numbers.len() < all / 100, "{all} {}", numbers.len());
    assert!(all as u64 > stories * 8 / 10, "{all}");
}

#[test]
fn a_trainer_goes_on_with_the_next_batch_of_its_checkpoint() {
    let _memory = MEMORY
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("stories.jsonl");
    json(&path, 18_000);
    assert!(fs::metadata(&path).unwrap().len() > MEMORY_BYTES_MAX);
    let trainer = || {
        let task = CausalTask::new(&config(&path), 1, &Shards::default()).unwrap();
        BurnTrainer::new(task, &InnerKind::adam_w(1e-2), &DeviceChoice::Flex, 1).unwrap()
    };
    let mut first = trainer();
    first.deal(&participants(3));
    take_steps(&mut first, 5).unwrap();
    let mut state = MemoryState::default();
    first.save(&mut state).unwrap();
    let mut second = trainer();
    let values = parameters(&mut first);
    second.visit(0..values.len(), &mut |start, out| {
        out.copy_from_slice(&values[start..start + out.len()]);
    });
    second.load(&state).unwrap();
    second.deal(&participants(3));
    let losses = [&mut first, &mut second].map(|trainer| take_steps(trainer, 3).unwrap().loss);
    assert_eq!(losses[0].to_bits(), losses[1].to_bits());
    assert!(parameters(&mut first) == parameters(&mut second));
    // Without the place in the data, it would begin with the first batch.
    let mut start = trainer();
    start.deal(&participants(3));
    let device = Device::flex();
    let batch = |trainer: &mut BurnTrainer<CausalTask>| {
        let mut task = CausalTask::new(&config(&path), 1, &Shards::default()).unwrap();
        task.dataset_mut().unwrap().deal(&participants(3));
        let position = trainer.task().dataset().unwrap().position();
        assert!(task.dataset_mut().unwrap().seek(&position));
        bytes(&task.batch(0, &device).unwrap())
    };
    assert_ne!(batch(&mut start), batch(&mut first));
    assert_eq!(batch(&mut first), batch(&mut second));
    let evaluation = first.evaluate().unwrap();
    assert_eq!(evaluation, second.evaluate().unwrap());
    let task = TaskConfig::CausalLm(config(&path));
    assert_eq!(bytes_per_token(&task).unwrap(), Some(1.0));
}
