//! The commented configuration that `murmurate init` writes.

use super::ConfigError;
use crate::store::write_atomically;
use std::path::Path;

/// The file's text. Every value in it is the default.
pub(crate) fn template() -> &'static str {
    include_str!("template.toml")
}

/// Writes the commented configuration to `path`, in a folder that it makes if need be.
///
/// # Errors
/// If the file exists and `replace` is [`Replace::Never`], or if it cannot be written.
pub fn write_template(path: &Path, replace: Replace) -> Result<(), ConfigError> {
    if replace == Replace::Never && path.exists() {
        return Err(ConfigError::Exists(path.to_owned()));
    }
    let unwritable = |reason: String| ConfigError::Unwritable {
        path: path.to_owned(),
        reason,
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|e| unwritable(e.to_string()))?;
    }
    write_atomically(path, template().as_bytes()).map_err(|e| unwritable(e.to_string()))
}

/// What to do if the file exists already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replace {
    /// Keep it and return an error.
    Never,
    /// Replace it.
    Always,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Overrides};

    #[test]
    fn what_init_writes_parses_and_says_nothing_new() {
        let written = Config::from_text(Path::new("t"), template(), &Overrides::default()).unwrap();
        let silent = Config::from_text(Path::new("t"), "", &Overrides::default()).unwrap();
        assert_eq!(written.effective, silent.effective);
        assert_eq!(written.run, silent.run);
        assert_eq!(written.shards, silent.shards);
        assert_eq!(written.network, silent.network);
        assert_eq!(written.daemon, silent.daemon);
    }

    #[test]
    fn the_example_in_deploy_is_what_init_writes() {
        let example = include_str!("../../../deploy/config/node.example.toml");
        assert_eq!(
            example,
            template(),
            "run `murmurate init --force --to deploy/config/node.example.toml`"
        );
    }

    #[test]
    fn a_file_that_is_there_is_replaced_only_on_request() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("node.toml");
        std::fs::write(&path, "mine").unwrap();
        let line = write_template(&path, Replace::Never)
            .unwrap_err()
            .to_string();
        assert!(line.ends_with("exists already; give another --to, or --force to replace it"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
        write_template(&path, Replace::Always).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), template());
    }
}
