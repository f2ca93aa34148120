//! The data, this daemon's part of them, the device, and the model to start from: the trainer is built
//! as the daemon does it.

use super::code::Code;
use super::finding::Finding;
use murmurate_node::config::Config;
use murmurate_tasks::{TaskConfig, TaskError};

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
