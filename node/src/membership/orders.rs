//! Orders of the operator to the daemon of a directory: news that a command writes and the daemon
//! passes on, also if it was not running then.

use crate::store::{StoreError, write_private};
use murmurate_protocol::Digest;
use murmurate_trust::News;
use murmurate_trust::gate::Message;
use murmurate_trust::limits::NEWS_BYTES_MAX;
use std::path::{Path, PathBuf};

/// Files that are read at a time.
const FILES_MAX: usize = 64;

fn folder(dir: &Path) -> PathBuf {
    dir.join("orders")
}

/// Leaves news for the daemon of `dir`.
pub(super) fn leave(dir: &Path, news: News) -> Result<(), StoreError> {
    let folder = folder(dir);
    std::fs::create_dir_all(&folder).map_err(|e| StoreError::io("create", &folder, e))?;
    for message in news.messages() {
        let bytes = message.encode();
        let name = format!("{}.news", Digest::of(&bytes));
        write_private(&folder.join(name), &bytes)?;
    }
    Ok(())
}

/// The news that were left, with their files. Files that are none are removed.
pub(super) fn find(dir: &Path) -> Vec<(PathBuf, News)> {
    let Ok(entries) = std::fs::read_dir(folder(dir)) else {
        return Vec::new();
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let paths = paths.filter(|path| path.extension().is_some_and(|e| e == "news"));
    let mut found = Vec::new();
    for path in paths.take(FILES_MAX) {
        let small = path
            .metadata()
            .is_ok_and(|m| m.len() <= NEWS_BYTES_MAX as u64);
        let bytes = small.then(|| std::fs::read(&path).ok()).flatten();
        let message = bytes.and_then(|bytes| Message::decode(&bytes).ok());
        match message.and_then(Message::news) {
            Some(news) => found.push((path, news)),
            None => {
                tracing::warn!(path = %path.display(), "this is no order; it is removed");
                let _ = std::fs::remove_file(&path);
            }
        }
    }
    found
}
