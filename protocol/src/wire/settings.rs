//! The settings that peers must have in common, by name: so that a refusal can say which of them differ.

use crate::Digest;
use crate::limits::{SETTING_KEY_BYTES_MAX, SETTINGS_MAX};
use crate::wire::WireError;
use crate::wire::check::ok;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One key of a configuration, and a fingerprint of its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// The key, such as `strategy.outer.lr`.
    pub key: String,
    /// The first eight bytes of a hash over key and value.
    pub fingerprint: u64,
}

impl Setting {
    /// A key with its value. None if the key is longer than a message may hold, or has other characters.
    pub fn new(key: &str, value: &str) -> Option<Self> {
        let digest = Digest::of(&[key.as_bytes(), b"\0", value.as_bytes()].concat());
        let mut first = [0; 8];
        first.copy_from_slice(&digest.as_bytes()[..8]);
        let setting = Self {
            key: key.to_owned(),
            fingerprint: u64::from_le_bytes(first),
        };
        setting.check().is_ok().then_some(setting)
    }

    /// The keys in which two lists differ, in order: with another value, or in one of them alone.
    pub fn differing<'a>(ours: &'a [Self], theirs: &'a [Self]) -> Vec<&'a str> {
        let by_key = |all: &'a [Self]| -> BTreeMap<&'a str, u64> {
            let all = all.iter();
            all.map(|s| (s.key.as_str(), s.fingerprint)).collect()
        };
        let (ours, theirs) = (by_key(ours), by_key(theirs));
        let keys: BTreeMap<&str, ()> = ours
            .keys()
            .chain(theirs.keys())
            .map(|key| (*key, ()))
            .collect();
        let differs = |key: &&str| ours.get(key) != theirs.get(key);
        keys.into_keys().filter(differs).collect()
    }

    fn check(&self) -> Result<(), WireError> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
        let fits = (1..=SETTING_KEY_BYTES_MAX).contains(&self.key.len());
        ok(fits && self.key.chars().all(plain), "settings.key")
    }

    /// Checks a list that a peer says.
    pub(super) fn check_all(all: &[Self]) -> Result<(), WireError> {
        ok(all.len() <= SETTINGS_MAX, "settings")?;
        all.iter().try_for_each(Self::check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(all: &[(&str, &str)]) -> Vec<Setting> {
        let all = all.iter();
        all.map(|(key, value)| Setting::new(key, value).unwrap())
            .collect()
    }

    #[test]
    fn the_keys_that_differ_are_named_in_order() {
        let ours = settings(&[("run.seed", "1"), ("run.rounds", "9"), ("task.hidden", "3")]);
        let theirs = settings(&[("task.hidden", "3"), ("run.seed", "2"), ("strategy.a", "1")]);
        let differ = ["run.rounds", "run.seed", "strategy.a"];
        assert_eq!(Setting::differing(&ours, &theirs), differ);
        assert_eq!(Setting::differing(&theirs, &ours), differ);
        assert!(Setting::differing(&ours, &ours).is_empty());
    }

    #[test]
    fn a_key_holds_nothing_that_a_terminal_obeys() {
        assert!(Setting::new("strategy.outer.lr", "\u{1b}[2J").is_some());
        let long = "x".repeat(SETTING_KEY_BYTES_MAX + 1);
        for key in ["", "a b", "a\u{1b}", "A", long.as_str()] {
            assert_eq!(Setting::new(key, "1"), None, "{key:?}");
        }
    }
}
