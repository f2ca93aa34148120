//! Checkpoints: written beside the last one, committed by one rename, verified when read.
//!
//! `checkpoint.json` (the manifest) names a directory `checkpoint-<round>-<generation>` with one
//! safetensors file per lane. A crash at any instant leaves either the old manifest with its files,
//! or the new one, whose files are already on stable storage. After the commit a copy of the manifest is put
//! beside the files: it tells a checkpoint whose manifest was deleted from one that was never complete.
//! `docs/checkpoint-format.md` describes the format.

mod manifest;
mod reader;
mod writer;

pub use manifest::{Expected, MANIFEST_VERSION, Manifest, Progress};
pub use reader::Checkpoint;
pub use writer::{CheckpointWriter, LaneFile, LaneSink};

#[cfg(test)]
mod tests;

/// Name of the manifest in a daemon's directory.
pub const MANIFEST: &str = "checkpoint.json";

/// Name of the directory with a checkpoint's files.
fn directory_name(round: u64, generation: u64) -> String {
    format!("checkpoint-{round}-{generation}")
}

/// True for a name that [`directory_name`] could have made.
fn is_directory_name(name: &str) -> bool {
    generation_of(name).is_some()
}

/// The generation in a name that [`directory_name`] could have made.
fn generation_of(name: &str) -> Option<u64> {
    let digits = |s: &&str| s.bytes().all(|b| b.is_ascii_digit());
    let number = |s: &str| Some(s).filter(digits)?.parse::<u64>().ok();
    let (round, generation) = name.strip_prefix("checkpoint-")?.split_once('-')?;
    number(round)?;
    number(generation)
}
