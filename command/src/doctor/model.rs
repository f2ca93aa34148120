//! The model and its data: whether memory and disk have room for it, and whether its trainer can be built.

use super::finding::{Code, Finding, State};
use super::subject::Subject;
use murmurate_node::config::Config;
use murmurate_node::store::Checkpoint;
use murmurate_strategies::plan::stores;
use murmurate_tasks::{DeviceChoice, TaskConfig, TaskError};
use std::path::Path;

/// What a daemon needs beside the stores of its method: program, threads, buffers.
const BASE_BYTES: f64 = 100e6;

/// Checkpoints that are on the disk at one time: the last one, while the next is written.
const CHECKPOINTS: f64 = 2.0;

/// What a model takes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Need {
    parameters: u64,
    /// The sum of the stores, in multiples of 4 bytes x parameters.
    multiple: f64,
}

impl Need {
    fn bytes(self) -> f64 {
        4.0 * self.parameters as f64 * self.multiple
    }
}

/// Both checks. A daemon that runs has its memory already.
pub(super) fn sizes(subject: &Subject, config: &Config) -> Vec<Finding> {
    if let TaskConfig::Attached(_) = config.task {
        let text = "the model is in the process that attaches: not checked";
        return vec![Finding::ok("memory", text)];
    }
    // A model that is much too large cannot even be laid out.
    let least = least(&config.task);
    let available = available_bytes();
    if available.is_some_and(|available| least.bytes() > available) {
        return vec![
            memory(least, available),
            disk(least, free_bytes(&subject.dir)),
        ];
    }
    // Data that cannot be read are told by the check of the data.
    let Ok(layout) = murmurate_tasks::layout(&config.task) else {
        return Vec::new();
    };
    let plan = config
        .strategy
        .plan(config.run.id, &layout, config.run.rounds);
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => {
            let finding = Finding::failed("strategy", Code::Configuration, error.to_string());
            return vec![finding.fix("change the key that is named, in `[strategy]`")];
        }
    };
    let parameters = layout.len() as u64;
    let need = Need {
        parameters,
        multiple: stores(&config.strategy, &plan, parameters).values().sum(),
    };
    let mut found = Vec::new();
    if !subject.runs {
        found.push(match config.daemon.device {
            DeviceChoice::Flex => memory(need, available),
            _ => Finding::ok("memory", "a GPU trains: its memory is not checked"),
        });
    }
    found.push(match written_bytes(&subject.dir) {
        Some(written) => room(CHECKPOINTS * written, free_bytes(&subject.dir)),
        None => disk(need, free_bytes(&subject.dir)),
    });
    found
}

/// The bytes of the last checkpoint, if there is one.
fn written_bytes(dir: &Path) -> Option<f64> {
    let checkpoint = Checkpoint::open(dir).ok().flatten()?;
    let files = std::fs::read_dir(dir.join(&checkpoint.manifest().directory)).ok()?;
    let sizes = files.filter_map(|file| Some(file.ok()?.metadata().ok()?.len()));
    Some(sizes.sum::<u64>() as f64)
}

/// The matrices of a transformer's attention, of which a layer has four of width x width at least in
/// most models. Other models are small, or are not known before their files are read.
fn least(task: &TaskConfig) -> Need {
    let (layers, width) = match task {
        TaskConfig::LanguageModel(config) => (config.layers, config.width),
        _ => (0, 0),
    };
    let (layers, width) = (u64::from(layers), u64::from(width));
    Need {
        parameters: 4 * layers * width * width,
        multiple: 1.0,
    }
}

fn memory(need: Need, available: Option<f64>) -> Finding {
    let wanted = need.bytes() + BASE_BYTES;
    let text = format!(
        "the model has {} parameters; with what its method keeps ({:.1} times the model), training takes about {}",
        need.parameters,
        need.multiple,
        bytes(wanted)
    );
    let Some(available) = available else {
        return Finding::ok("memory", text);
    };
    let text = format!("{text}, {} are available", bytes(available));
    if wanted <= available {
        return Finding::ok("memory", text);
    }
    Finding::failed("memory", Code::Memory, text)
        .because("the model and what its method keeps do not fit")
        .fix(
            "choose a smaller model in `[task]`, or a preset that keeps less: `murmurate strategies \
             show NAME` lists its stores, as multiples of the model",
        )
}

fn disk(need: Need, free: Option<f64>) -> Finding {
    room(CHECKPOINTS * need.bytes(), free)
}

/// Checks that the disk has room for these bytes of checkpoints.
fn room(wanted: f64, free: Option<f64>) -> Finding {
    let text = format!("checkpoints take up to {}", bytes(wanted));
    let Some(free) = free else {
        return Finding::ok("disk", text);
    };
    let text = format!("{text}, {} are free", bytes(free));
    if wanted <= free {
        return Finding::ok("disk", text);
    }
    Finding::failed("disk", Code::Disk, text)
        .because("the next checkpoint is written before the last one is removed")
        .fix("free space, or set `daemon.dir` (--dir) to a larger disk")
}

/// Bytes that this process may still take: the machine's, or what its container leaves.
fn available_bytes() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
    let number = |file: &str| -> Option<f64> {
        let text = std::fs::read_to_string(Path::new("/sys/fs/cgroup").join(file)).ok()?;
        text.trim().parse().ok()
    };
    let in_container = number("memory.max").zip(number("memory.current"));
    let left = in_container.map_or(f64::INFINITY, |(max, now)| (max - now).max(0.0));
    Some((kib * 1024.0).min(left))
}

/// Free bytes of the disk on which a directory is, or will be.
fn free_bytes(dir: &Path) -> Option<f64> {
    let there = dir.ancestors().find(|path| path.exists());
    let there = there.unwrap_or_else(|| Path::new("."));
    let stat = rustix::fs::statvfs(there).ok()?;
    Some(stat.f_bavail as f64 * stat.f_frsize as f64)
}

fn bytes(count: f64) -> String {
    murmurate_node::progress::bytes(count as u64)
}

/// Returns `true` if the memory suffices, as far as it was checked.
pub(super) fn fits(found: &[Finding]) -> bool {
    let memory = found.iter().find(|finding| finding.check == "memory");
    memory.is_none_or(|finding| finding.state == State::Ok)
}

/// Builds the trainer.
pub(super) fn data(config: &Config) -> Finding {
    if let TaskConfig::Attached(_) = config.task {
        return Finding::ok("data", "the process that attaches has them: not checked");
    }
    match murmurate_node::daemon::built_in(config) {
        Ok(_) => Finding::ok("data", "found; this daemon has a part to train on"),
        Err(error) => refused(&error),
    }
}

fn refused(error: &TaskError) -> Finding {
    let (check, code, fix) = match error {
        TaskError::Device(_) => (
            "device",
            Code::Device,
            "set `daemon.device` (--device) to a device that this machine and program have, such as \
             \"flex\"",
        ),
        TaskError::Shard(_) | TaskError::Island(_) => (
            "shard",
            Code::Shard,
            "set `shards.index` and `shards.of` so that each daemon has enough samples, or use \
             shards.kind = \"dealt\"",
        ),
        _ => (
            "data",
            Code::Data,
            "set `task.data` (--data) to a file or folder that is there; docs/data.md lists the \
             formats",
        ),
    };
    Finding::failed(check, code, error.to_string()).fix(fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_needs_its_copies_and_two_checkpoints() {
        let need = Need {
            parameters: 1_000_000,
            multiple: 10.0,
        };
        assert_eq!(memory(need, Some(140e6)).state, State::Ok);
        let short = memory(need, Some(139e6));
        assert_eq!(short.code.as_deref(), Some("M006"));
        assert!(
            short
                .text
                .ends_with("takes about 140.0 MB, 139.0 MB are available"),
            "{}",
            short.text
        );
        assert_eq!(disk(need, Some(80e6)).state, State::Ok);
        let full = disk(need, Some(79e6));
        assert_eq!(full.code.as_deref(), Some("M005"));
        assert_eq!(
            full.text,
            "checkpoints take up to 80.0 MB, 79.0 MB are free"
        );
        assert_eq!(memory(need, None).state, State::Ok);
    }
}
