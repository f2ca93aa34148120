//! Paths of the workspace and of its build results.

use std::path::{Path, PathBuf};

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().unwrap_or(root)
}

/// The directory of build results, which also holds what the steps write.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(given) => root().join(given),
        None => root().join("target"),
    }
}

/// The `murmurate` command in a profile's folder: `debug`, which tests build and start, or `release`.
pub(crate) fn murmurate(folder: &str) -> PathBuf {
    target().join(folder).join("murmurate")
}
