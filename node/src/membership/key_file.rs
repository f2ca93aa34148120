//! The file of a run key.

use super::MembershipError;
use crate::store::{check_permissions, random_bytes, write_private};
use murmurate_protocol::Digest;
use murmurate_trust::RunKey;
use murmurate_trust::limits::NAME_MAX;
use serde::{Deserialize, Serialize};
use std::path::Path;

const HEAD: &str = "# The key of a run of Murmurate. Anyone who has it can let machines in and throw them out.\n\
                    # Keep a copy where only you can read it; no one can make a second one.\n";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    name: String,
    key: String,
}

/// Makes the key of a new run and writes it to `path`, readable by its owner only.
///
/// # Errors
/// If the file exists, the name is too long, or the file cannot be written.
pub fn found(path: &Path, name: &str) -> Result<RunKey, MembershipError> {
    let bad = |reason: &str| MembershipError::Key {
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    if name.is_empty() || name.chars().count() > NAME_MAX || name.contains(char::is_control) {
        return Err(bad("a run's name has 1 to 128 printable characters"));
    }
    if path.exists() {
        return Err(MembershipError::Exists(path.to_owned()));
    }
    let key = RunKey::from_seed(name.to_owned(), random_bytes());
    let content = Content {
        name: name.to_owned(),
        key: Digest::from_bytes(*key.seed()).to_hex(),
    };
    let text = toml::to_string(&content).map_err(|e| bad(&e.to_string()))?;
    write_private(path, format!("{HEAD}{text}").as_bytes())?;
    Ok(key)
}

/// Reads a run key.
///
/// # Errors
/// If the file cannot be read, is no key, or others than its owner may read it.
pub(crate) fn read_key(path: &Path) -> Result<RunKey, MembershipError> {
    let bad = |reason: String| MembershipError::Key {
        path: path.to_owned(),
        reason,
    };
    let text = std::fs::read_to_string(path)
        .map_err(|e| bad(format!("{e}; `murmurate run-key NAME` makes one")))?;
    check_permissions(path).map_err(bad)?;
    let content: Content = toml::from_str(&text).map_err(|e| bad(e.message().to_owned()))?;
    let seed = Digest::from_hex(&content.key);
    let seed = seed.ok_or_else(|| {
        bad("`key` should have 64 hexadecimal digits; restore the file".to_owned())
    })?;
    Ok(RunKey::from_seed(content.name, *seed.as_bytes()))
}
