//! The file `membership.toml`: what lets a daemon in, and what every member knows of the run.

use super::MembershipError;
use crate::store::{check_permissions, write_private};
use data_encoding::BASE64;
use murmurate_protocol::{Digest, PeerId};
use murmurate_trust::{Chain, Run};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

const HEAD: &str =
    "# This daemon's membership. Do not share this file: an invite lets another machine in.\n";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    name: String,
    run_key: String,
    secret: String,
    certificates: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Card {
    pub(super) name: String,
    pub(super) run: Run,
    pub(super) chain: Chain,
}

impl Card {
    /// Its path in a daemon's directory.
    pub(super) fn path(dir: &Path) -> PathBuf {
        dir.join("membership.toml")
    }

    pub(super) fn read(dir: &Path) -> Result<Option<Self>, MembershipError> {
        let path = Self::path(dir);
        let bad = |reason: String| MembershipError::Card {
            path: path.clone(),
            reason,
        };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(bad(e.to_string())),
        };
        check_permissions(&path).map_err(bad)?;
        let content: Content = toml::from_str(&text).map_err(|e| bad(e.message().to_owned()))?;
        let key = PeerId::from_hex(&content.run_key);
        let secret = Digest::from_hex(&content.secret);
        let chain = BASE64.decode(content.certificates.as_bytes()).ok();
        let chain = chain.and_then(|bytes| Chain::from_bytes(&bytes));
        match (key, secret, chain) {
            (Some(key), Some(secret), Some(chain)) => Ok(Some(Self {
                run: Run::closed(&content.name, key, *secret.as_bytes()),
                name: content.name,
                chain,
            })),
            _ => Err(bad("a key or a certificate is not one".to_owned())),
        }
    }

    pub(super) fn of(dir: &Path) -> Result<Self, MembershipError> {
        Self::read(dir)?.ok_or_else(|| MembershipError::NoMember(dir.to_owned()))
    }

    pub(super) fn write(&self, dir: &Path) -> Result<(), MembershipError> {
        let path = Self::path(dir);
        let content = Content {
            name: self.name.clone(),
            run_key: self.run.key.to_hex(),
            secret: Digest::from_bytes(*self.run.secret()).to_hex(),
            certificates: BASE64.encode(&self.chain.to_bytes()),
        };
        let text = toml::to_string(&content).map_err(|e| MembershipError::Card {
            path: path.clone(),
            reason: e.to_string(),
        })?;
        Ok(write_private(&path, format!("{HEAD}{text}").as_bytes())?)
    }
}
