//! The configuration, and who can read the daemon's pages.

use super::code::Code;
use super::finding::Finding;
use murmurate_node::config::{Config, ConfigError};
use std::path::Path;

/// Whether the configuration can be used.
pub(super) fn configuration(file: Option<&Path>, read: &Result<Config, ConfigError>) -> Finding {
    let name = file.map_or_else(
        || "the default configuration".to_owned(),
        |file| file.display().to_string(),
    );
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
