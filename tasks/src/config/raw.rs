//! The `[task]` table as it is written, with the keys of every kind.

use super::error::ConfigError;
use super::values::{Architecture, Augmentation, Classes, DataSource, Objective, OnBadRecord};
use murmurate_strategies::names::hint;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;

/// Declares the settings of a kind, each with its value in a run that says none. Each is the key of that name, but for
/// those that are `also` there.
macro_rules! settings {
    (
        $(#[$doc:meta])* $name:ident { $($(#[$meta:meta])* $key:ident: $value:ty = $usual:expr,)+ }
        $(also { $($(#[$other_meta:meta])* $other:ident: $other_value:ty = $other_usual:expr,)+ })?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize)]
        pub struct $name {
            $($(#[$meta])* pub $key: $value,)+
            $($($(#[$other_meta])* pub $other: $other_value,)+)?
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $usual,)+ $($($other: $other_usual,)+)? }
            }
        }

        impl $name {
            pub(super) const KEYS: &[&'static str] = &[$(stringify!($key)),+];

            /// These settings where the table has no others.
            pub(super) fn over(self, raw: &mut RawTask) -> Self {
                Self {
                    $($key: raw.$key.take().map_or(self.$key, Into::into),)+
                    $($($other: self.$other,)+)?
                }
            }
        }
    };
}
pub(super) use settings;

/// Declares the keys of all kinds of tasks, each with the type of its value.
macro_rules! keys {
    ($($key:ident: $value:ty,)+) => {
        /// The table. Each kind checks which keys it accepts, because its message is clearer than serde's.
        #[derive(Deserialize)]
        pub(super) struct RawTask {
            pub(super) kind: Option<String>,
            $(pub(super) $key: Option<$value>,)+
            #[serde(flatten)]
            others: BTreeMap<String, IgnoredAny>,
        }

        impl RawTask {
            /// The keys that are written, unknown ones last.
            pub(super) fn written(&self) -> impl Iterator<Item = &str> {
                let known = [$((stringify!($key), self.$key.is_some())),+];
                let known = known.into_iter().filter(|(_, there)| *there);
                known.map(|(key, _)| key).chain(self.others.keys().map(String::as_str))
            }
        }
    };
}

keys! {
    patience_s: f64,
    data: DataSource,
    column: String,
    choices: String,
    recompute: bool,
    held_out: f64,
    on_bad_record: OnBadRecord,
    model: String,
    hidden: u32,
    batch: u32,
    augmentation: Augmentation,
    layers: u32,
    width: u32,
    heads: u32,
    context: u32,
    architecture: Architecture,
    tokenizer: String,
    kv_heads: u32,
    tied: bool,
    accumulate: u32,
    clip_norm: f64,
    label_smoothing: f64,
    lora_rank: u32,
    lora_alpha: f64,
    lora_targets: Vec<String>,
    classes: Classes,
    size: [u32; 2],
    channels: u32,
    target: String,
    objective: Objective,
    categories: Vec<String>,
    buckets: u32,
    ignore: Vec<String>,
    missing: Vec<String>,
    scale: BTreeMap<String, [f64; 2]>,
}

impl RawTask {
    /// Refuses keys of other kinds and unknown keys.
    ///
    /// # Errors
    /// Names the first such key, and the known keys.
    pub(super) fn only(
        &self,
        kind: &'static str,
        keys: &[&[&'static str]],
    ) -> Result<(), ConfigError> {
        let keys = keys.concat();
        match self.written().find(|key| !keys.contains(key)) {
            None => Ok(()),
            Some(key) => Err(ConfigError::Key {
                table: "task",
                key: key.to_owned(),
                kind,
                hint: hint(key, &keys),
            }),
        }
    }
}
