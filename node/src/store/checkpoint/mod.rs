//! Checkpoints: written beside the last one, committed by one rename, verified when read.
//!
//! `checkpoint.json` (the manifest) names a directory `checkpoint-<round>-<generation>` with one
//! safetensors file per lane. A crash at any instant leaves either the old manifest with its files,
//! or the new one, whose files are already on stable storage. `docs/checkpoint-format.md` describes
//! the format.

mod manifest;
mod reader;
mod sink;
mod writer;

pub use manifest::{Expected, MANIFEST_VERSION, Manifest, Progress};
pub use reader::Checkpoint;
pub use sink::{LaneFile, LaneSink};
pub use writer::CheckpointWriter;

#[cfg(test)]
mod tests;

/// Name of the manifest in a daemon's directory.
pub const MANIFEST: &str = "checkpoint.json";

/// Name of the directory with a checkpoint's files.
fn directory_name(round: u64, generation: u64) -> String {
    format!("checkpoint-{round}-{generation}")
}

/// Whether [`directory_name`] could have made this name.
fn is_directory_name(name: &str) -> bool {
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    name.strip_prefix("checkpoint-")
        .and_then(|rest| rest.split_once('-'))
        .is_some_and(|(round, generation)| digits(round) && digits(generation))
}
