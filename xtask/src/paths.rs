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

/// The `murmurate` command of a release build.
pub(crate) fn murmurate() -> PathBuf {
    target().join("release").join("murmurate")
}
