//! The configuration, and who can read the daemon's pages.

use super::finding::{Code, Finding};
use murmurate_node::config::{Config, ConfigError, Overrides};
use murmurate_node::store::Checkpoint;
use std::path::Path;

/// A configuration, with its name: the one that was asked about, or else that of the directory: `node.toml` there, or
/// that of its last checkpoint. Without any of these it is the default one.
pub(super) fn read(
    file: Option<&Path>,
    overrides: &Overrides,
) -> (String, Result<Config, ConfigError>) {
    let dir = overrides.dir.as_deref();
    let beside = dir
        .map(|dir| dir.join("node.toml"))
        .filter(|file| file.is_file());
    if let Some(file) = file.map(Path::to_owned).or(beside) {
        return (
            file.display().to_string(),
            Config::load(Some(&file), overrides),
        );
    }
    let checkpoint = dir.and_then(|dir| Checkpoint::open(dir).ok().flatten());
    match (checkpoint, dir) {
        (Some(checkpoint), Some(dir)) => {
            let name = format!("the configuration of the checkpoint in {}", dir.display());
            let text = &checkpoint.manifest().config;
            let read = Config::from_text(Path::new(&name), text, overrides);
            (name, read)
        }
        _ => (
            "the default configuration".to_owned(),
            Config::load(None, overrides),
        ),
    }
}

pub(super) fn configuration(name: &str, read: &Result<Config, ConfigError>) -> Finding {
    match read {
        Ok(config) => {
            let preset = config.strategy.name();
            Finding::ok("configuration", format!("{name} is valid: preset {preset}"))
        }
        Err(error) => {
            let fix = match error {
                ConfigError::Unreadable { path, .. } => {
                    format!("murmurate init --to {}", path.display())
                }
                _ => "correct this place; docs/configuration.md lists all keys, and `murmurate init` \
                      writes a file with them"
                    .to_owned(),
            };
            Finding::failed("configuration", Code::Configuration, error.to_string()).fix(fix)
        }
    }
}

/// Who can read the pages of the daemon.
pub(super) fn pages(config: &Config) -> Finding {
    let http = config.daemon.http;
    if http.ip().is_loopback() {
        return Finding::ok("page", format!("{http}, for this machine only"));
    }
    let text = format!("everyone who reaches {http} can read the daemon's pages");
    Finding::warning("page", Code::HttpPublic, text)
        .because("`daemon.http_public` is set")
        .fix(format!(
            "set `daemon.http = \"127.0.0.1:{}\"`, or let only your own machines through the firewall",
            http.port()
        ))
}
