//! The `[shards]` table as written.

use super::ConfigError;
use super::error::unknown;
use crate::TaskError;
use crate::data::{ShardKind, Shards};
use murmurate_strategies::names::hint;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;

const KEYS: [&str; 5] = ["kind", "alpha", "index", "of", "seed"];

/// The default is to deal the data among the peers. With `index` or `of` written, the shards are
/// random samples of fixed size.
#[derive(Deserialize)]
pub(crate) struct RawShards {
    kind: Option<String>,
    alpha: Option<f64>,
    index: Option<u32>,
    of: Option<u32>,
    seed: Option<u64>,
    #[serde(flatten)]
    others: BTreeMap<String, IgnoredAny>,
}

impl TryFrom<RawShards> for Shards {
    type Error = TaskError;

    fn try_from(raw: RawShards) -> Result<Self, TaskError> {
        let numbered = raw.index.is_some() || raw.of.is_some();
        let silent = if numbered { "iid" } else { "dealt" };
        let name = raw.kind.as_deref().unwrap_or(silent);
        let key = |key: &str, kind, keys| ConfigError::Key {
            table: "shards",
            key: key.to_owned(),
            kind,
            hint: hint(key, keys),
        };
        let mut kinds = ShardKind::ALL.into_iter();
        let Some(kind) = kinds.find(|kind| kind.name() == name) else {
            let names = ShardKind::ALL.map(|kind| kind.name());
            return Err(unknown("shards", "kind", name, &names).into());
        };
        let kind = match (kind, raw.alpha) {
            (ShardKind::Dirichlet { .. }, Some(alpha)) => ShardKind::Dirichlet { alpha },
            (ShardKind::Dirichlet { .. }, None) => {
                return Err(ConfigError::Missing {
                    table: "shards",
                    key: "alpha",
                    hint: "the concentration of kind = \"dirichlet\", such as 0.5",
                }
                .into());
            }
            (kind, None) => kind,
            (kind, Some(_)) => return Err(key("alpha", kind.name(), &["kind"]).into()),
        };
        if let Some(other) = raw.others.keys().next() {
            return Err(key(other, kind.name(), &KEYS).into());
        }
        let whole = Self::whole();
        let shards = Self {
            kind,
            index: raw.index.unwrap_or(whole.index),
            of: raw.of.unwrap_or(whole.of),
            seed: raw.seed.unwrap_or(whole.seed),
            rank: whole.rank,
        };
        if !kind.is_numbered() && (shards.index, shards.of) != (whole.index, whole.of) {
            return Err(key("index", kind.name(), &["kind"]).into());
        }
        shards.validate()?;
        Ok(shards)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Shards, String> {
        toml::from_str::<Shards>(text).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn what_is_written_is_read() {
        for kind in [
            ShardKind::Dealt,
            ShardKind::Own,
            ShardKind::Iid,
            ShardKind::ByLabel,
            ShardKind::Dirichlet { alpha: 0.5 },
        ] {
            let (index, of) = if kind.is_numbered() { (2, 5) } else { (0, 1) };
            let shards = Shards {
                kind,
                index,
                of,
                seed: 9,
                ..Shards::whole()
            };
            assert_eq!(parse(&toml::to_string(&shards).unwrap()), Ok(shards));
        }
        assert_eq!(parse(""), Ok(Shards::default()));
        let iid = Shards {
            kind: ShardKind::Iid,
            index: 1,
            of: 2,
            ..Shards::whole()
        };
        assert_eq!(parse("index = 1\nof = 2"), Ok(iid));
    }

    #[test]
    fn wrong_keys_and_names_are_one_line() {
        let cases = [
            ("kind = \"by-lable\"", "did you mean `by-label`?"),
            ("kind = \"dirichlet\"", "`shards.alpha` is missing"),
            (
                "alpha = 0.5",
                "`shards.alpha` is no key of kind = \"dealt\"",
            ),
            ("indx = 1", "did you mean `index`?"),
            ("index = 3\nof = 3", "`shards.index` is 3"),
            (
                "kind = \"dealt\"\nindex = 1\nof = 3",
                "`shards.index` is no key of kind = \"dealt\"",
            ),
        ];
        for (text, expected) in cases {
            let error = parse(text).unwrap_err();
            assert!(
                error.contains(expected) && !error.contains('\n'),
                "{text}: {error}"
            );
        }
    }
}
